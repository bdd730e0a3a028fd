//! Examples of every construct, and texts that are none.

use lab::Random;

use super::super::testing::{left, only, toml};
use super::*;

fn tried(text: &str) -> Result<Imported, String> {
    import(&mut only("n.yaml", text), Path::new("n.yaml"))
}

#[test]
fn devices_of_every_kind() {
    let done = tried(
        "network:\n\
         \x20 version: 2\n\
         \x20 renderer: networkd\n\
         \x20 ethernets:\n\
         \x20   eth0:\n\
         \x20     dhcp4: no\n\
         \x20     mtu: 9000\n\
         \x20     macaddress: 02:00:00:00:00:0A\n\
         \x20     accept-ra: false\n\
         \x20     link-local: []\n\
         \x20     addresses:\n\
         \x20       - 192.0.2.2/24\n\
         \x20       - 2001:db8::2/64\n\
         \x20       - 10.0.0.1/8: {label: 'eth0:x', lifetime: forever}\n\
         \x20     gateway4: 192.0.2.1\n\
         \x20     routes:\n\
         \x20       - {to: 198.51.100.0/24, via: 192.0.2.9, metric: 50, table: 100, on-link: true}\n\
         \x20       - {to: 203.0.113.0/24, type: blackhole}\n\
         \x20       - {to: default, via: 'fe80::1'}\n\
         \x20     routing-policy:\n\
         \x20       - {from: 10.0.0.0/8, table: 100, priority: 700, mark: 7}\n\
         \x20   port: {match: {name: eth7}, set-name: eth7}\n\
         \x20 bridges:\n\
         \x20   br0:\n\
         \x20     interfaces: [eth7, v0]\n\
         \x20     parameters: {stp: true, forward-delay: 4, priority: 4096}\n\
         \x20 bonds:\n\
         \x20   bond0: {interfaces: [eth8, eth9], parameters: {mode: 802.3ad, mii-monitor-interval: 100, transmit-hash-policy: layer3+4}}\n\
         \x20 vlans:\n\
         \x20   vlan7: {id: 7, link: bond0}\n\
         \x20 vrfs:\n\
         \x20   red: {table: 1001, interfaces: [vlan7], routes: [{to: default, via: 10.9.0.1}]}\n\
         \x20 tunnels:\n\
         \x20   vx: {mode: vxlan, id: 9, local: 192.0.2.2, remote: 192.0.2.3, port: 4789, mac-learning: false}\n\
         \x20 dummy-devices:\n\
         \x20   d0: {addresses: [10.5.0.1/32]}\n\
         \x20 virtual-ethernets:\n\
         \x20   v0: {peer: v1}\n\
         \x20   v1: {peer: v0, activation-mode: 'off'}\n",
    )
    .unwrap();
    assert_eq!(left(&done), []);
    toml(
        &done,
        r#"
        link = [
            { name = "eth0", up = true, mtu = 9000, address = "02:00:00:00:00:0a",
              addresses = ["192.0.2.2/24", "2001:db8::2/64"],
              sysctl.ipv6.accept_ra = 0, sysctl.ipv6.addr_gen_mode = 1 },
            { name = "eth7", up = true, master = "br0" },
            { name = "br0", up = true, kind = "bridge", options = "stp_state 1 forward_delay 400 priority 4096" },
            { name = "v0", up = true, kind = "veth", peer = "v1", master = "br0" },
            { name = "bond0", up = true, kind = "bond", options = "mode 802.3ad miimon 100 xmit_hash_policy layer3+4" },
            { name = "eth8", master = "bond0" },
            { name = "eth9", master = "bond0" },
            { name = "vlan7", up = true, kind = "vlan", link = "bond0", master = "red", options = "id 7" },
            { name = "red", up = true, kind = "vrf", options = "table 1001" },
            { name = "vx", up = true, kind = "vxlan", options = "id 9 local 192.0.2.2 remote 192.0.2.3 dstport 4789 nolearning" },
            { name = "d0", up = true, kind = "dummy", addresses = ["10.5.0.1/32"] },
            { name = "v1", up = false, kind = "veth", peer = "v0" },
        ]
        address = [{ dev = "eth0", local = "10.0.0.1/8", label = "eth0:x" }]
        route = [
            { dst = "default", gateway = "192.0.2.1", dev = "eth0" },
            { dst = "198.51.100.0/24", gateway = "192.0.2.9", metric = 50, table = 100, flags = ["onlink"], dev = "eth0" },
            { dst = "203.0.113.0/24", type = "blackhole" },
            { dst = "default", gateway = "fe80::1", dev = "eth0", family = "inet6" },
            { dst = "default", gateway = "10.9.0.1", dev = "red", table = 1001 },
        ]
        rule = [{ src = "10.0.0.0/8", table = 100, priority = 700, fwmark = "7" }]
        "#,
    );
}

#[test]
fn what_is_not_carried_over_is_listed_with_its_line() {
    let done = tried(
        "network:\n\
         \x20 wifis: {}\n\
         \x20 ethernets:\n\
         \x20   a:\n\
         \x20     dhcp4: yes\n\
         \x20     nameservers: {addresses: [192.0.2.53]}\n\
         \x20     addresses: [10.0.0.1/33]\n\
         \x20     routes:\n\
         \x20       - {via: 10.0.0.1}\n\
         \x20       - {to: 10.0.0.0/8, via: x}\n\
         \x20   b: {match: {macaddress: '02:00:00:00:00:01'}}\n\
         \x20   c: {match: {name: 'en*'}}\n\
         \x20 tunnels:\n\
         \x20   t: {mode: gre}\n",
    )
    .unwrap();
    let expected = [
        (2, "wifis"),
        (5, "dhcp4"),
        (6, "nameservers"),
        (7, "10.0.0.1/33"),
        (9, "a"),
        (10, "via"),
        (11, "b"),
        (12, "c"),
        (14, "t"),
    ];
    assert_eq!(left(&done), expected);
}

#[test]
fn whatever_is_in_a_text_nothing_panics() {
    let words = [
        "network:",
        "ethernets:",
        "vlans:",
        "bridges:",
        "a:",
        "\n",
        "\n  ",
        "\n    ",
        "\n      ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "id: 7",
        "link: a",
        "addresses:",
        "10.0.0.1/24",
        "routes:",
        "to: default",
        "via: ::1",
        ", ",
        "&x",
        "*x",
        "!!str",
        "'",
        "\"",
        "|",
        ">",
        "? ",
        ": ",
        "#",
        "\t",
        "é",
        "parameters: {stp: 1}",
        "match: {name: a}",
    ];
    let mut random = Random::new(4);
    for _ in 0..3_000 {
        let count = random.below(40);
        let text: String = (0..count)
            .map(|_| words[random.below(words.len())])
            .collect();
        // A refusal is an answer too.
        if let Ok(done) = tried(&text) {
            done.file.to_toml().unwrap();
        }
    }
}
