//! Any table that this kernel holds, made by chance, listed as text, as text
//! with `-o`, as JSON and as NDJSON, given back to a namespace that has
//! nothing but the same links: `ip` tells the same of both.

use lab::{HostSetting, Netns};
use memory::Random;

use super::common::{fingerpost, said};
use super::{fed, linked, listed};

/// Tables that are made.
const ROUNDS: u64 = 2;
/// Rows of a kind that are tried, some of which the kernel refuses.
const ROWS: usize = 40;

/// The kinds of rows in the order in which they can be made, how they are
/// listed, and how a listing is given back.
const KINDS: [(&str, &str, &[&[&str]]); 5] = [
    (
        "addr",
        "replace",
        &[&["addr", "--dev", "em1"], &["addr", "--dev", "em2"]],
    ),
    (
        "neigh",
        "replace",
        &[
            &["neigh", "--state", "permanent,noarp"],
            &["neigh", "--proxy"],
        ],
    ),
    ("nexthop", "replace", &[&["nexthop"]]),
    ("route", "append", &[&["route", "show", "table", "all"]]),
    ("rule", "add", &[&["rule"]]),
];

const FORMS: [&[&str]; 4] = [&[], &["-o"], &["--json"], &["--ndjson"]];

struct Chance(Random);

impl Chance {
    fn of<'a>(&mut self, these: &[&'a str]) -> &'a str {
        these[self.0.below(these.len())]
    }

    /// Once in so many.
    fn once_in(&mut self, many: usize) -> bool {
        self.0.below(many) == 0
    }

    fn v4(&mut self) -> String {
        format!("192.0.2.{}", 2 + self.0.below(250))
    }

    fn v6(&mut self) -> String {
        format!("2001:db8::{:x}", 2 + self.0.below(0xfff0))
    }

    fn mac(&mut self) -> String {
        format!(
            "02:00:00:00:{:02x}:{:02x}",
            self.0.below(256),
            self.0.below(256)
        )
    }

    fn dev(&mut self) -> &'static str {
        self.of(&["em1", "em2"])
    }

    fn some(&mut self, many: usize, words: &str) -> String {
        match self.once_in(many) {
            true => format!(" {words}"),
            false => String::new(),
        }
    }

    fn address(&mut self) -> String {
        let dev = self.dev();
        let number = self.0.below(1 << 14);
        if self.once_in(2) {
            let flags = self.some(3, "noprefixroute") + &self.some(5, "home");
            let lft = self.some(4, "valid_lft 90000 preferred_lft 80000");
            let len = self.of(&["64", "48", "128", "127"]);
            return format!("2001:db8:{number:x}::1/{len} dev {dev} nodad{flags}{lft}");
        }
        let (high, low) = (number >> 6, 1 + (number & 63));
        let address = format!("10.{}.{}.{low}", high >> 8, high & 255);
        let more = self.some(4, "scope link")
            + &self.some(4, "noprefixroute")
            + &self.some(5, "metric 77")
            + &self.some(4, "valid_lft 90000 preferred_lft 80000")
            + &self.some(4, &format!("label {dev}:{}", low & 7));
        match self.0.below(4) {
            0 => format!(
                "{address} peer 10.255.{}.{low}/32 dev {dev}{more}",
                high & 255
            ),
            1 => format!("{address}/26 brd + dev {dev}{more}"),
            _ => format!("{address}/26 dev {dev}{more}"),
        }
    }

    fn neighbour(&mut self) -> String {
        let address = match self.once_in(2) {
            true => self.v4(),
            false => self.v6(),
        };
        let dev = self.dev();
        if self.once_in(5) {
            return format!("proxy {address} dev {dev}");
        }
        let more = self.some(3, "router") + &self.some(4, "extern_learn");
        let proto = self.some(3, "proto static");
        let nud = self.of(&["permanent", "noarp"]);
        let mac = self.mac();
        format!("{address} lladdr {mac} dev {dev} nud {nud}{more}{proto}")
    }

    fn nexthop(&mut self, id: usize) -> String {
        let dev = self.dev();
        match self.0.below(8) {
            0 => format!("id {id} blackhole"),
            1 => format!("id {id} dev {dev}"),
            2 => format!("id {id} via {} dev {dev} onlink", self.v6()),
            3 => format!("id {id} encap ip id {id} dst {} ttl 9 dev {dev}", self.v4()),
            4 => format!(
                "id {id} encap seg6 mode encap segs fc00::1,fc00::{id:x} via {} dev em1",
                self.v6()
            ),
            5 if id > 3 => format!("id {id} group 1,3/2"),
            6 if id > 3 => format!("id {id} group 1/2 type resilient buckets 8 idle_timer 60"),
            _ => format!("id {id} via {} dev em1 proto static", self.v4()),
        }
    }

    fn metrics(&mut self) -> String {
        let mut words = String::new();
        for one in [
            "mtu lock 1400",
            "mtu 1300",
            "advmss 1200",
            "rtt 12ms",
            "rtt lock 1.5s",
            "rttvar 5ms",
            "rto_min 300ms",
            "features ecn",
            "congctl reno",
            "congctl lock cubic",
            "quickack 1",
            "initcwnd 20",
            "initrwnd 30",
            "window 5000",
            "cwnd lock 9",
            "ssthresh 77",
            "hoplimit 9",
            "reordering 5",
        ] {
            let name = one.split(' ').next().unwrap();
            if !words.contains(&format!(" {name} ")) {
                words += &self.some(9, one);
            }
        }
        words
    }

    fn hop(&mut self, is_v6: bool) -> String {
        let gateway = if is_v6 { self.v6() } else { self.v4() };
        match self.0.below(6) {
            0 => format!("encap ip id 7 dst {} dev em1", self.v4()),
            1 => format!("encap ip6 id 8 dst {} hoplimit 5 dev em1", self.v6()),
            _ => format!("via {gateway} dev em1"),
        }
    }

    fn route(&mut self) -> String {
        let is_v6 = self.once_in(2);
        let number = self.0.below(1 << 16);
        let prefix = match is_v6 {
            true => format!("2001:db8:ffff:{number:x}::/64"),
            false => format!("172.{}.{}.0/24", 16 + (number >> 12), number >> 4 & 255),
        };
        let place = self.some(4, "table 100")
            + &self.some(4, "metric 7")
            + &self.some(if is_v6 { usize::MAX } else { 4 }, "proto 77");
        let more = self.metrics();
        let first = self.hop(is_v6);
        match self.0.below(9) {
            0 => {
                let kind = self.of(&["blackhole", "unreachable", "prohibit", "throw"]);
                format!("{kind} {prefix}{place}")
            }
            1 => format!(
                "{prefix}{place}{more} nexthop {first} weight {} nexthop {}",
                1 + self.0.below(256),
                self.hop(is_v6)
            ),
            2 if is_v6 => format!("{prefix} via {} dev em1{place} pref high", self.v6()),
            3 if is_v6 => {
                format!("{prefix} encap seg6local action End.DT6 table 100 dev em1{place}")
            }
            2 => format!("{prefix} dev em2 tos 0x10{place} scope link"),
            3 => format!("{prefix} nhid {}{place}", 1 + self.0.below(3)),
            4 => format!("{prefix} {first}{place} realms 3/4"),
            5 if !is_v6 => format!("{prefix} via inet6 {} dev em1{place}", self.v6()),
            5 => format!("{prefix} via {} dev em1 onlink{place}", self.v6()),
            _ => format!("{prefix} {first}{place}{more}"),
        }
    }

    fn rule(&mut self, number: usize) -> String {
        let is_v6 = self.once_in(3);
        let prefix = |chance: &mut Self| match is_v6 {
            true => format!("2001:db8:{:x}::/48", chance.0.below(0xffff)),
            false => format!("10.{}.0.0/16", chance.0.below(256)),
        };
        let mut words = format!("from {}", prefix(self));
        if self.once_in(3) {
            words += &format!(" to {}", prefix(self));
        }
        for one in [
            "not",
            "fwmark 7/0xff",
            "fwmark 9",
            "iif em1",
            "oif em2",
            "uidrange 5-6",
            "ipproto tcp sport 5 dport 80-90",
            "tun_id 6",
            "tos 0x10",
            "protocol static",
        ] {
            let name = one.split(' ').next().unwrap();
            if !words.split(' ').any(|word| word == name) {
                words += &self.some(5, one);
            }
        }
        let action = self.of(&[
            "lookup 100",
            "lookup main suppress_prefixlength 8",
            "lookup 1000 suppress_ifgroup 5",
            "lookup 100 realms 3/4",
            "goto 32766",
            "nop",
            "blackhole",
            "prohibit",
            "unreachable",
            "l3mdev",
        ]);
        format!("{words} {action} pref {}", 500 + number)
    }
}

