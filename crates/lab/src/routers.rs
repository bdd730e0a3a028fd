//! Three routers in a row, with FRR (OSPF, OSPFv3 and BGP) in each and the
//! program forwarding at XDP on all their ports; a host at each end.
//!
//! ```text
//! left --- one --- two --- three --- right
//! ```
//!
//! The hosts' networks are told by BGP alone, whose sessions stand between
//! loopback addresses that OSPF tells. [`Routers::build`] makes it, `check`
//! has what is looked at, for tests and for `cargo xtask lab router`.

pub mod check;
mod forwarding;
mod frr;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::{Netns, wait_until};
pub use forwarding::Forwarding;
pub use frr::Frr;

/// For routing to converge on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// The MTU of all cables.
const MTU: u32 = 9_000;

/// A router: its namespace, FRR and the program.
#[derive(Debug)]
pub struct Router {
    /// Where it is.
    pub netns: Netns,
    /// Its routing daemons.
    pub frr: Frr,
    /// What forwards.
    pub forwarding: Forwarding,
}

/// All of it.
#[derive(Debug)]
pub struct Routers {
    /// Left, middle, right.
    pub routers: [Router; 3],
    /// The hosts.
    pub hosts: [Netns; 2],
    directory: PathBuf,
}

impl Routers {
    /// Builds it with `program`, and waits until all routes are there and all
    /// ports forward. Files lie in a directory that is there. Some ten
    /// seconds, most of them FRR's.
    pub fn build(tag: &str, program: &Path, directory: &Path) -> Result<Self> {
        let netns = |name: &str| Netns::new(&format!("{tag}{name}"));
        let nodes = [netns("1")?, netns("2")?, netns("3")?];
        let hosts = [netns("l")?, netns("r")?];
        for netns in nodes.iter().chain(&hosts) {
            quiet(netns)?;
        }
        cable(&nodes[0], "e2", &nodes[1], "e1")?;
        cable(&nodes[1], "e3", &nodes[2], "e2")?;
        for (node, host, number) in [(&nodes[0], &hosts[0], 1), (&nodes[2], &hosts[1], 3)] {
            cable(node, "lan", host, "eth0")?;
            connect(node, host, number)?;
        }
        for (node, number) in nodes.iter().zip(1..) {
            furnish(node, number)?;
        }
        let mut routers = Vec::new();
        for ((netns, ports), number) in nodes.into_iter().zip(PORTS).zip(1..) {
            routers.push(start(netns, ports, number, program, directory)?);
        }
        let routers: [Router; 3] = routers.try_into().ok().context("there are three routers")?;
        let built = Self {
            routers,
            hosts,
            directory: directory.to_owned(),
        };
        built.until_converged()?;
        Ok(built)
    }

    /// Waits until both hosts' networks are known everywhere.
    fn until_converged(&self) -> Result<()> {
        for (at, unknown) in [(0, "3"), (1, "1"), (1, "3"), (2, "1")] {
            let netns = &self.routers[at].netns;
            for (family, prefix) in [
                ("-4", format!("172.16.{unknown}.0/24")),
                ("-6", format!("2001:db8:{unknown}::/64")),
            ] {
                wait_until(PATIENCE, &format!("{prefix} by BGP"), || {
                    let shown = netns.ip(&[family, "route", "show", &prefix, "proto", "bgp"]);
                    shown.is_ok_and(|shown| !shown.is_empty()).then_some(())
                })?;
            }
        }
        for router in &self.routers {
            router.forwarding.until_all_forward()?;
        }
        Ok(())
    }

    /// A directory of its own below that of [`Routers::build`].
    fn directory(&self, name: &str) -> Result<PathBuf> {
        made(&self.directory, name)
    }
}

/// The ports of each router.
const PORTS: [&[&str]; 3] = [&["lan", "e2"], &["e1", "e3"], &["e2", "lan"]];

fn made(directory: &Path, name: &str) -> Result<PathBuf> {
    let made = directory.join(name);
    fs::create_dir(&made).with_context(|| made.display().to_string())?;
    Ok(made)
}

fn quiet(netns: &Netns) -> Result<()> {
    for (key, value) in [
        ("net/ipv4/ip_forward", "1"),
        ("net/ipv6/conf/all/forwarding", "1"),
        ("net/ipv6/conf/all/accept_dad", "0"),
        ("net/ipv6/conf/default/accept_dad", "0"),
        ("net/ipv4/icmp_ratelimit", "0"),
        ("net/ipv6/icmp/ratelimit", "0"),
    ] {
        netns.sysctl(key, value)?;
    }
    netns.ip(&["link", "set", "lo", "up"])?;
    Ok(())
}

fn cable(one: &Netns, name: &str, other: &Netns, peer: &str) -> Result<()> {
    one.ip_batch(&format!(
        "link add {name} mtu {MTU} type veth peer name {peer} mtu {MTU} netns {}\n\
         link set {name} up\n",
        other.name()
    ))?;
    other.ip(&["link", "set", peer, "up"])?;
    Ok(())
}

