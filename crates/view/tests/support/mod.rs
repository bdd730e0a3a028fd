//! For tests against the real kernel: a namespace full of everything, and
//! its tables read by netlink.

#![allow(dead_code, reason = "each test uses the part it needs")]

pub mod forged;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lab::Netns;
use netlink::decode::{Decoded, Item, decode};
use netlink::message::messages;
use netlink::request::Dump;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use table::{Change, Limits, Link, Placement, Tables, Writer};

/// Lines for `ip -batch`: one of each kind of row that this kernel has.
const RICH_LINKS: &str = "
link add veth0 type veth peer name veth1
link add d0 type veth peer name d0p
link add br0 type bridge
link add vx0 type vxlan id 42 remote 192.0.2.9 dstport 4789 dev veth0
link add mv0 link veth0 type macvlan mode bridge
link add ifb0 type ifb
tuntap add tun0 mode tun
tuntap add tap0 mode tap
link set veth1 master br0
link set veth0 alias 'wan \"side'
link property add dev veth0 altname wan-long-alternative-name-0
link property add dev veth0 altname wan2
link set veth0 up
link set veth1 up
link set br0 up
link set d0 up
link set mv0 up
link set vx0 up
link set tun0 up
link set ifb0 group 7
link set tap0 txqueuelen 0
addr add 192.0.2.1/24 dev veth0
addr add 192.0.2.2/24 dev veth0
addr add 192.0.2.3/25 brd + dev veth0 label veth0:1
addr add 198.51.100.1 peer 198.51.100.2/32 dev tun0
addr add 10.9.0.1/30 dev d0
addr add 10.7.0.1/24 dev br0 valid_lft 100000 preferred_lft 50000
addr add 10.8.0.1/24 dev veth0 metric 77 scope link noprefixroute
addr add 2001:db8::1/64 dev veth0 nodad
addr add 2001:db8:1::1/64 dev veth0 valid_lft 200000 preferred_lft 0
addr add 2001:db8:2::1 peer 2001:db8:2::2/128 dev veth0
addr add ::1:2/128 dev veth0
";

