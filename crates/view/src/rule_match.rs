//! Rules by what they ask for, as `ip rule show from 10.0.0.0/8 fwmark 1`
//! picks them. Called by [`crate::selection`].

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use table::Rule;
use table::row::rule::flag;

/// What rules must ask for; all that is set must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuleMatch {
    /// Rules that hold where the rest does not (`not`).
    pub inverted: bool,
    /// Whose sources are inside this prefix.
    pub from: Option<IpNet>,
    /// Whose destinations are inside this prefix.
    pub to: Option<IpNet>,
    /// Type of service.
    pub tos: Option<u8>,
    /// The mark.
    pub fwmark: Option<u32>,
    /// The mark's mask.
    pub fwmask: Option<u32>,
    /// The link that packets come in by.
    pub iif: Option<String>,
    /// The link that they leave by.
    pub oif: Option<String>,
    /// Rules for the table of the packet's VRF.
    pub l3mdev: bool,
    /// Users, both ends included.
    pub uids: Option<(u32, u32)>,
    /// IP protocol.
    pub ip_protocol: Option<u8>,
    /// Source ports, both ends included.
    pub source_ports: Option<(u16, u16)>,
    /// Destination ports, both ends included.
    pub destination_ports: Option<(u16, u16)>,
    /// Tunnel.
    pub tunnel_id: Option<u64>,
}

impl RuleMatch {
    /// Whether a rule asks for all of it. O(1).
    pub(crate) fn is_of(&self, row: &Rule) -> bool {
        /// What is not set holds for all.
        fn same<T: PartialEq>(wanted: Option<T>, has: Option<T>) -> bool {
            wanted.is_none() || wanted == has
        }
        let (mark, mask) = row.fwmark.unwrap_or_default();
        (!self.inverted || row.flags & flag::INVERT != 0)
            && inside(self.from, row.source)
            && inside(self.to, row.destination)
            && same(self.tos, Some(row.tos))
            && same(self.fwmark, Some(mark))
            && same(self.fwmask, Some(mask))
            && same(self.iif.as_deref(), row.iif.as_deref())
            && same(self.oif.as_deref(), row.oif.as_deref())
            && (!self.l3mdev || row.l3mdev)
            && same(self.uids, row.uids)
            && same(self.ip_protocol, row.ip_protocol)
            && same(self.source_ports, row.source_ports)
            && same(self.destination_ports, row.destination_ports)
            && same(self.tunnel_id, row.tunnel_id)
    }
}

/// Whether a rule's prefix, if it has one, is inside the wanted one.
fn inside(wanted: Option<IpNet>, has: Option<IpNet>) -> bool {
    match (wanted, has) {
        (None, _) => true,
        (Some(wanted), Some(has)) => wanted.contains(&has),
        (Some(wanted), None) => wanted.prefix_len() == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_picked_by_all_that_is_set() {
        let net = |text: &str| text.parse::<IpNet>().unwrap();
        let rule = Rule {
            source: Some(net("10.1.0.0/16")),
            fwmark: Some((1, 0xff)),
            iif: Some("v0".into()),
            ..Rule::default()
        };
        let picked = |wanted: RuleMatch| wanted.is_of(&rule);
        assert!(picked(RuleMatch::default()));
        let from = |text| RuleMatch {
            from: Some(net(text)),
            ..RuleMatch::default()
        };
        assert!(picked(from("10.0.0.0/8")) && picked(from("10.1.0.0/16")));
        assert!(!picked(from("10.1.1.0/24")) && !picked(from("10.2.0.0/16")));
        assert!(!picked(from("2001:db8::/32")));
        let marked = |fwmark| RuleMatch {
            fwmark: Some(fwmark),
            ..from("10.0.0.0/8")
        };
        assert!(picked(marked(1)) && !picked(marked(2)));
        let by = RuleMatch {
            oif: Some("v0".to_owned()),
            ..RuleMatch::default()
        };
        assert!(!picked(by));
    }
}
