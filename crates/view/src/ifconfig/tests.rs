use std::net::IpAddr;

use table::LinkLayerAddress;
use table::row::address::flag as address_flag;

use super::*;

fn address(local: &str, prefix_len: u8, broadcast: Option<&str>, label: &str) -> Address {
    Address {
        broadcast: broadcast.map(|address| address.parse().unwrap()),
        label: (!label.is_empty()).then(|| label.into()),
        flags: address_flag::PERMANENT,
        ..Address::new(2, local.parse().unwrap(), prefix_len)
    }
}

fn link() -> Link {
    Link {
        index: 2,
        name: "v0".into(),
        hardware: 1,
        flags: 0x11043,
        mtu: 1500,
        tx_queue_len: 1000,
        oper_state: table::row::link::oper::UP,
        kind: Some("veth".into()),
        address: LinkLayerAddress::new(&[0x2e, 0xff, 0xba, 0xb4, 0x37, 0x60]).unwrap(),
        ..Link::default()
    }
}

fn loopback() -> Link {
    Link {
        index: 1,
        name: "lo".into(),
        hardware: 772,
        flags: 0x10049,
        mtu: 65536,
        tx_queue_len: 1000,
        address: LinkLayerAddress::new(&[0; 6]).unwrap(),
        ..Link::default()
    }
}

fn tun() -> Link {
    Link {
        index: 3,
        name: "tun0".into(),
        hardware: 0xFFFE,
        flags: 0x1091,
        mtu: 1500,
        tx_queue_len: 500,
        ..Link::default()
    }
}