/// From this many neighbours on, the kernel throws out those that are not
/// permanent, `noarp` among them, whoever fills its one table for all
/// namespaces: thousands of links that other tests make. Raised while held,
/// where we may.
fn neighbours_stay() -> [Option<HostSetting>; 4] {
    [
        "ipv4/neigh/default/gc_thresh2",
        "ipv4/neigh/default/gc_thresh3",
        "ipv6/neigh/default/gc_thresh2",
        "ipv6/neigh/default/gc_thresh3",
    ]
    .map(|key| HostSetting::raise(&format!("net/{key}"), 1 << 17).ok())
}

/// Fills a namespace by chance; gives how many rows of each kind were made.
fn filled(netns: &Netns, seed: u64) -> [usize; 5] {
    let mut chance = Chance(Random::new(seed));
    KINDS.map(|(kind, verb, _)| {
        let lines: Vec<String> = (1..=ROWS)
            .map(|number| match kind {
                "addr" => chance.address(),
                "neigh" => chance.neighbour(),
                "nexthop" => chance.nexthop(number),
                "route" => chance.route(),
                _ => chance.rule(number),
            })
            .collect();
        let output = fed(netns, &[kind, verb, "--file", "-"], &lines.join("\n"));
        let told = String::from_utf8_lossy(&output.stderr);
        let refused = told.lines().filter(|line| line.contains("line ")).count();
        // What the words cannot say would not be tried at all.
        assert!(!told.contains("not understood"), "{told}");
        ROWS.saturating_sub(refused)
    })
}

