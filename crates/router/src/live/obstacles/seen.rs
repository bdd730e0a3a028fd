//! What is looked at of the kernel for obstacles, in one look. Called by
//! `live`; the finding of obstacles goes by this alone.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use dataplane::xdp;
use linux::{Namespace, on_the_way};
use netlink::on_the_way::{BaseChain, Qdisc, XdpFeatures};
use table::{Link, Rule};

/// An address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// As users know it.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

/// A port, as far as obstacles go.
#[derive(Debug, Clone, Default)]
pub struct PortSeen {
    /// Its link.
    pub link: Link,
    /// What it can do at XDP; `None` where the kernel does not tell.
    pub features: Option<XdpFeatures>,
    /// Whether the program that is attached to it asks for VLAN tags.
    pub asks_tags: bool,
    /// Programs at tc without a qdisc.
    pub tcx_programs: u32,
    /// `net.ipv4.conf.NAME.rp_filter`.
    pub rp_filter: u32,
}

/// What there is.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// All links.
    pub links: Vec<Link>,
    /// The ports that are there.
    pub ports: Vec<PortSeen>,
    /// nftables' base chains.
    pub chains: Vec<BaseChain>,
    /// Address families of IPsec's policies.
    pub policies: Vec<u16>,
    /// Queueing disciplines.
    pub qdiscs: Vec<Qdisc>,
    /// Policy rules.
    pub rules: Vec<Rule>,
    /// Tables of iptables' own kernel part.
    pub iptables: Vec<(Family, String)>,
    /// Connections that are tracked.
    pub connections: u64,
    /// `net.ipv4.conf.all.rp_filter`.
    pub rp_filter: u32,
    /// `net.ipv4.conf.lo.forwarding`.
    pub loopback_forwards: bool,
    /// `net.ipv6.conf.all.forwarding`.
    pub forwards_v6: bool,
    /// `net.ipv4.fib_multipath_hash_policy` and that of IPv6.
    pub hash_policies: [u32; 2],
}

/// A port that is looked at: its name, and whether its program asks for tags.
pub type Wanted<'a> = (&'a str, bool);

impl Seen {
    /// Looks. `ports` are looked for by name.
    pub fn look(namespace: &Namespace, ports: &[Wanted<'_>]) -> Result<Self> {
        let links = on_the_way::links(namespace).context("listing the links")?;
        let ports = ports_of(namespace, &links, ports)?;
        let mut iptables = Vec::new();
        for (family, file) in [
            (Family::V4, "ip_tables_names"),
            (Family::V6, "ip6_tables_names"),
        ] {
            let path = format!("/proc/thread-self/net/{file}");
            let names = fs::read_to_string(path).unwrap_or_default();
            iptables.extend(names.lines().map(|name| (family, name.to_owned())));
        }
        Ok(Self {
            ports,
            chains: on_the_way::base_chains(namespace).context("listing nftables' chains")?,
            policies: on_the_way::policies(namespace).context("listing IPsec's policies")?,
            qdiscs: on_the_way::qdiscs(namespace).context("listing queueing disciplines")?,
            rules: on_the_way::rules(namespace).context("listing the rules")?,
            links,
            iptables,
            connections: setting("netfilter/nf_conntrack_count").unwrap_or(0),
            rp_filter: setting("ipv4/conf/all/rp_filter").unwrap_or(0),
            loopback_forwards: setting("ipv4/conf/lo/forwarding").unwrap_or(0_u32) != 0,
            forwards_v6: setting("ipv6/conf/all/forwarding").unwrap_or(0_u32) != 0,
            hash_policies: [
                setting("ipv4/fib_multipath_hash_policy").unwrap_or(0),
                setting("ipv6/fib_multipath_hash_policy").unwrap_or(0),
            ],
        })
    }

    /// The port of a name, if it is there.
    pub fn port(&self, name: &str) -> Option<&PortSeen> {
        self.ports.iter().find(|port| *port.link.name == *name)
    }
}

fn ports_of(namespace: &Namespace, links: &[Link], ports: &[Wanted<'_>]) -> Result<Vec<PortSeen>> {
    let mut seen = Vec::new();
    for (name, asks_tags) in ports {
        let link = links.iter().find(|link| *link.name == **name);
        let Some(link) = link else { continue };
        seen.push(PortSeen {
            link: link.clone(),
            asks_tags: *asks_tags,
            tcx_programs: xdp::tcx_programs(link.index).unwrap_or(0),
            rp_filter: setting(&format!("ipv4/conf/{name}/rp_filter")).unwrap_or(0),
            features: None,
        });
    }
    let indexes: Vec<u32> = seen.iter().map(|port| port.link.index).collect();
    let features = on_the_way::xdp_features_of(namespace, &indexes);
    for (port, features) in seen
        .iter_mut()
        .zip(features.context("asking what ports can do")?)
    {
        port.features = features;
    }
    Ok(seen)
}

/// A setting of this namespace below `/proc/sys/net`; `None` where there is
/// none.
fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = fs::read_to_string(Path::new("/proc/sys/net").join(name)).ok()?;
    text.trim().parse().ok()
}

/// Whether sources have to be behind the link that they come by: the stronger
/// of both settings counts (`ip-sysctl.rst`).
pub fn strict_sources(seen: &Seen, port: &PortSeen) -> bool {
    seen.rp_filter.max(port.rp_filter) == 1
}
