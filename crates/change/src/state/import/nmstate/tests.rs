//! Examples of every construct, and texts that are none.

use lab::Random;

use super::super::testing::{left, only, toml};
use super::*;

fn tried(text: &str) -> Result<Imported, String> {
    import(&mut only("n.yml", text), Path::new("n.yml"))
}

#[test]
fn interfaces_routes_and_rules() {
    let done = tried(
        "---\n\
         interfaces:\n\
         - name: eth0\n\
         \x20 type: ethernet\n\
         \x20 state: up\n\
         \x20 mtu: 9000\n\
         \x20 mac-address: 02:00:00:00:00:0A\n\
         \x20 description: the uplink\n\
         \x20 ipv4:\n\
         \x20   enabled: true\n\
         \x20   dhcp: false\n\
         \x20   address:\n\
         \x20   - ip: 192.0.2.2\n\
         \x20     prefix-length: 24\n\
         \x20 ipv6: {enabled: false}\n\
         - {name: br0, type: linux-bridge, bridge: {options: {stp: {enabled: true, forward-delay: 4}, mac-ageing-time: 30}, port: [{name: eth1}]}}\n\
         - {name: bond0, type: bond, link-aggregation: {mode: 802.3ad, port: [eth2, eth3], options: {miimon: 100, xmit_hash_policy: layer3+4}}}\n\
         - {name: vlan7, type: vlan, state: down, controller: red, vlan: {base-iface: bond0, id: 7, protocol: 802.1ad}}\n\
         - {name: vx, type: vxlan, vxlan: {id: 9, remote: 192.0.2.3, destination-port: 4789, base-iface: eth0}}\n\
         - {name: red, type: vrf, vrf: {route-table-id: 1001, port: []}}\n\
         - {name: v0, type: veth, veth: {peer: v1}}\n\
         routes:\n\
         \x20 config:\n\
         \x20 - {destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: eth0, metric: 100, table-id: 254}\n\
         \x20 - {destination: '2001:db8:1::/48', next-hop-address: 'fe80::1', next-hop-interface: eth0, metric: -1}\n\
         route-rules:\n\
         \x20 config:\n\
         \x20 - {ip-from: 10.0.0.0/8, priority: 700, route-table: 100, fwmark: 0x7, fwmask: 0xff}\n",
    )
    .unwrap();
    assert_eq!(left(&done), []);
    toml(
        &done,
        r#"
        link = [
            { name = "eth0", up = true, mtu = 9000, address = "02:00:00:00:00:0a", alias = "the uplink",
              addresses = ["192.0.2.2/24"] },
            { name = "br0", up = true, kind = "bridge", options = "stp_state 1 forward_delay 400 ageing_time 3000" },
            { name = "eth1", master = "br0" },
            { name = "bond0", up = true, kind = "bond", options = "mode 802.3ad miimon 100 xmit_hash_policy layer3+4" },
            { name = "eth2", master = "bond0" },
            { name = "eth3", master = "bond0" },
            { name = "vlan7", up = false, kind = "vlan", link = "bond0", master = "red", options = "id 7 protocol 802.1ad" },
            { name = "vx", up = true, kind = "vxlan", link = "eth0", options = "id 9 remote 192.0.2.3 dstport 4789" },
            { name = "red", up = true, kind = "vrf", options = "table 1001" },
            { name = "v0", up = true, kind = "veth", peer = "v1" },
        ]
        route = [
            { dst = "default", gateway = "192.0.2.1", dev = "eth0", metric = 100, table = 254 },
            { dst = "2001:db8:1::/48", gateway = "fe80::1", dev = "eth0", family = "inet6" },
        ]
        rule = [{ src = "10.0.0.0/8", priority = 700, table = 100, fwmark = "7", fwmask = "255" }]
        "#,
    );
}

#[test]
fn what_is_not_carried_over_is_listed_with_its_line() {
    let done = tried(
        "dns-resolver: {}\n\
         interfaces:\n\
         - name: a\n\
         \x20 ipv4: {enabled: true, dhcp: true, address: [{ip: x, prefix-length: 8}]}\n\
         \x20 lldp: {enabled: true}\n\
         - {name: b, type: ovs-bridge}\n\
         - {name: c, state: absent}\n\
         - {type: ethernet}\n\
         - {name: d, identifier: mac-address}\n\
         routes:\n\
         \x20 running: []\n\
         \x20 config:\n\
         \x20 - {destination: 10.0.0.0/8, state: absent}\n\
         route-rules: {config: [{ip-to: 10.0.0.0/8}]}\n",
    )
    .unwrap();
    let expected = [
        (1, "dns-resolver"),
        (4, "dhcp"),
        (4, "address"),
        (5, "lldp"),
        (6, "b"),
        (7, "c"),
        (8, "-"),
        (9, "d"),
        (11, "running"),
        (13, "10.0.0.0/8"),
        (14, "10.0.0.0/8"),
    ];
    assert_eq!(left(&done), expected);
    toml(&done, r#"link = [{ name = "a", up = true }]"#);
}

#[test]
fn whatever_is_in_a_text_nothing_panics() {
    let words = [
        "interfaces:",
        "routes:",
        "config:",
        "- ",
        "\n",
        "\n  ",
        "\n    ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "name: a",
        "type: vlan",
        "vlan: {id: 7}",
        "ipv4: {address: [{ip: 10.0.0.1, prefix-length: 99}]}",
        "state: up",
        "destination: 0.0.0.0/0",
        "metric: -1",
        "bridge: {port: [{name: b}]}",
        "&x",
        "!!x",
        "'",
        "\t",
        "é",
        "? ",
    ];
    let mut random = Random::new(8);
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
