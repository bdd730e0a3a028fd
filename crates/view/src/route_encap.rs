//! Lightweight tunnels of next hops (`RTA_ENCAP`) as `ip route` shows them.

use netlink::attribute::{self, address};
use table::RawAttributes;

use crate::attributes::{network_number, number};
use crate::fields::{Value, Visit, push_plain};
use crate::format::push_u64;

/// `LWTUNNEL_ENCAP_…` of `linux/lwtunnel.h` by number.
const TYPES: [&str; 11] = [
    "none",
    "mpls",
    "ip",
    "ila",
    "ip6",
    "seg6",
    "bpf",
    "seg6local",
    "rpl",
    "ioam6",
    "xfrm",
];
const MPLS: u16 = 1;
const IP: u16 = 2;
const IP6: u16 = 4;
const SEG6: u16 = 5;

/// `SEG6_IPTUN_MODE_…` of `linux/seg6_iptunnel.h`.
const SEG6_MODES: [&str; 5] = ["inline", "encap", "l2encap", "encap.red", "l2encap.red"];
const SRH_BYTES: usize = 8;

type Encap = (u16, RawAttributes);

fn type_name(kind: u16) -> Value<'static> {
    TYPES
        .get(usize::from(kind))
        .map_or(Value::Number(kind.into()), |name| Value::Text(name))
}

/// The fields that text and JSON have in common: JSON key, text label,
/// value.
fn each(encap: &Encap, mut each: impl FnMut(&'static str, Value<'_>)) {
    let (kind, data) = encap;
    let of = |kind| attribute::value(data.bytes(), kind);
    match *kind {
        // LWTUNNEL_IP_… and LWTUNNEL_IP6_…: id, destination, source, TTL,
        // TOS.
        IP | IP6 => {
            let (ttl, tos) = if *kind == IP {
                ("ttl", "tos")
            } else {
                ("hoplimit", "tc")
            };
            if let Some(id) = of(1).and_then(network_number) {
                each("id", Value::Number(id));
            }
            for (key, attribute) in [("src", 3), ("dst", 2)] {
                if let Some(address) = of(attribute).and_then(address) {
                    each(key, Value::Address(address));
                }
            }
            for (key, attribute) in [(ttl, 4), (tos, 5)] {
                if let Some(value) = of(attribute).and_then(number) {
                    each(key, Value::Number(value));
                }
            }
        }
        // MPLS_IPTUNNEL_DST, MPLS_IPTUNNEL_TTL.
        MPLS => {
            if let Some(labels) = of(1) {
                each("dst", Value::Text(&label_stack(labels)));
            }
            if let Some(ttl) = of(2).and_then(number) {
                each("ttl", Value::Number(ttl));
            }
        }
        _ => {}
    }
}

/// MPLS labels (RFC 3032: twenty bits of each word) with slashes.
fn label_stack(labels: &[u8]) -> String {
    let mut text = Vec::new();
    for label in labels.as_chunks::<4>().0 {
        if !text.is_empty() {
            text.push(b'/');
        }
        push_u64(&mut text, (u32::from_be_bytes(*label) >> 12).into());
    }
    String::from_utf8(text).unwrap_or_default()
}

/// The mode and the segments of `SEG6_IPTUNNEL_SRH`: a mode, then a segment
/// routing header (RFC 8754), whose list runs from the last segment.
fn segments(data: &RawAttributes) -> Option<(Value<'static>, Vec<Value<'static>>)> {
    let payload = attribute::value(data.bytes(), 1)?;
    let (mode, header) = payload.split_first_chunk::<4>()?;
    let mode = u32::from_ne_bytes(*mode);
    let mode = SEG6_MODES
        .get(mode as usize)
        .map_or(Value::Number(mode.into()), |name| Value::Text(name));
    let first = usize::from(*header.get(4)?);
    let segments = header
        .get(SRH_BYTES..)?
        .as_chunks::<16>()
        .0
        .iter()
        .take(first + 1)
        .rev()
        .filter_map(|octets| address(octets).map(Value::Address))
        .collect();
    Some((mode, segments))
}

/// The fields of a next hop's tunnel, if it has one. (Yes, they repeat the
/// keys of the route: so does `ip -j`.)
#[inline]
pub(crate) fn encap_fields(encap: Option<&Encap>, visit: &mut impl Visit) {
    let Some(encap) = encap else {
        return;
    };
    visit.value("encap", type_name(encap.0));
    if encap.0 == SEG6
        && let Some((mode, segments)) = segments(&encap.1)
    {
        visit.value("mode", mode);
        visit.list("segs");
        for segment in segments {
            visit.item(segment);
        }
        visit.end_list();
    }
    each(encap, |key, value| visit.value(key, value));
}

/// The same as text.
#[inline]
pub(crate) fn encap_text(encap: Option<&Encap>, out: &mut Vec<u8>) {
    let Some(encap) = encap else {
        return;
    };
    let mut word = |label: &str, value: Value<'_>| {
        out.extend_from_slice(label.as_bytes());
        push_plain(out, value);
        out.push(b' ');
    };
    word(" encap ", type_name(encap.0));
    if encap.0 == SEG6
        && let Some((mode, segments)) = segments(&encap.1)
    {
        word("mode ", mode);
        word("segs ", Value::Number(segments.len() as u64));
        word("", Value::Text("["));
        for segment in segments {
            word("", segment);
        }
        word("", Value::Text("]"));
    }
    each(encap, |key, value| {
        // MPLS labels stand without a name of their own.
        if encap.0 != MPLS || key != "dst" {
            word(key, Value::Text(""));
        }
        word("", value);
    });
}
