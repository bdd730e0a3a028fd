//! A rule of policy routing.

use ipnet::IpNet;

use super::attributes::RawAttributes;
use super::route::table_id;

/// A rule (`RTM_NEWRULE` of `AF_INET` and `AF_INET6`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// `AF_INET` (2) or `AF_INET6` (10).
    pub family: u8,
    /// `FRA_PRIORITY`.
    pub priority: u32,
    /// `FRA_SRC`.
    pub source: Option<IpNet>,
    /// `FRA_DST`.
    pub destination: Option<IpNet>,
    /// `tos`.
    pub tos: u8,
    /// `FRA_TABLE`.
    pub table: u32,
    /// `action`: `FR_ACT_…` ([`action`]).
    pub action: u8,
    /// `flags`: `FIB_RULE_…` ([`flag`]).
    pub flags: u32,
    /// `FRA_IIFNAME`.
    pub iif: Option<Box<str>>,
    /// `FRA_OIFNAME`.
    pub oif: Option<Box<str>>,
    /// `FRA_FWMARK` and `FRA_FWMASK`.
    pub fwmark: Option<(u32, u32)>,
    /// `FRA_GOTO`: priority of the rule to go on with.
    pub goto: Option<u32>,
    /// `FRA_L3MDEV`: the table is that of the packet's VRF.
    pub l3mdev: bool,
    /// `FRA_UID_RANGE`, both ends included.
    pub uids: Option<(u32, u32)>,
    /// `FRA_IP_PROTO`.
    pub ip_protocol: Option<u8>,
    /// `FRA_SPORT_RANGE`, both ends included.
    pub source_ports: Option<(u16, u16)>,
    /// `FRA_DPORT_RANGE`, both ends included.
    pub destination_ports: Option<(u16, u16)>,
    /// `FRA_SUPPRESS_PREFIXLEN`.
    pub suppress_prefix_len: Option<u32>,
    /// `FRA_SUPPRESS_IFGROUP`.
    pub suppress_group: Option<u32>,
    /// `FRA_TUN_ID`.
    pub tunnel_id: Option<u64>,
    /// `FRA_FLOW`: realms.
    pub realms: Option<u32>,
    /// `FRA_PROTOCOL`.
    pub protocol: u8,
    /// What few rules ask for.
    pub rare: Option<Box<RareMatch>>,
}

impl Rule {
    /// Whether it is one of those that each namespace begins with.
    pub(crate) fn is_default(&self) -> bool {
        let default = Self {
            family: self.family,
            priority: self.priority,
            table: self.table,
            action: action::TO_TABLE,
            protocol: self.protocol,
            suppress_prefix_len: self.suppress_prefix_len,
            suppress_group: self.suppress_group,
            flags: self.flags & flag::PERMANENT,
            ..Self::default()
        };
        *self == default && DEFAULTS.contains(&(self.priority, self.table))
    }
}

/// Priorities and tables of the rules that each namespace begins with.
const DEFAULTS: [(u32, u32); 3] = [
    (0, table_id::LOCAL),
    (32_766, table_id::MAIN),
    (32_767, table_id::DEFAULT),
];

/// What rules of newer kernels can ask for, and what has no field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RareMatch {
    /// `FRA_DSCP`.
    pub dscp: Option<u8>,
    /// `FRA_DSCP_MASK`.
    pub dscp_mask: Option<u8>,
    /// `FRA_FLOWLABEL`.
    pub flow_label: Option<u32>,
    /// `FRA_FLOWLABEL_MASK`.
    pub flow_label_mask: Option<u32>,
    /// `FRA_SPORT_MASK`.
    pub source_port_mask: Option<u16>,
    /// `FRA_DPORT_MASK`.
    pub destination_port_mask: Option<u16>,
    /// Attributes not named in [`Rule`] and here, as they came.
    pub rest: RawAttributes,
}

/// `FR_ACT_…`, `linux/fib_rules.h`.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod action {
    pub const UNSPEC: u8 = 0;
    pub const TO_TABLE: u8 = 1;
    pub const GOTO: u8 = 2;
    pub const NOP: u8 = 3;
    pub const BLACKHOLE: u8 = 6;
    pub const UNREACHABLE: u8 = 7;
    pub const PROHIBIT: u8 = 8;
}

/// `FIB_RULE_…`, `linux/fib_rules.h`.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod flag {
    pub const PERMANENT: u32 = 1;
    pub const INVERT: u32 = 2;
    pub const UNRESOLVED: u32 = 4;
    pub const IIF_DETACHED: u32 = 8;
    pub const OIF_DETACHED: u32 = 16;
}