fn print(interfaces: &[Interface<'_>], selection: Selection<'_>, style: Style) -> String {
    let mut text = Vec::new();
    list(interfaces, selection, style, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// What net-tools 2.10 printed, but for the second address without a label,
/// which it hid.
#[test]
fn net_tools_blocks() {
    let (v0, lo, tun) = (link(), loopback(), tun());
    let of_v0 = [
        address("10.0.0.1", 24, None, "v0"),
        address("10.0.1.5", 30, Some("10.0.1.7"), "v0:2"),
        address("10.0.0.5", 30, Some("10.0.0.7"), "v0:1"),
        address("10.0.2.5", 30, None, "v0"),
        address("fe80::2cff:baff:feb4:3760", 64, None, ""),
        address("::10.2.3.4", 96, None, ""),
    ];
    let of_lo = [
        address("127.0.0.1", 8, None, "lo"),
        address("::1", 128, None, ""),
    ];
    let mut of_tun = [address("10.7.0.1", 32, None, "tun0")];
    of_tun[0].peer = Some("10.7.0.2".parse::<IpAddr>().unwrap());
    let counters = LinkCounters {
        tx_packets: 6,
        tx_bytes: 456,
        rx_bytes: 1_048_577,
        rx_missed_errors: 2,
        rx_dropped: 1,
        ..LinkCounters::default()
    };
    let interfaces = [
        Interface {
            link: &v0,
            counters: Some(&counters),
            addresses: &of_v0,
        },
        Interface {
            link: &lo,
            counters: None,
            addresses: &of_lo,
        },
        Interface {
            link: &tun,
            counters: None,
            addresses: &of_tun,
        },
    ];
    let lo_and_tun = "lo: flags=73<UP,LOOPBACK,RUNNING>  mtu 65536
        inet 127.0.0.1  netmask 255.0.0.0
        inet6 ::1  prefixlen 128  scopeid 0x10<host>
        loop  txqueuelen 1000  (Local Loopback)

tun0: flags=4241<UP,POINTOPOINT,NOARP,MULTICAST>  mtu 1500
        inet 10.7.0.1  netmask 255.255.255.255  destination 10.7.0.2
        unspec 00-00-00-00-00-00-00-00-00-00-00-00-00-00-00-00  txqueuelen 500  (UNSPEC)

";
    let of_v0 = "v0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500
        inet 10.0.0.1  netmask 255.255.255.0  broadcast 0.0.0.0
        inet 10.0.2.5  netmask 255.255.255.252  broadcast 0.0.0.0
        inet6 fe80::2cff:baff:feb4:3760  prefixlen 64  scopeid 0x20<link>
        inet6 ::10.2.3.4  prefixlen 96  scopeid 0x80<compat,global>
        ether 2e:ff:ba:b4:37:60  txqueuelen 1000  (Ethernet)
        RX packets 0  bytes 1048577 (1.0 MiB)
        RX errors 0  dropped 3  overruns 0  frame 0
        TX packets 6  bytes 456 (456.0 B)
        TX errors 0  dropped 0 overruns 0  carrier 0  collisions 0

";
    let alias = "v0:1: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500
        inet 10.0.0.5  netmask 255.255.255.252  broadcast 10.0.0.7
        ether 2e:ff:ba:b4:37:60  txqueuelen 1000  (Ethernet)

";
    let second = alias.replace("v0:1", "v0:2").replace("10.0.0.", "10.0.1.");
    assert_eq!(
        print(&interfaces, Selection::All, Style::Linux),
        format!("{lo_and_tun}{of_v0}{alias}{second}")
    );
    assert_eq!(
        print(&interfaces, Selection::Named("v0:1"), Style::Linux),
        alias
    );
    assert_eq!(
        print(&interfaces, Selection::Named("v0"), Style::Linux),
        of_v0
    );
    assert_eq!(print(&interfaces, Selection::Down, Style::Linux), "");
    assert_eq!(print(&interfaces, Selection::Named("v"), Style::Linux), "");
}

#[test]
fn net_tools_lines() {
    let (v0, lo) = (link(), loopback());
    let of_v0 = [
        address("10.0.0.1", 24, None, "v0"),
        address("10.0.0.5", 30, None, "v0:1"),
    ];
    let counters = LinkCounters {
        tx_packets: 6,
        ..LinkCounters::default()
    };
    let interfaces = [
        Interface {
            link: &v0,
            counters: Some(&counters),
            addresses: &of_v0,
        },
        Interface {
            link: &lo,
            counters: Some(&LinkCounters::default()),
            addresses: &[],
        },
    ];
    assert_eq!(
        print(&interfaces, Selection::Up, Style::LinuxShort),
        "Iface      MTU    RX-OK RX-ERR RX-DRP RX-OVR    TX-OK TX-ERR TX-DRP TX-OVR Flg
lo              65536        0      0      0 0             0      0      0      0 LRU
v0               1500        0      0      0 0             6      0      0      0 BMRU
v0:1             1500      - no statistics available -                        BMRU
"
    );
}

#[test]
fn bsd_blocks() {
    let (v0, lo, mut tun) = (link(), loopback(), tun());
    tun.alias = Some("to the north".into());
    tun.group = 5;
    let of_v0 = [
        address("10.0.0.1", 30, Some("10.0.0.3"), "v0"),
        address("10.0.0.5", 30, Some("10.0.0.7"), "v0"),
        // `%lx` of FreeBSD's `af_inet.c`.
        address("10.9.0.1", 0, None, "v0"),
        address("fe80::1", 64, None, ""),
    ];
    let of_lo = [
        address("127.0.0.1", 8, None, "lo"),
        address("::1", 128, None, ""),
    ];
    let mut of_tun = [address("10.7.0.1", 32, None, "tun0")];
    of_tun[0].peer = Some("10.7.0.2".parse::<IpAddr>().unwrap());
    let interfaces = [
        Interface {
            link: &lo,
            counters: None,
            addresses: &of_lo,
        },
        Interface {
            link: &v0,
            counters: None,
            addresses: &of_v0,
        },
        Interface {
            link: &tun,
            counters: None,
            addresses: &of_tun,
        },
    ];
    assert_eq!(
        print(&interfaces, Selection::All, Style::Bsd),
        "lo: flags=49<UP,LOOPBACK,RUNNING> metric 0 mtu 65536
\tinet 127.0.0.1 netmask 0xff000000
\tinet6 ::1 prefixlen 128
\tgroups: lo
v0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500
\tether 2e:ff:ba:b4:37:60
\tinet 10.0.0.1 netmask 0xfffffffc broadcast 10.0.0.3
\tinet 10.0.0.5 netmask 0xfffffffc broadcast 10.0.0.7
\tinet 10.9.0.1 netmask 0x0
\tinet6 fe80::1%v0 prefixlen 64 scopeid 0x2
\tgroups: veth
\tstatus: active
tun0: flags=8091<UP,POINTOPOINT,NOARP,MULTICAST> metric 0 mtu 1500
\tdescription: to the north
\tinet 10.7.0.1 --> 10.7.0.2 netmask 0xffffffff
\tgroups: 5
\tstatus: no carrier
"
    );
    assert_eq!(
        print(&interfaces, Selection::All, Style::BsdNames),
        "lo v0 tun0\n"
    );
}

#[test]
fn a_unit_begins_above_1024_of_the_one_below() {
    let v0 = link();
    for (bytes, shown) in [
        (0, "(0.0 B)"),
        (1024, "(1024.0 B)"),
        (1037, "(1.0 KiB)"),
        (1286, "(1.2 KiB)"),
        (10_239, "(9.9 KiB)"),
        (1_048_576, "(1024.0 KiB)"),
        (1_153_433, "(1.0 MiB)"),
        (u64::MAX, "(15.9 EiB)"),
    ] {
        let counters = LinkCounters {
            rx_bytes: bytes,
            ..LinkCounters::default()
        };
        let interface = Interface {
            link: &v0,
            counters: Some(&counters),
            addresses: &[],
        };
        let text = print(&[interface], Selection::All, Style::Linux);
        assert!(text.contains(&format!("bytes {bytes} {shown}\n")), "{text}");
    }
}
