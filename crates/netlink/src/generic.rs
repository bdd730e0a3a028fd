//! Generic netlink (`linux/genetlink.h`): how fast links are, which
//! rtnetlink does not tell and the family `ethtool` does
//! (`linux/ethtool_netlink.h`, Linux 5.6).
//!
//! A family's number is the kernel's choice: it is asked for by name
//! ([`get_family`], [`family_id`]), then the family may be asked
//! ([`dump_link_speeds`], [`link_speed`]). For the mirror of the `linux`
//! crate, on a socket of `NETLINK_GENERIC`.

use crate::attribute::{Attributes, NESTED};
use crate::build::Build;
use crate::decode::split;
use crate::malformed::{Malformed, TooLong};
use crate::message::flag;

/// Name of the family of [`dump_link_speeds`] (`ETHTOOL_GENL_NAME`).
pub const ETHTOOL: &str = "ethtool";

/// Bytes of `struct genlmsghdr`: command, version, 16 reserved bits.
const HEADER: usize = 4;

/// The family of families (`GENL_ID_CTRL`), and what is asked of it.
const CONTROLLER: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_VERSION: u8 = 2;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const CTRL_ATTR_MCAST_GROUPS: u16 = 7;
/// Inside each group of `MCAST_GROUPS`.
const CTRL_ATTR_MCAST_GRP_NAME: u16 = 1;
const CTRL_ATTR_MCAST_GRP_ID: u16 = 2;

const ETHTOOL_MSG_LINKMODES_GET: u8 = 4;
const ETHTOOL_VERSION: u8 = 1;
const ETHTOOL_A_LINKMODES_HEADER: u16 = 1;
const ETHTOOL_A_LINKMODES_SPEED: u16 = 5;
const ETHTOOL_A_LINKMODES_DUPLEX: u16 = 6;
/// Inside `LINKMODES_HEADER`.
const ETHTOOL_A_HEADER_DEV_INDEX: u16 = 1;
const ETHTOOL_A_HEADER_FLAGS: u16 = 3;
/// Modes as bits and not as a list of names, which is ten times as long.
const ETHTOOL_FLAG_COMPACT_BITSETS: u32 = 1;
/// `DUPLEX_FULL`; 0 is half, what is more is unknown.
const DUPLEX_FULL: u8 = 1;
/// `SPEED_UNKNOWN`, -1 (`linux/ethtool.h`).
const SPEED_UNKNOWN: u32 = u32::MAX;

/// Asks for the number of a family; the answer is read by [`family_id`].
/// A kernel without the family says `ENOENT`.
pub fn get_family(name: &str, sequence: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
    let header = [CTRL_CMD_GETFAMILY, CTRL_VERSION, 0, 0];
    let mut build = Build::start(out, CONTROLLER, flag::REQUEST, sequence, &header);
    build.put_text(CTRL_ATTR_FAMILY_NAME, name);
    build.end()
}

/// The number of the family that a payload (the answer to [`get_family`])
/// is about: the kind of its messages. O(attributes).
pub fn family_id(payload: &[u8]) -> Result<u16, Malformed> {
    const MESSAGE: &str = "CTRL_CMD_NEWFAMILY";
    let (_, mut attributes) = split::<HEADER>(payload, MESSAGE)?;
    while let Some(attribute) = attributes.step()? {
        if attribute.kind == CTRL_ATTR_FAMILY_ID {
            return attribute.u16();
        }
    }
    Err(Malformed::Missing {
        message: MESSAGE,
        attribute: "CTRL_ATTR_FAMILY_ID",
    })
}

/// The number of an event group of the family that a payload (the answer to
/// [`get_family`]) is about, by its name. O(attributes).
pub fn group_id(payload: &[u8], name: &str) -> Result<Option<u32>, Malformed> {
    let (_, mut attributes) = split::<HEADER>(payload, "CTRL_CMD_NEWFAMILY")?;
    while let Some(attribute) = attributes.step()? {
        if attribute.kind != CTRL_ATTR_MCAST_GROUPS {
            continue;
        }
        let mut groups = attribute.nested();
        while let Some(group) = groups.step()? {
            let (mut is_meant, mut id) = (false, None);
            let mut parts = group.nested();
            while let Some(part) = parts.step()? {
                match part.kind {
                    CTRL_ATTR_MCAST_GRP_NAME => is_meant = *part.text() == *name,
                    CTRL_ATTR_MCAST_GRP_ID => id = Some(part.u32()?),
                    _ => {}
                }
            }
            if is_meant {
                return Ok(id);
            }
        }
    }
    Ok(None)
}

/// Asks for the modes of all links of the namespace, their speed among
/// them; `family` is the number of [`ETHTOOL`]. Each answer is read by
/// [`link_speed`].
pub fn dump_link_speeds(family: u16, sequence: u32, out: &mut Vec<u8>) {
    let header = [ETHTOOL_MSG_LINKMODES_GET, ETHTOOL_VERSION, 0, 0];
    let flags = flag::REQUEST | flag::DUMP;
    let mut build = Build::start(out, family, flags, sequence, &header);
    let common = build.open(ETHTOOL_A_LINKMODES_HEADER | NESTED);
    build.put_u32(ETHTOOL_A_HEADER_FLAGS, ETHTOOL_FLAG_COMPACT_BITSETS);
    build.close(&common);
    build.end_small();
}

/// A link's index and its speed, Mb/s, from a payload that answers
/// [`dump_link_speeds`]; `None`: the kernel does not know the speed (no
/// carrier, or nothing that has one). O(attributes), no allocation.
pub fn link_speed(payload: &[u8]) -> Result<Option<(u32, u32)>, Malformed> {
    const MESSAGE: &str = "ETHTOOL_MSG_LINKMODES_GET_REPLY";
    let (_, mut attributes) = split::<HEADER>(payload, MESSAGE)?;
    let (mut link, mut speed) = (None, None);
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            ETHTOOL_A_LINKMODES_HEADER => link = device(attribute.nested())?,
            ETHTOOL_A_LINKMODES_SPEED => speed = Some(attribute.u32()?),
            _ => {}
        }
    }
    let link = link.ok_or(Malformed::Missing {
        message: MESSAGE,
        attribute: "ETHTOOL_A_HEADER_DEV_INDEX",
    })?;
    let known = speed.filter(|&speed| speed != SPEED_UNKNOWN);
    Ok(known.map(|speed| (link, speed)))
}

/// A link's index and its duplex (0 half, 1 full) from a payload that
/// answers [`dump_link_speeds`]; `None`: the kernel does not know it.
/// O(attributes), no allocation.
pub fn link_duplex(payload: &[u8]) -> Result<Option<(u32, u8)>, Malformed> {
    let (_, mut attributes) = split::<HEADER>(payload, "ETHTOOL_MSG_LINKMODES_GET_REPLY")?;
    let (mut link, mut duplex) = (None, None);
    while let Some(attribute) = attributes.step()? {
        match attribute.kind {
            ETHTOOL_A_LINKMODES_HEADER => link = device(attribute.nested())?,
            ETHTOOL_A_LINKMODES_DUPLEX => duplex = Some(attribute.u8()?),
            _ => {}
        }
    }
    let known = duplex.filter(|&duplex| duplex <= DUPLEX_FULL);
    Ok(link.zip(known))
}

fn device(mut common: Attributes<'_>) -> Result<Option<u32>, Malformed> {
    while let Some(attribute) = common.step()? {
        if attribute.kind == ETHTOOL_A_HEADER_DEV_INDEX {
            return attribute.u32().map(Some);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
