//! Examples of every construct, and texts that are none.

use std::collections::BTreeMap;

use lab::Random;

use super::super::testing::{Known, left, only, toml};
use super::*;

fn imported(text: &str) -> Imported {
    import(&mut only("interfaces", text), Path::new("interfaces")).unwrap()
}

#[test]
fn addresses_gateways_and_settings() {
    let done = imported(
        "# The uplink.\n\
         auto lo eth0\n\
         iface lo inet loopback\n\
         iface eth0 inet static\n\
         \taddress 192.0.2.10\n\
         \tnetmask 255.255.255.0\n\
         \tgateway 192.0.2.1\n\
         \tmetric 100\n\
         \tmtu 9000\n\
         \thwaddress ether 02:00:00:00:00:0A\n\
         \tup ip route add 198.51.100.0/24 \\\n\
              via 192.0.2.7 dev $IFACE\n\
         \tpost-up ip -6 rule add from 2001:db8::/32 lookup 7 pref 700\n\
         iface eth0 inet6 static\n\
         \taddress 2001:db8::10/64\n\
         \taccept_ra 0\n\
         \tgateway fe80::1\n",
    );
    assert_eq!(left(&done), []);
    toml(
        &done,
        r#"
        link = [
            { name = "lo", up = true },
            { name = "eth0", up = true, mtu = 9000, address = "02:00:00:00:00:0a",
              addresses = ["192.0.2.10/24", "2001:db8::10/64"], sysctl.ipv6.accept_ra = 0 },
        ]
        route = [
            { words = "198.51.100.0/24 via 192.0.2.7 dev eth0" },
            { dst = "default", gateway = "192.0.2.1", dev = "eth0", metric = 100 },
            { dst = "default", gateway = "fe80::1", dev = "eth0", family = "inet6" },
        ]
        rule = [{ words = "from 2001:db8::/32 lookup 7 pref 700", family = "inet6" }]
        "#,
    );
}

#[test]
fn links_that_are_made() {
    let done = imported(
        "auto br0 eth1.20 vlan30 bond0 vx7 vx8 red eth9 v0\n\
         iface br0\n  address 10.0.0.1/24\n  bridge-ports eth2 eth3\n  bridge-stp on\n\
           bridge-fd 4\n  bridge-vlan-aware yes\n\
         iface eth1.20 inet manual\n\
         iface vlan30 inet manual\n  vlan-raw-device eth1\n\
         iface bond0 inet manual\n  bond-slaves eth4 eth5\n  bond-mode 4\n  bond-miimon 100\n\
           bond-lacp-rate fast\n  bond-xmit-hash-policy layer3+4\n\
         iface vx7\n  vxlan-id 7\n  vxlan-local-tunnelip 192.0.2.1\n  vxlan-port 4789\n  vxlan-learning no\n\
         iface vx8\n  vxlan-id 8\n  vxlan-remoteip 192.0.2.7 192.0.2.8\n\
         iface red\n  vrf-table 1001\n\
         iface eth9\n  vrf red\n  ip-forward yes\n\
         iface v0\n  link-type veth\n  veth-peer-name v1\n  alias the other end\n",
    );
    assert_eq!(left(&done), []);
    toml(
        &done,
        r#"
        link = [
            { name = "br0", up = true, kind = "bridge", addresses = ["10.0.0.1/24"],
              options = "stp_state 1 forward_delay 400 vlan_filtering 1" },
            { name = "eth2", master = "br0", up = true, sysctl.ipv6.disable_ipv6 = 1 },
            { name = "eth3", master = "br0", up = true, sysctl.ipv6.disable_ipv6 = 1 },
            { name = "eth1.20", up = true, kind = "vlan", link = "eth1", options = "id 20" },
            { name = "vlan30", up = true, kind = "vlan", link = "eth1", options = "id 30" },
            { name = "bond0", up = true, kind = "bond",
              options = "mode 802.3ad miimon 100 lacp_rate fast xmit_hash_policy layer3+4" },
            { name = "eth4", master = "bond0" },
            { name = "eth5", master = "bond0" },
            { name = "vx7", up = true, kind = "vxlan",
              options = "id 7 local 192.0.2.1 dstport 4789 nolearning" },
            { name = "vx8", up = true, kind = "vxlan", options = "id 8 dstport 4789" },
            { name = "red", up = true, kind = "vrf", options = "table 1001" },
            { name = "eth9", up = true, master = "red", sysctl.ipv4.forwarding = 1 },
            { name = "v0", up = true, kind = "veth", peer = "v1", alias = "the other end" },
        ]
        fdb = [
            { mac = "00:00:00:00:00:00", dst = "192.0.2.7", ifname = "vx8", flags = ["self"] },
            { mac = "00:00:00:00:00:00", dst = "192.0.2.8", ifname = "vx8", flags = ["self"] },
        ]
        "#,
    );
}

