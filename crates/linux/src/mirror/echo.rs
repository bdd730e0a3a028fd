//! Copies of requests: what the kernel announces of a forwarding entry beside
//! what its device says. Pure. For the machine.
//!
//! Up to Linux 6.14 `rtnl_fdb_add` and `rtnl_fdb_del` announce each request
//! for a device's own entry as it was made, with address and VLAN alone. For
//! most devices nothing else tells of it. A VXLAN device and a bridge have
//! told of it already, whole (`vxlan_fdb_notify`, `fdb_notify`); the copy knows
//! no remote end, and is of no entry that they list.

use netlink::decode::{Announcement, Item, neighbour_ages};
use table::{FdbEntry, Tables};

/// The kinds of links that tell of their entries themselves.
const TELL: [&str; 2] = ["vxlan", "bridge"];

/// Whether an announcement, whose message has this payload, is a copy that
/// says less than what was said before: it has no ages, which every entry has.
pub(crate) fn is_echo(tables: &Tables, announcement: &Announcement, payload: &[u8]) -> bool {
    match &announcement.item {
        Item::Fdb(row) => tells_itself(tables, row) && neighbour_ages(payload).is_none(),
        _ => false,
    }
}

/// Whether an entry is of a device that tells of it, and not of its bridge.
fn tells_itself(tables: &Tables, row: &FdbEntry) -> bool {
    let link = tables.links.get(row.link).filter(|_| row.master.is_none());
    let kind = link.and_then(|link| link.kind.as_deref());
    kind.is_some_and(|kind| TELL.contains(&kind))
}

#[cfg(test)]
mod tests {
    use netlink::decode::Operation;
    use netlink::encode::{self, Request};
    use netlink::message::messages;
    use table::{Change, Link, LinkLayerAddress, Writer};

    use super::*;

    /// `struct ndmsg`, `NDA_LLADDR`, and `NDA_CACHEINFO` where there is one.
    fn payload(row: &FdbEntry, has_ages: bool) -> Vec<u8> {
        let mut request = Vec::new();
        let asked = Request::plain(Operation::New, 1);
        encode::fdb(&mut request, &asked, row).unwrap();
        let message = messages(&request).next().unwrap().unwrap();
        let mut payload = message.payload.to_vec();
        if has_ages {
            payload.extend(20u16.to_ne_bytes());
            payload.extend(3u16.to_ne_bytes());
            payload.extend([0; 16]);
        }
        payload
    }

    #[test]
    fn what_a_device_tells_itself_is_not_believed_again() {
        let mut writer = Writer::default();
        for (index, kind) in [(1, Some("vxlan")), (2, Some("bridge")), (3, None)] {
            let link = Link {
                index,
                name: format!("e{index}").into(),
                kind: kind.map(Into::into),
                ..Link::default()
            };
            writer.apply(Change::PutLink(link)).unwrap();
        }
        let is_echo = |link, master, has_ages| {
            let row = FdbEntry {
                link,
                master,
                lladdr: LinkLayerAddress::new(&[2, 0, 0, 0, 0, 1]).unwrap(),
                ..FdbEntry::default()
            };
            let payload = payload(&row, has_ages);
            let announcement = Announcement {
                operation: Operation::New,
                flags: 0,
                is_requested: false,
                item: Item::Fdb(row),
            };
            is_echo(writer.tables(), &announcement, &payload)
        };
        assert!(is_echo(1, None, false) && is_echo(2, None, false));
        // What they tell themselves, and what nobody else tells.
        assert!(!is_echo(1, None, true) && !is_echo(2, None, true));
        assert!(!is_echo(3, None, false) && !is_echo(1, Some(2), false));
    }
}
