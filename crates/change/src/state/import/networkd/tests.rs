//! Examples of every construct, and texts that are none.

use lab::Random;

use super::super::testing::{Known, toml};
use super::*;

fn imported(files: &[(&str, &str)]) -> Imported {
    let files = files.iter();
    let files = files.map(|(name, text)| (Path::new("n").join(name), (*text).to_owned()));
    import(&mut Known(files.collect()), Path::new("n")).unwrap()
}

fn left(imported: &Imported) -> Vec<(&str, usize, &str)> {
    let left = imported.left.iter().map(|left| {
        let name = left.path.file_name().and_then(|name| name.to_str());
        (name.unwrap(), left.line, left.key.as_str())
    });
    left.collect()
}

#[test]
fn links_that_are_made() {
    let done = imported(&[
        (
            "10-br.netdev",
            "[NetDev]\nName=br0\nKind=bridge\nMTUBytes=9K\n[Bridge]\nSTP=yes\nForwardDelaySec=4\nAgeingTimeSec=5min\nDefaultPVID=none\n",
        ),
        (
            "11-v.netdev",
            "[NetDev]\nName=v0\nKind=veth\nMACAddress=02-00-00-00-00-0A\n[Peer]\nName=v1\n",
        ),
        (
            "12-vlan.netdev",
            "[NetDev]\nName=vlan7\nKind=vlan\n[VLAN]\nId=7\nProtocol=802.1ad\n",
        ),
        (
            "13-vx.netdev",
            "[NetDev]\nName=vx\nKind=vxlan\n[VXLAN]\nVNI=9\nLocal=192.0.2.1\nDestinationPort=4789\nMacLearning=no\n",
        ),
        (
            "14-b.netdev",
            "[NetDev]\nName=bond0\nKind=bond\n[Bond]\nMode=802.3ad\nMIIMonitorSec=100ms\nTransmitHashPolicy=layer3+4\n",
        ),
        (
            "15-red.netdev",
            "[NetDev]\nName=red\nKind=vrf\n[VRF]\nTable=1001\n",
        ),
        (
            "20-v0.network",
            "[Match]\nName=v0\n[Network]\nBridge=br0\nVLAN=vlan7\n",
        ),
        (
            "21-e.network",
            "[Match]\nName=eth0 eth1\n[Network]\nBond=bond0\n",
        ),
    ]);
    assert_eq!(left(&done), []);
    toml(
        &done,
        r#"
        link = [
            { name = "br0", kind = "bridge", mtu = 9216,
              options = "stp_state 1 forward_delay 400 ageing_time 30000 vlan_default_pvid 0" },
            { name = "v0", kind = "veth", address = "02:00:00:00:00:0a", peer = "v1", up = true, master = "br0",
              sysctl.ipv6.addr_gen_mode = 1 },
            { name = "vlan7", kind = "vlan", link = "v0", options = "id 7 protocol 802.1ad" },
            { name = "vx", kind = "vxlan", options = "id 9 local 192.0.2.1 dstport 4789 nolearning noudpcsum" },
            { name = "bond0", kind = "bond", options = "mode 802.3ad miimon 100 xmit_hash_policy layer3+4" },
            { name = "red", kind = "vrf", options = "table 1001" },
            { name = "eth0", up = true, master = "bond0" },
            { name = "eth1", up = true, master = "bond0" },
        ]
        "#,
    );
}

#[test]
fn addresses_routes_rules_and_the_rest() {
    let done = imported(&[(
        "e.network",
        "[Match]\nName=e\n\n[Link]\nMTUBytes=1400\n\n\
         [Network]\nDescription=the uplink\nAddress=192.0.2.2/24\nAddress=2001:db8::2/64\n\
         Gateway=192.0.2.1\nDHCP=no\nIPv6AcceptRA=no\nIPv4ReversePathFilter=loose\n\
         [Address]\nAddress=10.0.0.1/24\nLabel=e:1\n\
         [Address]\nAddress=10.0.9.1/32\nPeer=10.0.9.2/32\n\
         [Route]\nDestination=198.51.100.0/24\nGateway=192.0.2.9\nMetric=50\nTable=100\nGatewayOnLink=yes\n\
         [Route]\nDestination=203.0.113.0/24\nType=blackhole\n\
         [Route]\nGateway=fe80::1\n\
         [RoutingPolicyRule]\nFrom=10.0.0.0/24\nTable=100\nPriority=700\nFirewallMark=7/255\n\
         [RoutingPolicyRule]\nTable=100\nPriority=701\nFamily=both\nIncomingInterface=e\n\
         [NextHop]\nId=5\nGateway=192.0.2.8\n\
         [Neighbor]\nAddress=192.0.2.7\nLinkLayerAddress=02:00:00:00:00:07\n\
         [BridgeFDB]\nMACAddress=02:00:00:00:00:08\nDestination=192.0.2.6\n",
    )]);
    assert_eq!(left(&done), []);
    toml(
        &done,
        r#"
        link = [{ name = "e", up = true, mtu = 1400, addresses = ["192.0.2.2/24", "2001:db8::2/64"],
            sysctl.ipv6.accept_ra = 0, sysctl.ipv4.rp_filter = 2 }]
        address = [
            { dev = "e", local = "10.0.0.1/24", broadcast = "10.0.0.255", label = "e:1" },
            { dev = "e", local = "10.0.9.1/32", address = "10.0.9.2/32" },
        ]
        route = [
            { dst = "default", gateway = "192.0.2.1", dev = "e" },
            { dst = "198.51.100.0/24", gateway = "192.0.2.9", metric = 50, table = "100", flags = ["onlink"], dev = "e" },
            { dst = "203.0.113.0/24", type = "blackhole" },
            { dst = "default", gateway = "fe80::1", dev = "e", family = "inet6" },
        ]
        rule = [
            { src = "10.0.0.0/24", table = "100", priority = 700, fwmark = "7", fwmask = "255" },
            { table = "100", priority = 701, iif = "e" },
            { table = "100", priority = 701, iif = "e", family = "inet6" },
        ]
        nexthop = [{ id = 5, gateway = "192.0.2.8", dev = "e" }]
        neighbour = [{ dst = "192.0.2.7", lladdr = "02:00:00:00:00:07", dev = "e" }]
        fdb = [{ mac = "02:00:00:00:00:08", dst = "192.0.2.6", ifname = "e", flags = ["self"] }]
        "#,
    );
}

