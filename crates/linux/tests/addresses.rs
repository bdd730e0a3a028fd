//! The order of addresses beside the kernel's, through everything that
//! changes it, by announcements alone; and which routes go with them.

#![allow(clippy::unwrap_used, reason = "a test may stop at once")]

use std::time::Duration;

use fingerpost_linux::{Mirror, Namespace, Options, Phase};
use lab::{Netns, Random, skip, wait_until};

const PATIENCE: Duration = Duration::from_secs(60);

struct Bench {
    netns: Netns,
    mirror: Mirror,
}

impl Bench {
    fn new(tag: &str) -> Option<Self> {
        let netns = skip::unless(Netns::new(tag))?;
        // Addresses are announced at once instead of after a second.
        netns
            .sysctl("net/ipv6/conf/default/accept_dad", "0")
            .unwrap();
        let pair = "link add a0 type veth peer name a1\nlink set a0 up\nlink set a1 up\n";
        netns.ip_batch(pair).unwrap();
        let mirror = Mirror::start(Namespace::open(netns.name()).unwrap(), Options::default());
        let mirror = mirror.unwrap();
        assert_eq!(mirror.wait_ready(PATIENCE), Phase::Live);
        Some(Self { netns, mirror })
    }

    /// `ip -o addr` as links and addresses.
    fn theirs(&self) -> Vec<(u32, String)> {
        let text = self.netns.ip(&["-o", "addr"]).unwrap();
        let row = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let index = words[0].trim_end_matches(':').parse().unwrap();
            let (address, _) = words[3].split_once('/').unwrap();
            (index, address.to_owned())
        };
        text.lines().map(row).collect()
    }

    fn ours(&self) -> Vec<(u32, String)> {
        let tables = self.mirror.reader().snapshot();
        let rows = tables.addresses.iter();
        rows.map(|row| (row.link, row.local.to_string())).collect()
    }

    /// Waits until the order is the kernel's; nothing was listed for it.
    fn compare(&self, after: &str) {
        let same = wait_until(PATIENCE, "the kernel's order", || {
            (self.ours() == self.theirs()).then_some(())
        });
        let both = || format!("{:#?}\n{:#?}", self.ours(), self.theirs());
        assert!(same.is_ok(), "after {after}: {}", both());
        let status = self.mirror.status();
        assert_eq!(status.drift, 0, "after {after}: {status:?}");
    }
}

fn change(random: &mut Random) -> String {
    let [what, net, host, scope, ..] = random.number().to_ne_bytes();
    let (net, host) = (net % 3, host % 6 + 1);
    let v4 = format!("10.0.{net}.{host}/24");
    let v6 = format!("2001:db8:{net}::{host}/64");
    let scope = ["global", "link", "host", "site"][usize::from(scope % 8 / 2)];
    match what % 12 {
        0..=2 => format!("addr add {v4} dev a0 scope {scope}"),
        3 => format!("addr add {v4} dev a1"),
        4 | 5 => format!("addr del {v4} dev a0"),
        6 | 7 => format!("addr add {v6} dev a0"),
        8 => format!("addr del {v6} dev a0"),
        9 => format!("addr change {v6} dev a0 valid_lft 5000 preferred_lft 4000"),
        10 => format!("addr change {v4} dev a0 valid_lft 5000 preferred_lft 4000"),
        _ => format!("addr add {v6} dev a1 nodad"),
    }
}

#[test]
fn addresses_stand_in_the_kernel_s_order() {
    let Some(bench) = Bench::new("order") else {
        return;
    };
    let mut random = Random::new(5);
    for promotes in ["0", "1", "0", "1"] {
        let key = "net/ipv4/conf/a0/promote_secondaries";
        bench.netns.sysctl(key, promotes).unwrap();
        for _ in 0..25 {
            let lines: Vec<String> = (0..12).map(|_| change(&mut random)).collect();
            for line in &lines {
                let words: Vec<&str> = line.split(' ').collect();
                // What is there already is refused.
                let _ = bench.netns.ip(&words);
            }
            bench.compare(&lines.join("; "));
        }
    }
}

/// Detection of duplicates ends for each address at a time of its own, and
/// all were made in the same tick.
#[test]
fn addresses_made_at_once_and_announced_by_turns_are_listed_again() {
    let Some(bench) = Bench::new("by-turns") else {
        return;
    };
    bench
        .netns
        .sysctl("net/ipv6/conf/a0/accept_dad", "1")
        .unwrap();
    let lines: String = (1..40)
        .map(|host| {
            let nodad = if host % 3 == 0 { " nodad" } else { "" };
            format!("addr add 2001:db8::{host:x}/64 dev a0{nodad}\n")
        })
        .collect();
    bench.netns.ip_batch(&lines).unwrap();
    bench.compare("duplicate address detection");
}

/// A link that is down keeps its addresses, if so told, and where they are.
#[test]
fn kept_addresses_keep_their_places() {
    let Some(bench) = Bench::new("kept") else {
        return;
    };
    let key = "net/ipv6/conf/a0/keep_addr_on_down";
    bench.netns.sysctl(key, "1").unwrap();
    let lines: String = (1..6)
        .map(|host| format!("addr add 2001:db8::{host}/64 dev a0\n"))
        .collect();
    bench.netns.ip_batch(&lines).unwrap();
    bench.compare("making");
    for state in ["down", "up"] {
        bench.netns.ip(&["link", "set", "a0", state]).unwrap();
        bench.compare(state);
    }
    bench
        .netns
        .ip(&["addr", "add", "2001:db8::9/64", "dev", "a0"])
        .unwrap();
    bench.compare("one more");
    bench.netns.ip(&["link", "del", "a0"]).unwrap();
    bench.compare("the end of the link");
}

/// Where a link goes with all its addresses, the kernel looks after those
/// routes that prefer its primary addresses (`fib_del_ifaddr`).
#[test]
fn routes_that_prefer_a_secondary_address_outlive_its_link() {
    let Some(bench) = Bench::new("secondary") else {
        return;
    };
    let lines = "link add b0 type veth peer name b1\nlink set b0 up\nlink set b1 up
        addr add 10.1.0.1/24 dev a0\naddr add 10.1.0.3/24 dev a0
        addr add 10.1.0.4/24 dev a0\naddr add 10.1.0.5/24 dev a0
        addr add 10.1.1.1/32 dev a0\naddr add 10.2.0.1/24 dev b0
        route add prohibit 192.0.2.0/24 src 10.1.0.1
        route add prohibit 192.0.3.0/24 src 10.1.0.3
        route add 192.0.4.0/24 via 10.2.0.2 src 10.1.0.4
        route add 192.0.5.0/24 via 10.2.0.2 src 10.1.0.5
        route add 192.0.6.0/24 via 10.2.0.2 src 10.1.1.1
        addr del 10.1.0.3/24 dev a0\nlink del a0";
    bench.netns.ip_batch(lines).unwrap();
    bench.compare("link del a0");
    let has = |net: u8| {
        let prefix = format!("192.0.{net}.0/24");
        let theirs = bench.netns.ip(&["route", "show", &prefix]).unwrap();
        let tables = bench.mirror.reader().snapshot();
        let ours = tables.routes.exact(254, prefix.parse().unwrap()).next();
        assert_eq!(ours.is_some(), !theirs.is_empty(), "{prefix}: {theirs}");
        ours.is_some()
    };
    assert_eq!([2, 3, 4, 5, 6].map(has), [false, false, true, true, false]);
}
