//! `struct netconfmsg` and `NETCONFA_…` (`linux/netconf.h`) to
//! [`Settings`].

use super::split;
use crate::kernel::netconfa;
use crate::malformed::Malformed;

const MESSAGE: &str = "settings";
/// One byte, and three to the next attribute.
const HEADER: usize = 4;

/// Settings of a link, or of all, that the kernel announces
/// (`RTM_NEWNETCONF`): what of them decides where packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Address family.
    pub family: u8,
    /// The link; `None`: all links.
    pub link: Option<u32>,
    /// `ignore_routes_with_linkdown`, where the message has it.
    pub ignores_linkdown: Option<bool>,
    /// `forwarding`, where the message has it.
    pub forwards: Option<bool>,
}

/// Payload of `RTM_NEWNETCONF`; `None`: what holds for links to come.
/// O(bytes).
pub fn settings(payload: &[u8]) -> Result<Option<Settings>, Malformed> {
    let ([family, ..], mut attributes) = split::<HEADER>(payload, MESSAGE)?;
    let mut index = None;
    let mut ignores_linkdown = None;
    let mut forwards = None;
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            netconfa::IFINDEX => index = Some(attribute.i32()?),
            netconfa::IGNORE_ROUTES_WITH_LINKDOWN => {
                ignores_linkdown = Some(attribute.i32()? != 0);
            }
            netconfa::FORWARDING => forwards = Some(attribute.i32()? != 0),
            _ => {}
        }
    }
    let link = match index {
        Some(netconfa::IFINDEX_ALL) => None,
        Some(index) if index > 0 => u32::try_from(index).ok(),
        _ => return Ok(None),
    };
    Ok(Some(Settings {
        family: *family,
        link,
        ignores_linkdown,
        forwards,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_all_links_and_those_to_come_are_told_apart() {
        let message = |index: i32| {
            let mut bytes = vec![2, 0, 0, 0, 8, 0, 1, 0];
            bytes.extend(index.to_ne_bytes());
            bytes.extend([8, 0, 6, 0, 1, 0, 0, 0]);
            bytes.extend([8, 0, 2, 0, 0, 0, 0, 0]);
            bytes
        };
        let of = |index| settings(&message(index)).unwrap();
        assert_eq!(of(7).unwrap().link, Some(7));
        let all = of(-1).unwrap();
        assert_eq!(
            (all.family, all.link, all.ignores_linkdown),
            (2, None, Some(true))
        );
        assert_eq!(all.forwards, Some(false));
        assert_eq!(of(-2), None);
        assert!(settings(&[2]).is_err());
    }
}