#[test]
fn addresses_of_which_more_is_said_are_rows() {
    let done = imported(
        "auto eth0 ppp0 eth0:1\n\
         iface eth0 inet static\n  address 10.0.0.1/24\n  broadcast 10.0.0.255\n\
         iface eth0:1 inet static\n  address 10.0.1.1/24\n\
         iface ppp0 inet static\n  address 10.9.0.1\n  pointopoint 10.9.0.2\n",
    );
    assert_eq!(left(&done), []);
    toml(
        &done,
        r#"
        link = [{ name = "eth0", up = true, addresses = ["10.0.0.1/24"] }, { name = "ppp0", up = true }]
        address = [
            { dev = "eth0", local = "10.0.1.1/24", broadcast = "10.0.1.255", label = "eth0:1" },
            { dev = "ppp0", local = "10.9.0.1/32", address = "10.9.0.2" },
        ]
        "#,
    );
}

#[test]
fn what_is_not_carried_over_is_listed_with_its_line() {
    let done = imported(
        "auto eth0\n\
         mapping eth1\n\
           script /bin/false\n\
         iface eth0 inet dhcp\n\
           down ip route del default\n\
           up iptables -A INPUT -j ACCEPT\n\
           up ip route add 10.0.0.0/8 via 192.0.2.1 || true\n\
           wpa-ssid home\n\
           address 2001:db8::1\n\
         iface eth7 inet static\n\
         iface eth0 inet static\n\
           address 2001:db8::1/64\n\
           mtu big\n",
    );
    let expected = [
        (2, "mapping"),
        (3, "script"),
        (4, "dhcp"),
        (5, "down"),
        (6, "up"),
        (7, "up"),
        (8, "wpa-ssid"),
        (9, "address"),
        (10, "eth7"),
        (13, "mtu"),
        (12, "address"),
    ];
    assert_eq!(left(&done), expected);
    toml(&done, r#"link = [{ name = "eth0", up = true }]"#);
}

#[test]
fn other_files_are_taken_in_within_bounds() {
    let mut texts = Known(BTreeMap::from([
        (
            "d/interfaces".into(),
            "source more/*\nsource-directory run\n".to_owned(),
        ),
        (
            "d/more/a".into(),
            "auto a\niface a inet manual\n".to_owned(),
        ),
        ("d/more/b".into(), "source b\n".to_owned()),
        ("d/run/c".into(), "auto c\niface c inet manual\n".to_owned()),
        (
            "d/run/c.dpkg-old".into(),
            "auto d\niface d inet manual\n".to_owned(),
        ),
    ]));
    let done = import(&mut texts, Path::new("d/interfaces")).unwrap();
    let names: Vec<&str> = done
        .file
        .link
        .iter()
        .map(|link| link.name.as_str())
        .collect();
    assert_eq!(names, ["a", "c"]);
    let deep = &done.left;
    assert!(deep.len() == 1 && deep[0].why.contains("deep"), "{deep:?}");
    assert!(import(&mut texts, Path::new("none")).is_err());
}

#[test]
fn whatever_is_in_a_text_nothing_panics() {
    let words = [
        "auto",
        "iface",
        "eth0",
        "eth0:1",
        "inet",
        "inet6",
        "static",
        "dhcp",
        "address",
        "10.0.0.1/24",
        "netmask",
        "255.0.255.0",
        "64",
        "gateway",
        "up",
        "ip",
        "route",
        "add",
        "rule",
        "pref",
        "-6",
        "bridge-ports",
        "bridge_fd",
        "\\\n",
        "\n",
        "\n",
        "\t",
        "{}",
        "é",
        "vlan-raw-device",
        "source",
        "*",
        "vxlan-id",
        "bond-mode",
        "99",
        "broadcast",
        "-",
        "pointopoint",
        "::1",
        "metric",
        "allow-x",
    ];
    let mut random = Random::new(3);
    for _ in 0..3_000 {
        let count = random.below(40);
        let text: Vec<&str> = (0..count)
            .map(|_| words[random.below(words.len())])
            .collect();
        let done = imported(&text.join(" "));
        done.file.to_toml().unwrap();
    }
}
