//! What `-d` tells of links of every kind against `ip -d`, whole: JSON and
//! text.
//!
//! Of kinds that this kernel has by links made on it. Of all kinds by
//! messages with drawn settings: `ip` itself reads them instead of the
//! kernel's listing (`support/listing.c`, preloaded).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test or a benchmark ends at the first surprise, and tells it"
)]

mod support;

use std::collections::BTreeSet;
use std::path::Path;

use fingerpost_view as view;
use lab::Netns;
use support::{Rows, dump, forged, rows_of};
use view::{Context, Format, Names, Object, Printer, Question};

fn ours(rows: &Rows, format: Format) -> String {
    let tables = rows.tables();
    let names = Names::default();
    let context = Context {
        links: &tables.links,
        tables: Some(&tables),
        now_millis: 0,
        names: &names,
    };
    let mut question = Question {
        object: Object::Link,
        filter: view::Filter::default(),
        output: view::Output::default(),
    };
    question.output.format = format;
    question.output.details = true;
    let mut printer = Printer::new(&question, context, Vec::new()).unwrap();
    for link in rows.links() {
        printer.link(link).unwrap();
    }
    String::from_utf8(printer.finish().unwrap()).unwrap()
}

/// Rows of JSON, or of text whose rows start at a line's start.
fn split(text: &str, format: Format) -> Vec<String> {
    match format {
        Format::Json => text
            .trim()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .replace("},{\"ifindex\"", "}\n{\"ifindex\"")
            .lines()
            .map(str::to_owned)
            .collect(),
        _ => {
            let mut rows: Vec<String> = Vec::new();
            for line in text.lines() {
                match rows.last_mut() {
                    Some(row) if line.starts_with(' ') => {
                        row.push('\n');
                        row.push_str(line);
                    }
                    _ => rows.push(line.to_owned()),
                }
            }
            rows
        }
    }
}

/// Compares row by row; the first that differs, both ways.
fn difference(ours: &[String], theirs: &[String]) -> Option<String> {
    assert_eq!(ours.len(), theirs.len());
    let mut rows = ours.iter().zip(theirs);
    let (ours, theirs) = rows.find(|(ours, theirs)| ours != theirs)?;
    Some(format!("ours:   {ours}\ntheirs: {theirs}"))
}

#[test]
fn settings_of_every_kind_are_shown_as_ip_shows_them() {
    support::beside_ip("settings", compare_drawn);
}