/// More of them, once the addresses are final.
const RICH_ROUTES: &str = "
neigh add 192.0.2.10 lladdr 00:0c:29:65:4d:48 dev veth0 nud permanent
neigh add 192.0.2.11 lladdr 00:0c:29:65:4d:49 dev veth0 nud reachable
neigh add 192.0.2.12 lladdr 00:0c:29:65:4d:4a dev veth0 nud stale
neigh add 192.0.2.13 lladdr 00:0c:29:65:4d:4f dev veth0 nud noarp
neigh add 192.0.2.19 dev veth0 nud none
neigh add 192.0.2.14 dev veth0 nud failed
neigh add 192.0.2.15 lladdr 00:0c:29:65:4d:4b dev veth0 nud reachable extern_learn
neigh add 192.0.2.16 lladdr 00:0c:29:65:4d:4c dev veth0 nud stale router
neigh add 192.0.2.17 lladdr 00:0c:29:65:4d:4c dev veth0 nud permanent proto zebra
neigh add 2001:db8::10 lladdr 00:0c:29:65:4d:4d dev veth0 nud permanent router
neigh add proxy 192.0.2.100 dev veth0
neigh add proxy 2001:db8::100 dev veth0 proto 44
route add default via 192.0.2.254
route add default via 192.0.2.253 metric 100 proto bird
route add 10.0.0.0/8 via 192.0.2.254 dev veth0 src 192.0.2.2 mtu 1400 advmss lock 1300
route add 10.1.0.0/16 nexthop via 192.0.2.254 weight 3 nexthop via 10.9.0.2 weight 1
route add 10.2.0.0/16 via inet6 2001:db8::fe dev veth0
route add blackhole 10.3.0.0/16
route add unreachable 10.4.0.0/16 metric 9
route add prohibit 10.5.0.0/16 proto static
route add throw 10.6.0.0/16 table 100
route add 10.10.0.1 via 10.99.0.1 dev veth0 onlink
route add 10.11.0.0/16 dev tun0 scope link
route add 10.12.0.0/16 via 192.0.2.254 realms 3/5
route add 10.13.0.0/16 via 192.0.2.254 tos 0x10
route add 10.14.0.0/16 nexthop via 192.0.2.254 realm 4 nexthop via inet6 2001:db8::fe dev veth0 weight 2 nexthop dev tun0
route add 10.15.0.0/16 via 192.0.2.254 congctl cubic window 1000 rtt 1500ms rttvar 10 initcwnd 10 hoplimit 33 quickack 1 features ecn rto_min 5ms
route add 10.16.0.0/16 via 192.0.2.254 table 100
route add 10.17.0.0/16 via 192.0.2.254 table 5000 proto 77
route add 10.18.0.0/16 dev veth0 proto zebra scope host metric 4294967295
route add 10.19.0.0/16 nexthop via 10.9.0.2 weight 2 nexthop dev tun0
nexthop add id 1 via 192.0.2.254 dev veth0
nexthop add id 2 via 2001:db8::fe dev veth0 proto zebra
nexthop add id 3 blackhole
nexthop add id 5 via 192.0.2.253 dev veth0 onlink
nexthop add id 10 group 1/5
nexthop add id 11 group 1,3/5,200
nexthop add id 20 via 192.0.2.200 fdb
nexthop add id 21 group 20 fdb
route add 10.20.0.0/16 nhid 1
route add 10.21.0.0/16 nhid 11
route add 10.22.0.0/16 nhid 3
route add 10.23.0.0/16 nhid 2
route add 10.30.0.0/16 encap ip id 100 dst 10.1.1.1 via 192.0.2.254
route add 2001:db8:100::/48 via 2001:db8::fe
route add 2001:db8:101::/48 via 2001:db8::fe metric 5 expires 500000 pref high
route add 2001:db8:102::/48 nexthop via 2001:db8::fe weight 2 nexthop via 2001:db8::fd
route add blackhole 2001:db8:103::/48
route add unreachable 2001:db8:104::/48
route add prohibit 2001:db8:105::/48
route add throw 2001:db8:106::/48
route add 2001:db8:107::/48 from 2001:db8:9::/48 via 2001:db8::fe
route add 2001:db8:108::/48 nhid 2
route add 2001:db8:109::/48 via fe80::1 dev veth0 src 2001:db8::1 mtu 1300
route add ::/0 via 2001:db8::fe
route add ::ffff:1.2.3.0/120 via 2001:db8::fe
route add 2001:db8:110::/48 dev d0
route add 2001:db8:10a::/48 encap seg6 mode encap segs 2001:db8::5,2001:db8::6 dev veth0
route add 2001:db8:10b::/48 encap ip6 id 3 dst 2001:db8::7 dev veth0
route add 2001:db8:10c::/48 encap seg6local action End.DX6 nh6 2001:db8::9 dev veth0
route add 2001:db8:10d::/48 encap seg6local action End.T table 5000 dev veth0
route add 2001:db8:10e::/48 encap seg6local action End.DX4 nh4 192.0.2.77 dev veth0
rule add from 10.0.0.0/8 table 100
rule add to 10.1.0.0/16 iif veth0 lookup 5000 pref 50
rule add fwmark 0x10/0xff oif veth0 lookup main suppress_prefixlength 0
rule add not from 10.2.0.1 blackhole pref 60
rule add pref 70 goto 32766
rule add pref 71 goto 90
rule add pref 72 nop
rule add pref 73 unreachable tos 0x10
rule add pref 74 prohibit fwmark 7
rule add pref 75 l3mdev
rule add pref 76 uidrange 1000-2000 lookup 100
rule add pref 77 ipproto tcp sport 80 dport 1000-2000 lookup 100 protocol zebra
rule add pref 78 iif gone lookup 100 suppress_ifgroup 7
rule add pref 79 from all realms 3/4 lookup 100
rule add pref 80 tun_id 99 lookup 100
rule add pref 81 fwmark 0/0xff lookup 100
";

