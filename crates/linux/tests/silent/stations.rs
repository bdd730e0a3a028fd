//! Neighbours and forwarding entries that go and come with links and
//! stations, without a word.

use lab::{Netns, skip, wait_until};

use crate::{Bench, PAIRS, PATIENCE};

#[test]
fn neighbours_and_forwarding_entries_go_with_their_link() {
    let Some(bench) = Bench::new("neigh") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "neigh add 10.1.0.2 lladdr 02:00:00:00:00:01 dev va nud permanent
         neigh add 10.1.0.3 lladdr 02:00:00:00:00:02 dev va nud reachable
         neigh add proxy 10.9.9.9 dev va
         -6 neigh add 2001:db8::7 lladdr 02:00:00:00:00:03 dev va nud stale
         neigh replace 10.1.0.3 lladdr 02:00:00:00:00:09 dev va nud stale
         neigh del 10.1.0.2 dev va
         link add name bri type bridge
         link set bri up
         link set pva master bri
         link set pvb master bri
         link add name vx type vxlan id 7 dstport 4789 local 10.1.0.1 dev va
         link set vx up",
    );
    let fdb = |words: &[&str]| {
        bench
            .netns
            .run("bridge", words)
            .map(|_| bench.compare(&words.join(" ")))
            .unwrap()
    };
    fdb(&[
        "fdb",
        "add",
        "02:00:00:00:00:aa",
        "dev",
        "pva",
        "master",
        "static",
    ]);
    fdb(&[
        "fdb",
        "append",
        "00:00:00:00:00:00",
        "dev",
        "vx",
        "dst",
        "10.1.0.9",
    ]);
    fdb(&[
        "fdb",
        "add",
        "02:00:00:00:00:bb",
        "dev",
        "vx",
        "dst",
        "10.1.0.8",
    ]);
    bench.each(
        "link set pva nomaster
         link set vx down
         link set vx up
         link set va down
         link set va address 02:00:00:00:00:55
         link property add dev vb altname other
         link property del dev vb altname other
         link set vb mtu 1400
         link set vb group 7
         link set bri type bridge forward_delay 300
         link del vx
         link del bri
         link del va",
    );
}

#[test]
fn a_passthru_macvlan_has_the_address_of_the_link_below() {
    let Some(bench) = Bench::new("passthru") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "link add link va name mv type macvlan mode passthru
         link set va address 02:00:00:00:01:01
         link set mv address 02:00:00:00:01:02
         link set mv up
         link set va address 02:00:00:00:01:03",
    );
}

#[test]
fn an_address_that_two_ports_have_is_the_others_when_one_leaves() {
    let Some(bench) = Bench::new("twice") else {
        return;
    };
    bench.all(PAIRS);
    bench.each(
        "link add name bri type bridge
         link set bri up
         link set pva address 02:00:00:00:01:01
         link set pvb address 02:00:00:00:01:01
         link set pva master bri
         link set pvb master bri
         link set pva address 02:00:00:00:01:02
         link set pva address 02:00:00:00:01:01
         link set pvb nomaster
         link set pvb master bri
         link set pva nomaster
         link set pvb address 02:00:00:00:01:03
         link set pvb nomaster",
    );
}

#[test]
fn a_station_that_moves_leaves_its_old_port_and_its_old_remote_end() {
    let Some(bench) = Bench::new("station") else {
        return;
    };
    bench.all(PAIRS);
    bench.all(
        "link add name bri type bridge
         link set bri up
         link set pva master bri
         link set pvb master bri
         link add name vx type vxlan id 7 dstport 4789 local 10.1.0.1 dev va
         link set vx up",
    );
    let lines = "
        replace 02:00:00:00:00:aa dev pva master static
        replace 02:00:00:00:00:aa dev pvb master static
        replace 02:00:00:00:00:aa dev pva master dynamic
        replace 02:00:00:00:00:aa dev bri self permanent
        replace 02:00:00:00:00:ab dev pvb master dynamic
        replace 02:00:00:00:00:ab dev pva master permanent
        add 02:00:00:00:00:aa dev pva self
        replace 02:00:00:00:00:bb dev vx dst 10.1.0.8
        replace 02:00:00:00:00:bb dev vx dst 10.1.0.9 port 99
        replace 02:00:00:00:00:bb dev vx dst 10.1.0.9 vni 8 via va
        append 00:00:00:00:00:00 dev vx dst 10.1.0.9
        append 00:00:00:00:00:00 dev vx dst 10.1.0.9 via va
        append 00:00:00:00:00:00 dev vx dst 10.1.0.9 via vb
        append 00:00:00:00:00:00 dev vx dst 10.1.0.9 port 99
        append 01:00:5e:00:00:01 dev vx dst 10.1.0.8
        append 01:00:5e:00:00:01 dev vx dst 10.1.0.9
        del 00:00:00:00:00:00 dev vx dst 10.1.0.9 via va
        del 02:00:00:00:00:ab dev pva master
        del 02:00:00:00:00:bb dev vx";
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = ["fdb"].into_iter().chain(line.split(' ')).collect();
        bench.netns.run("bridge", &words).unwrap();
        bench.compare(line);
    }
    // Learnt from a packet at one port, then from one at the other.
    let learnt = "02:00:00:00:00:cc";
    for port in ["pva", "pvb", "pva"] {
        let words = ["fdb", "replace", learnt, "dev", port, "master", "dynamic"];
        bench.netns.run("bridge", &words).unwrap();
    }
    bench.compare("three moves at once");
    let mac = table::LinkLayerAddress::new(&[2, 0, 0, 0, 0, 0xcc]).unwrap();
    let tables = bench.tables();
    let at: Vec<u32> = tables.fdb.by_lladdr(mac).map(|row| row.link).collect();
    let pva = tables.links.by_name("pva").map(|link| link.index);
    assert_eq!(at, Vec::from_iter(pva));
}

#[test]
fn links_move_between_namespaces() {
    let (Some(bench), Some(other)) = (Bench::new("move"), skip::unless(Netns::new("move2"))) else {
        return;
    };
    bench.all(PAIRS);
    bench.each("route add 192.0.2.0/24 via 10.1.0.2");
    bench.each(&format!("link set va netns {}", other.name()));
    assert!(!bench.has_route("192.0.2.0/24"));
    assert!(bench.tables().links.by_name("va").is_none());
}

#[test]
fn a_vxlan_brings_its_forwarding_entries_along() {
    let (Some(bench), Some(other)) = (Bench::new("brings"), skip::unless(Netns::new("from")))
    else {
        return;
    };
    other
        .ip_batch("link add vx type vxlan id 7 dstport 4789\nlink set vx up\n")
        .unwrap();
    let entry = [
        "fdb",
        "append",
        "02:00:00:00:00:bb",
        "dev",
        "vx",
        "dst",
        "10.1.0.8",
    ];
    other.run("bridge", &entry).unwrap();
    let scans = bench.mirror.status().scans;
    other
        .ip(&["link", "set", "vx", "netns", bench.netns.name()])
        .unwrap();
    wait_until(PATIENCE, "the entry that came along", || {
        let tables = bench.tables();
        tables
            .fdb
            .iter()
            .any(|row| row.destination.is_some())
            .then_some(())
    })
    .unwrap();
    let status = bench.mirror.status();
    assert!(status.drift == 0 && status.scans <= scans + 1, "{status:?}");
    bench.compare("the move");
}