/// What `ip` tells of a namespace, without what passes with time. `locks`:
/// also which metrics of routes are locked, which no JSON of `ip`'s says.
fn told(netns: &Netns, locks: bool) -> Vec<String> {
    let steady = |line: &str| {
        let mut out = String::new();
        let mut words = line.split(' ').peekable();
        while let Some(word) = words.next() {
            let is_time = word.ends_with("sec") && word.starts_with(|c: char| c.is_ascii_digit());
            out += if is_time { "TIME" } else { word };
            if words.peek().is_some() {
                out.push(' ');
            }
        }
        match out.split_once("\"expires\":") {
            Some((before, after)) => {
                let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
                format!("{before}\"expires\":TIME{after}")
            }
            None => out,
        }
    };
    let mut all = listed(netns);
    if locks {
        for family in ["-4", "-6"] {
            let routes = netns.ip(&[family, "-o", "-d", "route", "show", "table", "all"]);
            let routes = routes.unwrap();
            let mut routes: Vec<&str> = routes.lines().collect();
            routes.sort_unstable();
            all.push(routes.join("\n"));
        }
    }
    all.iter()
        .map(|text| text.lines().map(steady).collect::<Vec<_>>().join("\n"))
        .collect()
}

/// Lists a namespace in a form, and gives it back to another.
fn give_back(from: &Netns, to: &Netns, form: &[&str]) {
    for (kind, verb, listings) in KINDS {
        for (listing, family) in listings.iter().flat_map(|all| [(all, "-4"), (all, "-6")]) {
            // Next hops are of no family.
            if kind == "nexthop" && family == "-6" {
                continue;
            }
            let mut asked: Vec<&str> = listing.to_vec();
            if kind != "nexthop" {
                asked.push(family);
            }
            // Those that addresses bring have a metric that nobody can say.
            if (kind, family) == ("route", "-6") {
                asked.extend(["proto", "boot"]);
            }
            asked.push("-d");
            asked.extend(form);
            let listing = said(fingerpost(from, &asked));
            let output = fed(to, &[kind, verb, "--file", "-", family], &listing);
            let told = String::from_utf8_lossy(&output.stderr);
            for line in told.lines() {
                // What each namespace begins with, and what addresses bring.
                let known = ["rule", "route"].contains(&kind) && line.contains("there already");
                assert!(known, "{asked:?}: {line}\n{listing}");
            }
        }
    }
}

#[test]
fn any_table_can_be_listed_and_given_back() {
    let _stay = neighbours_stay();
    for seed in 0..ROUNDS {
        let Some(from) = linked("listed") else {
            return;
        };
        let made = filled(&from, seed);
        assert!(made.iter().all(|rows| *rows * 2 > ROWS), "{made:?}");
        for form in FORMS {
            // `--json` is what `ip -j` prints.
            let locks = form != ["--json"];
            let wanted = told(&from, locks);
            let to = linked("given").unwrap();
            give_back(&from, &to, form);
            let found = told(&to, locks);
            for (wanted, found) in wanted.iter().zip(&found) {
                let only = |these: &str, those: &str| {
                    let lines = these.lines();
                    let lines = lines.filter(|line| !those.lines().any(|of| of == *line));
                    lines.collect::<Vec<_>>().join("\n")
                };
                let (lost, new) = (only(wanted, found), only(found, wanted));
                assert!(
                    lost.is_empty() && new.is_empty(),
                    "seed {seed}, {form:?}\nwanted:\n{lost}\nfound:\n{new}"
                );
            }
        }
    }
}