/// Lines for `bridge -batch`.
const RICH_FDB: &str = "
fdb add 00:11:22:33:44:55 dev veth1 master static
fdb add 00:11:22:33:44:56 dev veth1 master static vlan 1
fdb add 00:11:22:33:44:57 dev vx0 dst 192.0.2.77
fdb append 00:00:00:00:00:00 dev vx0 dst 192.0.2.78 port 8472 vni 55 via veth0
fdb add 00:11:22:33:44:58 dev veth0 self
fdb add 00:11:22:33:44:59 dev veth1 master dynamic sticky
fdb add 00:11:22:33:44:5a dev veth1 master dynamic extern_learn
fdb add 00:11:22:33:44:5b dev vx0 nhid 21
";

/// A namespace with a row of every kind.
pub fn rich(tag: &str) -> Option<Netns> {
    lab::skip::unless(lab::skip::tun())?;
    lab::skip::unless(lab::skip::user(2_000))?;
    let netns = lab::skip::unless(Netns::new(tag))?;
    // Addresses are final at once instead of tentative for a second.
    netns
        .sysctl("net/ipv6/conf/default/accept_dad", "0")
        .unwrap();
    netns.ip_batch(RICH_LINKS).unwrap();
    let addresses = ["2001:db8::1", "2001:db8:1::1", "2001:db8:2::1", "::0.1.0.2"];
    wait_for_final_addresses(&netns, &addresses);
    netns.ip_batch(RICH_ROUTES).unwrap();
    let rule = "-6 rule add from 2001:db8::/32 lookup 100 pref 50";
    netns.ip(&rule.split(' ').collect::<Vec<_>>()).unwrap();
    for line in RICH_FDB.lines().filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        // A bridge without VLANs refuses the entry with one.
        let _ = netns.run("bridge", &words);
    }
    Some(netns)
}

/// Waits until IPv6 addresses are final: until the kernel has added their
/// local routes.
pub fn wait_for_final_addresses(netns: &Netns, addresses: &[&str]) {
    let patience = Duration::from_secs(10);
    lab::wait_until(patience, "final addresses", || {
        let local = netns
            .ip(&["-6", "route", "show", "table", "local"])
            .unwrap();
        let is_there = |address: &&str| local.contains(&format!("local {address} "));
        addresses.iter().all(is_there).then_some(())
    })
    .unwrap();
}

/// Waits until a link's own IPv6 address is final.
pub fn wait_for_link_local(netns: &Netns, link: &str) {
    let patience = Duration::from_secs(10);
    lab::wait_until(patience, "a final link-local address", || {
        let shown = netns
            .ip(&["-6", "-o", "addr", "show", "dev", link])
            .unwrap();
        let is_final = |line: &str| line.contains(" fe80:") && !line.contains("tentative");
        shown.lines().any(is_final).then_some(())
    })
    .unwrap();
}

/// Milliseconds since the UNIX epoch.
pub fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

/// The rows of a dump, in the kernel's order.
pub fn dump(netns: &Netns, request: Dump) -> Vec<Item> {
    netns.inside(|| dump_here(request)).unwrap()
}