/// A host's addresses and those of its router. It finishes its checksums
/// itself, as one with a real network card does.
fn connect(node: &Netns, host: &Netns, number: u8) -> Result<()> {
    node.ip_batch(&format!(
        "addr add 172.16.{number}.1/24 dev lan\n\
         addr add 2001:db8:{number}::1/64 dev lan nodad\n"
    ))?;
    host.ip_batch(&format!(
        "addr add 172.16.{number}.2/24 dev eth0\n\
         addr add 2001:db8:{number}::2/64 dev eth0 nodad\n\
         route add default via 172.16.{number}.1\n\
         route add default via 2001:db8:{number}::1\n"
    ))?;
    host.run("ethtool", &["-K", "eth0", "gro", "on", "tx", "off"])?;
    Ok(())
}

/// Addresses of a router: its loopbacks, and those between routers.
fn furnish(node: &Netns, number: u8) -> Result<()> {
    let mut lines = format!(
        "addr add 10.9.9.{number}/32 dev lo\n\
         addr add 2001:db8:9::{number}/128 dev lo nodad\n"
    );
    for other in neighbours(number) {
        let [low, high] = [number.min(other), number.max(other)];
        lines.push_str(&format!(
            "addr add 10.{low}{high}.0.{number}/24 dev e{other}\n\
             addr add 2001:db8:{low}{high}::{number}/64 dev e{other} nodad\n"
        ));
    }
    node.ip_batch(&lines)
}

/// The routers beside a router.
fn neighbours(number: u8) -> Vec<u8> {
    match number {
        2 => vec![1, 3],
        _ => vec![2],
    }
}

fn start(
    netns: Netns,
    ports: &[&str],
    number: u8,
    program: &Path,
    directory: &Path,
) -> Result<Router> {
    let of_program = made(directory, &format!("router{number}"))?;
    let forwarding = Forwarding::start(&netns, program, &of_program, ports, &[])?;
    let of_frr = made(directory, &format!("frr{number}"))?;
    let daemons = [
        ("ospfd", ospf(number)),
        ("ospf6d", ospf6(number)),
        ("bgpd", bgp(number)),
    ];
    let frr = Frr::start(&netns, &of_frr, &daemons)?;
    Ok(Router {
        netns,
        frr,
        forwarding,
    })
}

/// A neighbour that is not heard for four seconds is gone.
fn ospf(number: u8) -> String {
    let mut text = format!(
        "router ospf\n ospf router-id 9.9.9.{number}\n network 10.0.0.0/8 area 0\n \
         timers throttle spf 50 100 500\n"
    );
    for other in neighbours(number) {
        text.push_str(&format!(
            "interface e{other}\n ip ospf hello-interval 1\n ip ospf dead-interval 4\n \
             ip ospf network point-to-point\n"
        ));
    }
    text
}

fn ospf6(number: u8) -> String {
    let mut text = format!(
        "router ospf6\n ospf6 router-id 9.9.9.{number}\n timers throttle spf 50 100 500\nexit\n\
         interface lo\n ipv6 ospf6 area 0\n"
    );
    for other in neighbours(number) {
        text.push_str(&format!(
            "interface e{other}\n ipv6 ospf6 area 0\n ipv6 ospf6 hello-interval 1\n \
             ipv6 ospf6 dead-interval 4\n ipv6 ospf6 network point-to-point\n"
        ));
    }
    text
}

fn bgp(number: u8) -> String {
    let others: Vec<u8> = (1..=3).filter(|other| *other != number).collect();
    let mut text = format!(
        "router bgp 65000\n bgp router-id 9.9.9.{number}\n no bgp default ipv4-unicast\n \
         no bgp network import-check\n timers bgp 1 4\n"
    );
    let families = [("ipv4", "10.9.9."), ("ipv6", "2001:db8:9::")];
    for (_, beginning) in families {
        for other in &others {
            let peer = format!("{beginning}{other}");
            text.push_str(&format!(
                " neighbor {peer} remote-as 65000\n \
                 neighbor {peer} update-source {beginning}{number}\n \
                 neighbor {peer} timers connect 1\n"
            ));
        }
    }
    for (family, beginning) in families {
        text.push_str(&format!(" address-family {family} unicast\n"));
        if number != 2 {
            text.push_str(&match family {
                "ipv4" => format!("  network 172.16.{number}.0/24\n"),
                _ => format!("  network 2001:db8:{number}::/64\n"),
            });
        }
        for other in &others {
            text.push_str(&format!(
                "  neighbor {beginning}{other} activate\n  neighbor {beginning}{other} next-hop-self\n"
            ));
        }
        text.push_str(" exit-address-family\n");
    }
    text
}