/// `ff02::1`, which a bridge joins as soon as it is there.
const OWN_GROUP: &str = "33:33:00:00:00:01";

/// Where forwarding entries are: a bridge with two ports, and VXLANs that
/// have remote ends. The bridge is down, so that it joins no groups.
fn bridged(tag: &str) -> Option<Netns> {
    let netns = linked(tag)?;
    netns
        .ip_batch(
            "link add br0 index 110 address 02:00:00:00:02:01 type bridge\n\
             link set em1 master br0\nlink set em2 master br0\n\
             link add vx0 index 111 address 02:00:00:00:02:02 type vxlan id 7 dstport 4789\n\
             link add vx1 index 112 address 02:00:00:00:02:03 type vxlan external dstport 4790\n\
             link set vx0 up\nlink set vx1 up\n\
             nexthop add id 5 via 192.0.2.9 fdb\nnexthop add id 6 group 5 fdb\n",
        )
        .unwrap();
    Some(netns)
}

impl Chance {
    fn entry(&mut self) -> String {
        let mac = self.mac();
        let state = self.of(&["permanent", "static"]);
        let sticky = self.some(4, "sticky");
        let vlan = self.some(4, "vlan 5");
        match self.0.below(9) {
            0 => format!("{mac} dev br0 self permanent"),
            1 => format!("{mac} dev em2 self permanent"),
            2 => format!("{mac} dev vx0 dst {} self permanent", self.v4()),
            3 => format!(
                "{mac} dev vx0 dst {} port 4791 vni 9 self static",
                self.v4()
            ),
            4 => format!("{mac} dev vx0 dst {} self dynamic", self.v4()),
            5 => format!(
                "{mac} dev vx1 dst {} src_vni 33 vni 44 via em1 self",
                self.v4()
            ),
            6 => format!("00:00:00:00:00:00 dev vx0 dst {} self permanent", self.v4()),
            7 => format!("{mac} dev vx0 nhid 6 self permanent"),
            _ => format!("{mac} dev {}{vlan} master {state}{sticky}", self.dev()),
        }
    }
}

/// All entries that the kernel did not make by itself.
fn entries(netns: &Netns) -> Vec<String> {
    let told = netns.run("bridge", &["-j", "-d", "fdb", "show"]).unwrap();
    let told = told.replace("},{", "},\n{");
    let lines = told.lines();
    let lines = lines.map(|line| line.trim_matches(['[', ']', ',', ' ']).to_owned());
    let mut all: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    all.sort_unstable();
    all
}

#[test]
fn forwarding_entries_can_be_listed_and_given_back() {
    let Some(from) = bridged("entries") else {
        return;
    };
    let mut chance = Chance(Random::new(11));
    let lines: Vec<String> = (0..3 * ROWS).map(|_| chance.entry()).collect();
    let output = fed(&from, &["fdb", "append", "--file", "-"], &lines.join("\n"));
    let told = String::from_utf8_lossy(&output.stderr);
    // A bridge that filters no VLANs, a kernel without next hops of VXLANs.
    let refused = told.lines().filter(|line| line.contains("line ")).count();
    assert!(!told.contains("not understood"), "{told}");
    assert!(refused < ROWS, "{told}");
    let wanted = entries(&from);
    assert!(wanted.len() > 2 * ROWS, "{wanted:?}");
    for form in FORMS {
        let listing = said(fingerpost(&from, &[&["fdb", "-d"], form].concat()));
        let to = bridged("again").unwrap();
        let output = fed(&to, &["fdb", "append", "--file", "-"], &listing);
        let told = String::from_utf8_lossy(&output.stderr);
        for line in told.lines() {
            // What each namespace begins with.
            assert!(line.contains("there already"), "{form:?}: {line}");
        }
        // A bridge's own group is told as `self`, which makes an entry of it.
        to.run("bridge", &["fdb", "del", OWN_GROUP, "dev", "br0", "self"])
            .unwrap();
        assert_eq!(entries(&to), wanted, "{form:?}");
        // And all or nothing: what was there stays.
        let atomic = ["fdb", "replace", "--atomic", "--file", "-"];
        let input = "02:00:00:00:09:09 dev em1 master static\nfdb del 02:aa:aa:aa:aa:aa dev em1\n";
        let output = fed(&to, &atomic, input);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(entries(&to), wanted);
    }
}

