//! `RTM_NEWNETCONF` with all that it says (`NETCONFA_…`, `linux/netconf.h`):
//! for who shows events. What the mirror wants of it are
//! [`super::Settings`].

use super::split;
use crate::kernel::netconfa;
use crate::malformed::Malformed;

/// Settings of a family on a link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Netconf {
    /// Address family.
    pub family: u8,
    /// A link's index; -1: all links, -2: those to come.
    pub link: Option<i32>,
    /// Settings in the message's order, by their numbers; those that are
    /// not named here are left out.
    pub settings: Vec<(NetconfSetting, i32)>,
}

/// What is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub enum NetconfSetting {
    Forwarding,
    RpFilter,
    McForwarding,
    ProxyNeigh,
    IgnoreRoutesWithLinkdown,
    Input,
}

/// Payload of `RTM_NEWNETCONF` or `RTM_DELNETCONF`. O(bytes).
pub fn netconf(payload: &[u8]) -> Result<Netconf, Malformed> {
    let ([family, ..], mut attributes) = split::<4>(payload, "netconf")?;
    let mut told = Netconf {
        family: *family,
        ..Netconf::default()
    };
    while let Some(attribute) = attributes.step()? {
        let setting = match attribute.kind {
            netconfa::IFINDEX => {
                told.link = Some(attribute.i32()?);
                continue;
            }
            netconfa::FORWARDING => NetconfSetting::Forwarding,
            netconfa::RP_FILTER => NetconfSetting::RpFilter,
            netconfa::MC_FORWARDING => NetconfSetting::McForwarding,
            netconfa::PROXY_NEIGH => NetconfSetting::ProxyNeigh,
            netconfa::IGNORE_ROUTES_WITH_LINKDOWN => NetconfSetting::IgnoreRoutesWithLinkdown,
            netconfa::INPUT => NetconfSetting::Input,
            _ => continue,
        };
        told.settings.push((setting, attribute.i32()?));
    }
    // As they are declared, which is how they are shown.
    told.settings.sort_unstable();
    Ok(told)
}
