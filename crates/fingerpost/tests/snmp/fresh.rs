//! Counters are as fresh as they say, whoever asks after whatever pause, and
//! nobody else waits for them.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::Instant;

use lab::Netns;

use crate::World;

const IN_OCTETS: &str = ".1.3.6.1.2.1.31.1.1.1.6";
const AGE: &str = ".1.3.6.1.4.1.8072.9999.9999.26224.1.1.4.1.2";

/// What the kernel has counted, by index: of its own files, one after the
/// other.
fn counted(netns: &Netns) -> BTreeMap<String, u64> {
    let text = netns.ip(&["-s", "-j", "link"]).unwrap();
    let links: serde_json::Value = serde_json::from_str(&text).unwrap();
    let of = |link: &serde_json::Value| {
        let octets = link["stats64"]["rx"]["bytes"].as_u64()?;
        Some((link["ifindex"].to_string(), octets))
    };
    links.as_array().unwrap().iter().filter_map(of).collect()
}

/// Sends a few packets through e0.
fn send(netns: &Netns) {
    let sent = netns.inside(|| {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        (0..20).try_for_each(|_| socket.send_to(&[0; 100], "10.7.0.2:9").map(drop))
    });
    sent.unwrap().unwrap();
}

fn ask(world: &World, names: &str) -> Vec<u64> {
    let words = format!("-v2c -c public -t 20 -r 1 -OQ 127.0.0.1:1161 {names}");
    let got = world.walk("snmpget", &words);
    let number = |(_, value): &(String, String)| value.parse().unwrap();
    got.iter().map(number).collect()
}

#[test]
fn each_answer_is_between_what_the_kernel_counted_before_and_after() {
    let Some(world) = World::new("fresh", &["snmpget", "snmpbulkwalk", "ip"]) else {
        return;
    };
    let netns = &world.netns;
    netns
        .ip_batch(
            "link add e0 type veth peer name e1\nlink set e0 up\nlink set e1 up\n\
             addr add 10.7.0.1/24 dev e0\nneigh add 10.7.0.2 lladdr 02:00:00:00:00:02 dev e0\n",
        )
        .unwrap();
    let daemon = world.up("");
    let index = |name: &str| {
        let line = netns.ip(&["-o", "link", "show", name]).unwrap();
        line.split(':').next().unwrap().to_owned()
    };
    let e1 = index("e1");
    for _ in 0..5 {
        send(netns);
        let before = counted(netns)[&e1];
        let since = Instant::now();
        // Until an answer says that it is of later than that.
        let octets = lab::wait_until(crate::common::PATIENCE, "a later sample", || {
            let asked = since.elapsed().as_millis() as u64;
            let got = ask(&world, &format!("{IN_OCTETS}.{e1} {AGE}.{e1}"));
            assert!(got[1] <= 1_000, "{} ms old", got[1]);
            (got[1] < asked).then_some(got[0])
        });
        let octets = octets.unwrap();
        let after = counted(netns)[&e1];
        assert!(
            before <= octets && octets <= after,
            "{before} {octets} {after}"
        );
    }
    // A link that has just come has its counters with its row.
    netns.ip(&["link", "add", "new0", "type", "ifb"]).unwrap();
    let new = index("new0");
    let walked = lab::wait_until(crate::common::PATIENCE, "the new link's row", || {
        let words = "-v2c -c public -t 20 -r 1 127.0.0.1:1161 .1.3.6.1.2.1.31.1.1.1";
        let walked = world.walk("snmpbulkwalk", words);
        let has = |column: u32| {
            let name = format!(".1.3.6.1.2.1.31.1.1.1.{column}.{new}");
            walked.iter().any(|(other, _)| *other == name)
        };
        has(1).then(|| (has(6), has(10)))
    });
    assert_eq!(walked.unwrap(), (true, true));
    let status = crate::common::said(world.fingerpost(&["status"]).output().unwrap());
    assert!(status.contains("0 of old counters"), "{status}");
    daemon.end();
}
