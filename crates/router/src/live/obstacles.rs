//! What the kernel would do to a packet on its way beside routing it, and the
//! program at XDP does not: each is named, and either accepted by name or the
//! packets stay the kernel's. Called by `live` with what [`Seen`] has of the
//! kernel; pure but for that.

mod filters;
mod links;
mod seen;
mod settings;

use std::fmt;

use serde::Deserialize;

#[cfg(test)]
pub use seen::PortSeen;
pub use seen::{Family, Seen, strict_sources};

/// A kind of obstacle: what `--accept` names.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Chains of nftables (iptables-nft's too) with rules, or that do not
    /// accept what comes to their end
    Nft,
    /// Tables of iptables' own kernel part (iptables-legacy)
    Iptables,
    /// Connections are tracked
    Conntrack,
    /// IPsec policies
    Xfrm,
    /// Filters at tc on a port: clsact, ingress, tcx
    Tc,
    /// A queueing discipline on a port that shapes or orders
    Qdisc,
    /// Policy rules by what the program does not tell the kernel
    Rule,
    /// Several next hops chosen by what the program does not tell the kernel
    Multipath,
    /// Links on a port that take packets to its address: ipvlan, macvlan in
    /// passthru or source mode
    Upper,
    /// A device may take VLAN tags off and not tell the program
    VlanTags,
    /// A port is in a bridge, bond or VRF. Cannot be accepted
    Member,
    /// A port is a bond: the program sees its frames as those of the links in
    /// it. Cannot be accepted
    Bond,
    /// Forwarding is off. Cannot be accepted
    Forwarding,
}

impl Kind {
    /// As `--accept` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nft => "nft",
            Self::Iptables => "iptables",
            Self::Conntrack => "conntrack",
            Self::Xfrm => "xfrm",
            Self::Tc => "tc",
            Self::Qdisc => "qdisc",
            Self::Rule => "rule",
            Self::Multipath => "multipath",
            Self::Upper => "upper",
            Self::VlanTags => "vlan-tags",
            Self::Member => "member",
            Self::Bond => "bond",
            Self::Forwarding => "forwarding",
        }
    }

    /// Whether somebody may say that it does not matter.
    pub fn is_acceptable(self) -> bool {
        !matches!(self, Self::Member | Self::Bond | Self::Forwarding)
    }
}

/// Which packets it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// All.
    All,
    /// Those of a family.
    Family(Family),
    /// Those that come in or leave by a port: the number of its link.
    Port(u32),
    /// Those of a family that come in by a port.
    Into(u32, Family),
}

/// Something that the kernel would do on the way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Obstacle {
    /// What it is, for `--accept`.
    pub kind: Kind,
    /// Which packets it meets.
    pub scope: Scope,
    /// In words: which chain, which filter.
    pub what: String,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.what)
    }
}

/// All that there is, in a stable order.
pub fn find(seen: &Seen) -> Vec<Obstacle> {
    let mut found = Vec::new();
    filters::find(seen, &mut found);
    links::find(seen, &mut found);
    settings::find(seen, &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests;