/// Links that this kernel makes, or lacks the kind of.
const LINKS: &[&str] = &[
    "link add v0 type veth peer name v1",
    "link add br0 type bridge",
    "link add br1 type bridge forward_delay 300 hello_time 100 max_age 600 ageing_time 0 \
     stp_state 1 priority 100 group_fwd_mask 8 mcast_snooping 0 mcast_router 2 mcast_querier 1 \
     mcast_query_use_ifaddr 1 mcast_hash_max 512 mcast_last_member_count 9 \
     mcast_startup_query_interval 77 mcast_igmp_version 3 mcast_mld_version 2 \
     mcast_stats_enabled 1 nf_call_iptables 1 no_linklocal_learn 1",
    "link set v0 master br0",
    "link add p0 type veth peer name p1",
    "link set p0 master br1 up",
    "link set p1 up",
    "link set p0 type bridge_slave cost 77 priority 9 hairpin on guard on root_block on \
     fastleave on learning off flood off proxy_arp on proxy_arp_wifi on mcast_router 2 \
     mcast_flood off bcast_flood off mcast_to_unicast on group_fwd_mask 0x4008 \
     neigh_suppress on isolated on locked on",
    "link add vx0 type vxlan id 5 dstport 4789",
    "link add vx1 type vxlan id 6 remote 192.0.2.9 local 192.0.2.1 dev v1 srcport 7 77 \
     dstport 4790 nolearning proxy rsc l2miss l3miss tos inherit ttl inherit df set gbp \
     ageing 9 maxaddress 99 noudpcsum",
    "link add vx2 type vxlan id 7 group ff05::9 dev v1 dstport 4791 ttl 9 flowlabel 77 \
     udp6zerocsumtx udp6zerocsumrx ageing 0 tos 12",
    "link add vx3 type vxlan id 8 group 239.1.1.1 dev v1 dstport 4792",
    "link add vx4 type vxlan id 9 remote 2001:db8::9 local 2001:db8::1 dstport 4793",
    "link add vx5 type vxlan external dstport 4794",
    "link add vx6 type vxlan external vnifilter dstport 4795",
    "link add link v1 name mv0 type macvlan",
    "link add link v1 name mv1 type macvlan mode private bcqueuelen 7",
    "link add link v1 name mv2 type macvlan mode source macaddr set 02:00:00:00:00:09 02:00:00:00:00:0a",
    "link add link v1 name mt0 type macvtap mode bridge",
    "link add link p1 name mt1 type macvtap mode passthru",
    "link add if0 type ifb",
    "link add link if0 name mv3 type macvlan mode passthru nopromisc",
    "tuntap add tu0 mode tun",
    "tuntap add ta0 mode tap multi_queue vnet_hdr pi user 0",
    "link set v1 addrgenmode none",
    "link set mv0 gso_max_size 4096 gso_max_segs 9",
    "link set mt0 allmulticast on promisc on",
    "link add bo0 type bond",
    "link add bo1 type bond mode 802.3ad miimon 100 lacp_rate fast ad_select count",
    "link add du0 type dummy",
    "link add ge0 type geneve id 5 remote 192.0.2.9 ttl 9",
    "link add gr0 type gre local 192.0.2.1 remote 192.0.2.2 ttl 64 key 5 seq csum",
    "link add gt0 type gretap local 192.0.2.1 remote 192.0.2.3",
    "link add er0 type erspan local 192.0.2.1 remote 192.0.2.2 seq key 5 erspan_ver 1 erspan 9",
    "link add gs0 type ip6gre local 2001:db8::1 remote 2001:db8::2 dscp inherit",
    "link add hs0 type hsr slave1 v0 slave2 v1",
    "link add ii0 type ipip local 192.0.2.1 remote 192.0.2.2",
    "link add it0 type ip6tnl local 2001:db8::1 remote 2001:db8::2",
    "link add link v1 name iv0 type ipvlan mode l3",
    "link add link v1 name iw0 type ipvtap mode l2 private",
    "link add si0 type sit local 192.0.2.1 remote 192.0.2.2 isatap",
    "link add link v1 name vl0 type vlan id 5 egress-qos-map 1:2 3:4 ingress-qos-map 5:6",
    "link add vr0 type vrf table 10",
    "link add vt0 type vti local 192.0.2.1 remote 192.0.2.2 key 5",
    "link add vt1 type vti6 local 2001:db8::1 remote 2001:db8::2 key 5",
    "link add wg0 type wireguard",
    "link add xf0 type xfrm dev v1 if_id 7",
];

/// Not compared: they run without an announcement and are no part of a row.
const TIMERS: &[&str] = &[
    "hello_timer",
    "tcn_timer",
    "topology_change_timer",
    "gc_timer",
    "hold_timer",
    "message_age_timer",
    "forward_delay_timer",
];

/// What `ip` knows from the machine's list of users.
const USERS: [(&str, &str); 2] = [
    ("\"user\":\"root\"", "\"user\":0"),
    ("user root ", "user 0 "),
];

/// What `ip` shows, but for what is listed above.
fn comparable(theirs: &str) -> String {
    let mut text = theirs.to_owned();
    for timer in TIMERS {
        for (start, end) in [(format!("\"{timer}\":"), ','), (format!("{timer} "), ' ')] {
            while let Some(at) = text.find(&start) {
                let value = at + start.len();
                let blanks = text[value..]
                    .bytes()
                    .take_while(|byte| *byte == b' ')
                    .count();
                let rest = &text[value + blanks..];
                let length = rest.find(end).unwrap_or(rest.len()) + 1;
                text.replace_range(at..value + blanks + length, "");
            }
        }
    }
    for (theirs, ours) in USERS {
        text = text.replace(theirs, ours);
    }
    text
}