#[test]
fn drop_ins_add_and_take_back() {
    let done = imported(&[
        ("v.netdev", "[NetDev]\nName=v\nKind=vlan\n[VLAN]\nId=7\n"),
        ("v.netdev.d/1.conf", "[VLAN]\nId=\nId=8\n"),
        ("v.netdev.d/2.txt", "[VLAN]\nId=9\n"),
    ]);
    assert_eq!(left(&done), []);
    toml(
        &done,
        r#"link = [{ name = "v", kind = "vlan", options = "id 8" }]"#,
    );
}

#[test]
fn what_is_not_carried_over_is_listed_with_its_line() {
    let done = imported(&[
        ("1.netdev", "[NetDev]\nName=wg0\nKind=wireguard\n"),
        ("2.network", "[Match]\nName=en*\n[Network]\nDHCP=yes\n"),
        ("3.network", "[Match]\nMACAddress=02:00:00:00:00:01\n"),
        (
            "4.network",
            "[Match]\nName=a\n[Network]\nDHCP=yes\nNTP=192.0.2.1\n[DHCPv4]\nUseDNS=no\n",
        ),
        ("5.network", "[Match]\nName=a\n"),
        (
            "6.network",
            "stray\n[Match]\nName=b\n[Route]\nDestination=x\n[RoutingPolicyRule]\nTable=7\n",
        ),
        ("7.link", "[Match]\n"),
    ]);
    let expected = [
        ("1.netdev", 3, "Kind"),
        ("2.network", 2, "Name"),
        ("3.network", 2, "MACAddress"),
        ("4.network", 4, "DHCP"),
        ("4.network", 5, "NTP"),
        ("4.network", 6, "[DHCPv4]"),
        ("5.network", 1, "a"),
        ("6.network", 1, "stray"),
        ("6.network", 5, "Destination"),
        ("6.network", 4, "Route"),
        ("6.network", 6, "RoutingPolicyRule"),
        ("7.link", 1, "[Link]"),
    ];
    assert_eq!(left(&done), expected);
    toml(
        &done,
        r#"link = [{ name = "a", up = true }, { name = "b", up = true }]"#,
    );
}

#[test]
fn whatever_is_in_a_text_nothing_panics() {
    let words = [
        "[Match]\n",
        "[NetDev]\n",
        "[Route]\n",
        "[Network]\n",
        "[Address]\n",
        "[RoutingPolicyRule]\n",
        "[VLAN]\n",
        "[Bridge]\n",
        "[",
        "]",
        "\n",
        "\\\n",
        "Name=a\n",
        "Name=\n",
        "Kind=vlan\n",
        "Id=7\n",
        "Address=10.0.0.1/24\n",
        "Address=::\n",
        "Gateway=x\n",
        "Destination=0.0.0.0/0\n",
        "Metric=-1\n",
        "Priority=7\n",
        "From={}\n",
        "FirewallMark=/\n",
        "=",
        "é=é\n",
        "#\n",
        ";",
        "MTUBytes=99999999K\n",
        "ForwardDelaySec=1e300\n",
        "Table=main\n",
        "Scope=link\n",
    ];
    let mut random = Random::new(9);
    for round in 0..3_000 {
        let count = random.below(30);
        let text: String = (0..count)
            .map(|_| words[random.below(words.len())])
            .collect();
        let name = if round % 2 == 0 {
            "x.network"
        } else {
            "x.netdev"
        };
        let done = imported(&[(name, &text)]);
        done.file.to_toml().unwrap();
    }
}
