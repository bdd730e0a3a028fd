//! Paths as an `UPDATE` tells them (RFC 4271 §4.3): for who tells rows
//! again that were read from such. AS numbers have four bytes.

use std::net::IpAddr;

use ipnet::IpNet;
use table::PathAttributes;
use table::row::path_attributes::number;

use crate::message::kind;

/// Every bit of a message's marker is set.
const MARKER: [u8; 16] = [0xff; 16];
/// Flags of an attribute: well known, and a length of two bytes. Who reads
/// here goes by the length alone.
const FLAGS: u8 = 0x40 | 0x10;
/// Where a message has its length.
const LENGTH_AT: usize = MARKER.len();

/// Appends a message by which a path is there to one prefix and more, all of
/// one family. `has_path_ids`: the session has path identifiers of that
/// family. It is to be of 65,535 bytes at most.
pub fn announce(
    out: &mut Vec<u8>,
    prefixes: &[IpNet],
    next_hop: Option<IpAddr>,
    path: &PathAttributes,
    has_path_ids: bool,
) {
    let path_id = path.path_id().unwrap_or_default();
    let path_id = has_path_ids.then_some(path_id);
    let mut said = Vec::new();
    for prefix in prefixes {
        put_prefix(&mut said, *prefix, path_id);
    }
    let is_v6 = matches!(prefixes.first(), Some(IpNet::V6(_)));
    let is_plain = !is_v6 && !matches!(next_hop, Some(IpAddr::V6(_)));
    let mut attributes = Vec::new();
    for (of, value) in path.iter().filter(|(of, _)| *of != number::PATH_ID) {
        put_attribute(&mut attributes, of, &[value]);
    }
    let hop = match next_hop {
        Some(IpAddr::V4(hop)) => hop.octets().to_vec(),
        Some(IpAddr::V6(hop)) => hop.octets().to_vec(),
        None => Vec::new(),
    };
    if !is_plain {
        // An AFI, unicast, the next hop behind its length, and a reserved
        // byte (RFC 4760 §3).
        let family = [0, 1 + u8::from(is_v6), 1, hop.len() as u8];
        let reach = [&family[..], &hop, &[0], &said];
        put_attribute(&mut attributes, number::MP_REACH, &reach);
        said.clear();
    } else if !hop.is_empty() {
        put_attribute(&mut attributes, number::NEXT_HOP, &[&hop]);
    }
    put_update(out, &[], &attributes, &said);
}

/// Appends a message by which a prefix is no longer there.
pub fn withdraw(out: &mut Vec<u8>, prefix: IpNet, path_id: Option<u32>) {
    let mut said = Vec::new();
    put_prefix(&mut said, prefix, path_id);
    let mut attributes = Vec::new();
    if matches!(prefix, IpNet::V6(_)) {
        put_attribute(&mut attributes, number::MP_UNREACH, &[&[0, 2, 1], &said]);
        said.clear();
    }
    put_update(out, &said, &attributes, &[]);
}

/// Appends the End-of-RIB of a family (RFC 4724 §2).
pub fn end_of_rib(out: &mut Vec<u8>, is_v6: bool) {
    let mut attributes = Vec::new();
    if is_v6 {
        put_attribute(&mut attributes, number::MP_UNREACH, &[&[0, 2, 1]]);
    }
    put_update(out, &[], &attributes, &[]);
}

fn put_prefix(out: &mut Vec<u8>, prefix: IpNet, path_id: Option<u32>) {
    if let Some(id) = path_id {
        out.extend(id.to_be_bytes());
    }
    out.push(prefix.prefix_len());
    let bytes = usize::from(prefix.prefix_len()).div_ceil(8);
    match prefix.network() {
        IpAddr::V4(network) => out.extend(network.octets().iter().take(bytes)),
        IpAddr::V6(network) => out.extend(network.octets().iter().take(bytes)),
    }
}

fn put_attribute(out: &mut Vec<u8>, of: u8, value: &[&[u8]]) {
    let len: usize = value.iter().map(|part| part.len()).sum();
    out.extend([FLAGS, of]);
    out.extend((len as u16).to_be_bytes());
    value.iter().for_each(|part| out.extend_from_slice(part));
}

fn put_update(out: &mut Vec<u8>, withdrawn: &[u8], attributes: &[u8], announced: &[u8]) {
    let begin = out.len();
    out.extend(MARKER);
    out.extend([0, 0, kind::UPDATE]);
    out.extend((withdrawn.len() as u16).to_be_bytes());
    out.extend_from_slice(withdrawn);
    out.extend((attributes.len() as u16).to_be_bytes());
    out.extend_from_slice(attributes);
    out.extend_from_slice(announced);
    let len = (out.len() - begin) as u16;
    if let Some(place) = out.get_mut(begin + LENGTH_AT..begin + LENGTH_AT + 2) {
        place.copy_from_slice(&len.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::as_path::AsSize;
    use crate::paths::{Said, each};
    use crate::update::{Session, Update};

    fn read(message: &[u8], has_path_ids: bool) -> Vec<Said> {
        let session = Session {
            as_size: AsSize::Four,
            has_path_ids: [has_path_ids; 2],
        };
        let update = Update::of_message(message, session).unwrap().unwrap();
        let mut all = Vec::new();
        each(&update, AsSize::Four, |said| all.push(said.unwrap()));
        all
    }

    #[test]
    fn what_was_told_is_read() {
        let path = [2, 1, 0, 0, 0xfd, 0xe9];
        let long = [7; 400];
        let id = 9_u32.to_be_bytes();
        for (prefixes, hop, has_ids) in [
            (
                &["10.0.0.0/8", "0.0.0.0/0", "192.0.2.1/32"][..],
                "192.0.2.9",
                false,
            ),
            (&["10.0.0.0/9"], "2001:db8::9", true),
            (&["2001:db8::/33", "::/0"], "2001:db8::9", true),
            (&["2001:db8::/128"], "2001:db8::9", false),
            (&["10.0.0.0/8"], "", true),
        ] {
            let prefixes: Vec<IpNet> = prefixes.iter().map(|one| one.parse().unwrap()).collect();
            let hop: Option<IpAddr> = hop.parse().ok();
            let attributes = [
                (number::ORIGIN, &[0][..]),
                (number::AS_PATH, &path),
                (number::COMMUNITIES, &long),
            ];
            let id = has_ids.then_some((number::PATH_ID, &id[..]));
            let path = PathAttributes::pack(id.into_iter().chain(attributes));
            let mut message = Vec::new();
            announce(&mut message, &prefixes, hop, &path, has_ids);
            let body = crate::body::body(hop, path);
            let expected: Vec<Said> = prefixes
                .iter()
                .map(|prefix| Said::There(*prefix, body.clone()))
                .collect();
            assert_eq!(read(&message, has_ids), expected);
        }
        for (prefix, path_id) in [("10.0.0.0/8", None), ("2001:db8::/32", Some(7))] {
            let prefix = prefix.parse().unwrap();
            let mut message = Vec::new();
            withdraw(&mut message, prefix, path_id);
            let gone = Said::Gone(prefix, path_id);
            assert_eq!(read(&message, path_id.is_some()), [gone]);
        }
        for is_v6 in [false, true] {
            let mut message = Vec::new();
            end_of_rib(&mut message, is_v6);
            let session = Session {
                as_size: AsSize::Four,
                has_path_ids: [false; 2],
            };
            let update = Update::of_message(&message, session).unwrap().unwrap();
            assert_eq!(update.end_of_rib(), Some(is_v6));
        }
    }
}