#[test]
fn links_of_this_kernel_are_shown_as_ip_shows_them() {
    let Some(netns) = lab::skip::unless(Netns::new("settings-kernel")) else {
        return;
    };
    let Some(()) = lab::skip::unless(lab::skip::tun()) else {
        return;
    };
    for line in LINKS {
        let words: Vec<&str> = line.split_whitespace().collect();
        if netns.ip(&words).is_err() {
            println!("skipped: this kernel does not do `{line}`");
        }
    }
    for (format, words) in [
        (Format::Json, &["-d", "-j", "link", "show"][..]),
        (Format::Text, &["-d", "link", "show"]),
    ] {
        // Links come up meanwhile.
        let mut last = None;
        for _ in 0..20 {
            let theirs = comparable(&netns.ip(words).unwrap());
            let ours = ours(&Rows::of(&netns), format);
            let (ours, theirs) = (split(&ours, format), split(&theirs, format));
            last = difference(&ours, &theirs);
            if last.is_none() {
                println!("{format:?}: {} links equal", ours.len());
                assert!(ours.len() > 22);
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        assert_eq!(last, None);
    }
}

/// The paths of the values of an object.
fn paths(value: &serde_json::Value, path: &str, found: &mut BTreeSet<String>) {
    let Some(object) = value.as_object() else {
        found.insert(path.to_owned());
        return;
    };
    for (key, inside) in object {
        paths(inside, &format!("{path}.{key}"), found);
    }
}

/// What rows of drawn links tell, and the columns that there are.
#[test]
fn every_setting_is_a_column() {
    let mut told = BTreeSet::new();
    for (_, bytes) in forged::listings(29, 40) {
        let shown: serde_json::Value =
            serde_json::from_str(&ours(&rows_of(&bytes), Format::Json)).unwrap();
        for row in shown.as_array().unwrap() {
            paths(&row["linkinfo"], "linkinfo", &mut told);
        }
    }
    let columns = view::columns(Object::Link);
    let known: BTreeSet<String> = columns
        .iter()
        .filter(|column| column.name.starts_with("linkinfo."))
        .map(|column| column.name.to_owned())
        .collect();
    let missing: Vec<&str> = told.difference(&known).map(|path| &**path).collect();
    // Owners are not drawn: `ip` shows their names. Timers are in no row.
    let unused = known.difference(&told).map(|path| &**path);
    let unused: Vec<&str> = unused.filter(|path| !path.ends_with("_timer")).collect();
    assert_eq!((missing, unused), (vec![], vec!["linkinfo.info_data.user"]));
}

fn compare_drawn(netns: &Netns, directory: &Path, library: &Path) {
    // The loopback is there for names of links.
    let loopback = dump(netns, netlink::request::Dump::Links { counters: false });
    let listing = directory.join("listing");
    let preload = format!("LD_PRELOAD={}", library.display());
    let file = format!("LISTING={}", listing.display());
    let mut differing = Vec::new();
    for (kind, bytes) in forged::listings(28, 40) {
        std::fs::write(&listing, &bytes).unwrap();
        let mut rows = rows_of(&bytes);
        let drawn = rows.items.len();
        rows.items.extend(loopback.clone());
        for (format, words) in [
            (Format::Json, &["-d", "-j", "link", "show"][..]),
            (Format::Text, &["-d", "link", "show"]),
        ] {
            let arguments = [&[&*preload, &*file, "ip"], words].concat();
            let Ok(theirs) = netns.run("env", &arguments) else {
                println!("{kind}: `ip` does not bear it");
                differing.push((kind.clone(), format));
                continue;
            };
            let shown = split(&ours(&rows, format), format);
            let theirs = split(&theirs, format);
            if let Some(difference) = difference(&shown[..drawn], &theirs) {
                println!("{kind}\n{difference}");
                differing.push((kind.clone(), format));
            }
        }
    }
    assert!(differing.is_empty(), "{differing:?}");
}