fn dump_here(request: Dump) -> Vec<Item> {
    let mut socket = Socket::new(NETLINK_ROUTE).unwrap();
    socket.bind_auto().unwrap();
    socket.connect(&SocketAddr::new(0, 0)).unwrap();
    socket.set_netlink_get_strict_chk(true).unwrap();
    let mut bytes = Vec::new();
    request.encode(1, &mut bytes);
    socket.send(&bytes, 0).unwrap();
    let mut items = Vec::new();
    loop {
        let mut buffer = Vec::with_capacity(64 << 10);
        socket.recv(&mut buffer, 0).unwrap();
        for message in messages(&buffer) {
            match decode(&message.unwrap(), now_millis()).unwrap() {
                Decoded::Announcement(announcement) => items.push(announcement.item),
                Decoded::Done { errno, message } => {
                    assert_eq!(errno, 0, "{request:?}: {message:?}");
                    return items;
                }
                Decoded::Error { errno, message, .. } => {
                    panic!("{request:?}: errno {errno}, {message:?}")
                }
                _ => {}
            }
        }
    }
}

/// All rows of a namespace, by table, each in the kernel's order.
#[derive(Default)]
pub struct Rows {
    pub items: Vec<Item>,
}

impl Rows {
    pub fn of(netns: &Netns) -> Self {
        let neighbours = |proxy| Dump::Neighbours {
            family: 0,
            link: None,
            master: None,
            proxy,
        };
        let routes = |family| Dump::Routes {
            family,
            table: None,
            link: None,
            protocol: None,
            kind: None,
        };
        let requests = [
            Dump::Links { counters: false },
            Dump::Addresses {
                family: 0,
                link: None,
            },
            neighbours(false),
            neighbours(true),
            routes(2),
            routes(10),
            Dump::Nexthops,
            Dump::Rules { family: 2 },
            Dump::Rules { family: 10 },
            Dump::Fdb {
                link: None,
                master: None,
            },
        ];
        Self {
            items: requests
                .into_iter()
                .flat_map(|request| dump(netns, request))
                .collect(),
        }
    }

    /// The same in tables.
    pub fn tables(&self) -> Tables {
        let mut writer = Writer::new(Limits::default());
        let changes = self.items.iter().cloned().map(|item| match item {
            Item::Link(row) => Change::PutLink(row),
            Item::Address(row) => Change::PutAddress(row),
            Item::Neighbour(row) => Change::PutNeighbour(row),
            Item::Fdb(row) => Change::PutFdb(row),
            Item::Route(row) => Change::PutRoute(row, Placement::Last),
            Item::OtherRoute(row) => Change::PutOtherRoute(row),
            Item::Nexthop(row) => Change::PutNexthop(row),
            Item::Rule(row) => Change::PutRule(row),
        });
        writer.commit(changes).unwrap();
        writer.tables().clone()
    }

    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.items.iter().filter_map(|item| match item {
            Item::Link(link) => Some(link),
            _ => None,
        })
    }
}

/// Compares in a namespace, with a directory for messages and the library
/// that makes `ip` read them; skipped where one of these cannot be had.
pub fn beside_ip(tag: &str, compare: impl FnOnce(&Netns, &Path, &Path)) {
    let Some(netns) = lab::skip::unless(Netns::new(tag)) else {
        return;
    };
    let directory = std::env::temp_dir().join(format!("fp-{tag}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    if let Some(library) = lab::skip::unless(preloaded(&directory)) {
        compare(&netns, &directory, &library);
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

/// The library that makes `ip` read messages from a file.
fn preloaded(directory: &Path) -> anyhow::Result<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/listing.c");
    let library = directory.join("listing.so");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .args([source, "-ldl"])
        .output();
    match made {
        Ok(made) if made.status.success() => Ok(library),
        Ok(made) => panic!("{}", String::from_utf8_lossy(&made.stderr)),
        Err(why) => Err(anyhow::anyhow!("no C compiler: {why}")),
    }
}

/// The rows of a listing, as of the beginning of time.
pub fn rows_of(bytes: &[u8]) -> Rows {
    let items = messages(bytes).map(|message| match decode(&message.unwrap(), 0).unwrap() {
        Decoded::Announcement(announcement) => announcement.item,
        other => panic!("{other:?}"),
    });
    Rows {
        items: items.collect::<Vec<Item>>(),
    }
}
