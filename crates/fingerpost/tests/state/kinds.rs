//! Generated states of every kind that this kernel makes: exported and
//! applied they change nothing, and elsewhere they become the same.

use super::*;

/// So many states.
const STATES: u64 = 12;

/// Kinds and options, with `{}` for a number; `e0` is a link that is there.
const KINDS: [&str; 21] = [
    "type dummy",
    "type ifb",
    "type bridge",
    "type bridge forward_delay 400 ageing_time 12000 mcast_snooping 0",
    "type bridge stp_state 1 priority 4096 mcast_querier 1",
    "type vxlan id {} dstport 4789 local 10.200.0.1 remote 10.200.0.2",
    "type vxlan id {} dstport 8472 group 239.1.1.1 dev e0 ttl 5",
    "type vxlan id {} dstport 4790 nolearning",
    "type geneve id {} remote 192.0.2.9 ttl 7",
    "type macvlan mode bridge",
    "type macvlan mode private",
    "type vlan id {}",
    "type vlan id {} protocol 802.1ad",
    "type ipvlan mode l3",
    "type vrf table {}",
    "type gre local 10.200.0.1 remote 10.201.0.{} key {} ttl 64",
    "type gretap local 10.200.0.1 remote 10.202.0.{}",
    "type ip6gre local 2001:db8::1 remote 2001:db8::{} ttl 9",
    "type veth peer name p{}",
    "type wireguard",
    "type bond mode 802.3ad miimon 100",
];

/// Numbers that look random, the same in every run.
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }
}

/// The line that makes a link of a kind.
fn line(name: &str, kind: &str, number: u64) -> String {
    let lower = ["macvlan", "vlan id", "ipvlan"];
    let on = match lower
        .iter()
        .any(|lower| kind.starts_with(&format!("type {lower}")))
    {
        true => "link e0 ",
        false => "",
    };
    format!(
        "link add {on}name {name} {}",
        kind.replace("{}", &number.to_string())
    )
}

/// The kinds that this kernel makes.
fn made_here() -> Option<Vec<&'static str>> {
    let netns = at_rest("skind")?;
    netns.ip(&["link", "add", "e0", "type", "bridge"]).unwrap();
    let makes = |kind: &&&str| {
        let line = line("x0", kind, 7);
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_made = netns.ip(&words).is_ok();
        if is_made {
            netns.ip(&["link", "del", "x0"]).unwrap();
        }
        is_made
    };
    Some(KINDS.iter().filter(makes).copied().collect())
}

/// A state, as lines of `ip -batch`.
fn generated(dice: &mut Dice, kinds: &[&str]) -> String {
    let mut text = String::from("addr add 10.0.0.1/24 dev e0\n");
    let links = 2 + dice.next(12);
    for number in 1..=links {
        let kind = kinds[dice.next(kinds.len() as u64) as usize];
        let name = format!("x{number}");
        text += &line(&name, kind, number + 100);
        text.push('\n');
        // These have no Ethernet address of their own to speak of.
        if dice.next(2) == 0 {
            text += &format!("link set {name} up\n");
        }
        if dice.next(3) == 0 {
            text += &format!("addr add 10.{number}.0.1/24 dev {name}\n");
            text += &format!("addr add 10.{number}.1.1/24 brd + dev {name}\n");
        }
        if dice.next(3) == 0 {
            text += &format!(
                "link set {name} alias customer-{number} txqueuelen {}\n",
                100 + number
            );
        }
        if dice.next(4) == 0 {
            text += &format!("link property add dev {name} altname other-{number}\n");
        }
        if dice.next(4) == 0 {
            text += &format!("link set {name} group {number}\n");
        }
    }
    for number in 1..=dice.next(20) {
        text += &match dice.next(12) {
            0 => format!("route add 10.100.{number}.0/24 via 10.0.0.2\n"),
            1 => format!("route add 10.101.{number}.0/24 dev e0 metric {number} proto static\n"),
            2 => format!("route add blackhole 10.102.{number}.0/24 table 100\n"),
            3 => format!(
                "route add 10.103.{number}.0/24 nexthop via 10.0.0.2 weight {number} nexthop via 10.0.0.3\n"
            ),
            4 => format!(
                "rule add from 10.104.{number}.0/24 lookup 100 pref {}\n",
                100 + number
            ),
            5 => format!(
                "rule add fwmark {number} iif e0 blackhole pref {}\n",
                200 + number
            ),
            6 => format!(
                "neigh add 10.0.0.{} lladdr 02:00:00:00:00:{number:02x} dev e0\n",
                100 + number
            ),
            7 => format!(
                "nexthop add id {number} via 10.0.0.2 dev e0\nroute add 10.105.{number}.0/24 nhid {number}\n"
            ),
            8 => format!("route add 10.106.{number}.0/24 via 10.0.0.2 mtu lock 1400 advmss 1200\n"),
            9 => {
                format!("route add 10.107.{number}.0/24 via 10.0.0.99 dev e0 onlink src 10.0.0.1\n")
            }
            10 => format!(
                "-6 rule add from 2001:db8:{number}::/48 lookup 200 pref {}\n",
                300 + number
            ),
            _ => format!("neigh add proxy 10.0.0.{} dev e0\n", 100 + number),
        };
    }
    text
}