/// Links of the kinds that this kernel has, and what is set of them, made by
/// chance.
fn some_links(chance: &mut Chance) -> String {
    let mut batch = "link add base address 02:00:00:00:03:00 type bridge\n".to_owned();
    for number in 1..=24 {
        let kind = chance.of(&[
            "type ifb",
            "type bridge stp_state 1 priority 4096 mcast_querier 1",
            "type bridge forward_delay 400 ageing_time 12000 mcast_snooping 0 no_linklocal_learn 1",
            "type vxlan id {} dstport 4789 local 10.200.0.1 remote 10.200.0.2 nolearning tos 4",
            "type vxlan id {} dstport 8472 group 239.1.1.1 dev base ttl 5 srcport 7000 7100",
            "type vxlan id {} dstport 4790 local 2001:db8::1 remote 2001:db8::2 noudpcsum",
            "type vxlan external dstport {}",
            "link base type macvlan mode bridge",
            "link base type macvlan mode private bcqueuelen 200",
            "link base type macvtap mode vepa",
            "type veth peer name p{}",
        ]);
        let (before, kind) = match kind.split_once("type ") {
            Some((before, kind)) => (before, kind.replace("{}", &(4900 + number).to_string())),
            None => ("", kind.to_owned()),
        };
        let mac = chance.mac();
        batch += &format!("link add {before}name x{number} address {mac} type {kind}\n");
        let may_be_port = kind.starts_with("ifb") || kind.starts_with("veth");
        let is_port = may_be_port && chance.once_in(3);
        for (many, words) in [
            (2, "up".to_owned()),
            // A port's goes on to its bridge, and from there to what is on it.
            (if is_port { usize::MAX } else { 3 }, "mtu 1400".to_owned()),
            (3, format!("txqueuelen {}", 100 + number)),
            (3, format!("alias \"line {number}\"")),
            (3, format!("group {number}")),
        ] {
            if chance.once_in(many) {
                batch += &format!("link set x{number} {words}\n");
            }
        }
        if is_port {
            batch += &format!("link set x{number} master base\n");
        }
        if chance.once_in(4) {
            batch += &format!("link property add dev x{number} altname other-{number}\n");
        }
    }
    batch
}

/// What `ip` tells of links, without what is the kernel's own: its numbers,
/// its timers, and what differs as they come up.
fn told_of_links(netns: &Netns) -> Vec<String> {
    const OWN: [&str; 14] = [
        "ifindex",
        // What the link below could do when they were made.
        "tso_max_size",
        "tso_max_segs",
        "operstate",
        "qdisc",
        "promiscuity",
        "allmulti",
        "bridge_id",
        "root_id",
        "designated_port",
        "id",
        "no",
        "state",
        "topology_change",
    ];
    fn without(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(keys) => {
                let is_vxlan = keys.contains_key("port_range");
                keys.retain(|key, _| {
                    let is_own = OWN.contains(&key.as_str()) && !(is_vxlan && key == "id");
                    !is_own && !key.ends_with("_timer")
                });
                keys.values_mut().for_each(without);
                keys.retain(|key, value| key != "altnames" || *value != serde_json::json!([]));
            }
            serde_json::Value::Array(all) => {
                // A carrier comes and goes by itself; `apply` leaves a mark.
                all.retain(|one| {
                    let passing = ["NO-CARRIER", "LOWER_UP", "M-DOWN"];
                    let is_own =
                        |one: &str| passing.contains(&one) || one.starts_with("fingerpost.");
                    !one.as_str().is_some_and(is_own)
                });
                all.iter_mut().for_each(without);
            }
            _ => {}
        }
    }
    let text = netns.ip(&["-j", "-d", "link", "show"]).unwrap();
    let mut all: serde_json::Value = serde_json::from_str(&text).unwrap();
    without(&mut all);
    let rows = all.as_array().unwrap().iter();
    let mut lines: Vec<String> = rows.map(ToString::to_string).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn links_can_be_listed_and_given_back() {
    for seed in 0..ROUNDS {
        let Some(from) = lab::skip::unless(Netns::new("links")) else {
            return;
        };
        from.ip_batch(&some_links(&mut Chance(Random::new(seed))))
            .unwrap();
        let wanted = told_of_links(&from);
        for form in ["--ndjson", "--json"] {
            let listing = said(fingerpost(&from, &["link", "-d", form]));
            let to = Netns::new("given").unwrap();
            let journal = tempfile::tempdir().unwrap();
            let journal = journal.path().join("journal").display().to_string();
            let output = fed(&to, &["apply", "-", "--journal", &journal], &listing);
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{form}: {told}\n{listing}");
            let found = told_of_links(&to);
            for (wanted, found) in wanted.iter().zip(&found) {
                assert_eq!(found, wanted, "seed {seed}, {form}");
            }
            assert_eq!(found.len(), wanted.len());
        }
    }
}