#[test]
fn exported_states_of_every_kind_are_fixpoints() {
    let Some(kinds) = made_here() else { return };
    assert!(kinds.len() > 3, "{kinds:?}");
    for seed in 1..=STATES {
        let (Some(netns), Some(other)) = (at_rest("sfix"), at_rest("sfiy")) else {
            return;
        };
        netns
            .ip_batch("link add e0 type veth peer name e0p\nlink set e0 up\nlink set e0p up\n")
            .unwrap();
        // Next-hop objects want a carrier, which comes a moment later.
        wait_until(PATIENCE, "the carrier of e0", || {
            let shown = netns.ip(&["-o", "link", "show", "dev", "e0"]).unwrap();
            shown.contains("LOWER_UP").then_some(())
        })
        .unwrap();
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let text = generated(&mut dice, &kinds);
        let is_v6 = |line: &&str| line.starts_with("-6 ");
        let (v6, lines): (Vec<&str>, Vec<&str>) = text.lines().partition(is_v6);
        let done = netns.ip_batch(&(lines.join("\n") + "\n"));
        done.unwrap_or_else(|error| panic!("{error}: {text}"));
        for line in v6 {
            let words: Vec<&str> = line.split_whitespace().collect();
            netns.ip(&words).unwrap();
        }
        let files = Files::new();
        let exported = says(&netns, &["export"]);
        assert!(!exported.contains("not carried over"), "{exported}");
        let file = files.write("a.toml", &exported);
        let again = said(files.apply(&netns, &file, &["--prune"]));
        assert!(
            again.contains("nothing was sent"),
            "{seed}: {again} {text} {exported}"
        );
        // The same as listings tell it, a line a row and as one list.
        for format in ["--ndjson", "--json"] {
            for object in ["addr", "nexthop", "route", "rule"] {
                // `ip`'s JSON does not tell which metrics are locked.
                if (format, object) == ("--json", "route") && text.contains(" lock ") {
                    continue;
                }
                let listed = files.write("listed.json", &says(&netns, &[object, format]));
                let again = said(files.apply(&netns, &listed, &[]));
                assert!(
                    again.contains("nothing was sent"),
                    "{seed}: {object} {format}: {again} {text}"
                );
            }
        }
        said(files.apply(&other, &file, &[]));
        let elsewhere = says(&other, &["export"]);
        assert_eq!(elsewhere, exported, "{seed}: {text}");
        let again = said(files.apply(&other, &file, &["--prune"]));
        assert!(
            again.contains("nothing was sent"),
            "{seed}: {again} {text} {exported}"
        );
    }
}
