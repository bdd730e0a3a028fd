//! `encap mpls 100/200`, `encap ip id 5 dst 192.0.2.1`, `encap seg6 mode
//! encap segs fc00::1,fc00::2`, `encap seg6local action End.DT6 table 100`:
//! how a next hop wraps packets, as `ip` has it; and what `ip route show`
//! prints of it. Called by the readers of routes and of next hops.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use table::row::encap::{IpTunnel, Mpls};
use table::row::segments::{Seg6, Seg6Local, SegmentHeader};
use table::{Encap, RawAttributes, Tunnel};

use crate::NameFile;
use crate::line::{Context, ParseError, Words, address, number, wrong};

/// The largest label (RFC 3032 §2.1: twenty bits).
const MAX_LABEL: u32 = (1 << 20) - 1;
/// Labels at most, as many as the kernel takes (`MAX_NEW_LABELS`).
const MAX_LABELS: usize = 30;
/// Segments at most (RFC 8754: a byte counts them in halves).
const MAX_SEGMENTS: usize = 127;

/// `SEG6_IPTUN_MODE_…` by number, `linux/seg6_iptunnel.h`.
pub const SEG6_MODES: [&str; 5] = ["inline", "encap", "l2encap", "encap.red", "l2encap.red"];
/// The mode whose packets keep their own destination as the last segment.
const INLINE: u32 = 0;

/// `SEG6_LOCAL_ACTION_…` by number, `linux/seg6_local.h`.
pub const SEG6_ACTIONS: [&str; 17] = [
    "unspec",
    "End",
    "End.X",
    "End.T",
    "End.DX2",
    "End.DX6",
    "End.DX4",
    "End.DT6",
    "End.DT4",
    "End.B6",
    "End.B6.Encaps",
    "End.BM",
    "End.S",
    "End.AS",
    "End.AM",
    "End.BPF",
    "End.DT46",
];

/// `TUNNEL_…`, `linux/if_tunnel.h`: what a tunnel's own header has.
pub const TUNNEL_FLAGS: [(u16, &str); 3] = [(0x04, "key"), (0x01, "csum"), (0x08, "seq")];

/// Reads a tunnel: its kind, and the words that are its own. O(words).
pub fn encap(words: &mut Words<'_>, context: &mut Context<'_>) -> Result<Box<Encap>, ParseError> {
    let kind = words.value("encap")?;
    let tunnel = match kind {
        "mpls" => Tunnel::Mpls(mpls(words)?),
        "ip" => Tunnel::Ip(ip(words, ["ttl", "tos"], v4)?),
        "ip6" => Tunnel::Ip6(ip(words, ["hoplimit", "tc"], v6)?),
        "seg6" => Tunnel::Seg6(seg6(words)?),
        "seg6local" => Tunnel::Seg6Local(seg6_local(words, context)?),
        "ila" | "bpf" | "rpl" | "ioam6" | "xfrm" => {
            return Err(format!("`encap {kind}` is not made by Fingerpost"));
        }
        other => {
            return Err(wrong("encap", other, "mpls, ip, ip6, seg6 or seg6local"));
        }
    };
    Ok(Box::new(Encap {
        tunnel,
        rest: RawAttributes::default(),
    }))
}

/// The next word, if it is one of these.
fn step<'a>(words: &mut Words<'a>, known: &[&str]) -> Option<&'a str> {
    let word = words.peek().filter(|word| known.contains(word))?;
    words.next();
    Some(word)
}

fn mpls(words: &mut Words<'_>) -> Result<Mpls, ParseError> {
    let text = words.value("encap mpls")?;
    let expected = || {
        wrong(
            "encap mpls",
            text,
            "labels like 100/200, up to 1048575 each",
        )
    };
    let labels: Option<Vec<u32>> = text
        .split('/')
        .map(|label| number(label).filter(|label| *label <= MAX_LABEL))
        .collect();
    let labels = labels.filter(|labels| labels.len() <= MAX_LABELS);
    let mut row = Mpls {
        labels: labels.ok_or_else(expected)?.into(),
        ttl: None,
    };
    if let Some(word) = step(words, &["ttl"]) {
        row.ttl = Some(words.number(word)?);
    }
    Ok(row)
}

fn v4(word: &str, text: &str) -> Result<Ipv4Addr, ParseError> {
    match address(text) {
        Some(IpAddr::V4(address)) => Ok(address),
        _ => Err(wrong(word, text, "an IPv4 address")),
    }
}

fn v6(word: &str, text: &str) -> Result<Ipv6Addr, ParseError> {
    match address(text) {
        Some(IpAddr::V6(address)) => Ok(address),
        _ => Err(wrong(word, text, "an IPv6 address")),
    }
}

/// A tunnel over IPv4 or IPv6, which call time to live and type of service
/// each by another name.
fn ip<A>(
    words: &mut Words<'_>,
    [ttl, tos]: [&str; 2],
    read: impl Fn(&str, &str) -> Result<A, ParseError>,
) -> Result<IpTunnel<A>, ParseError> {
    let mut row = IpTunnel::default();
    let known = ["id", "dst", "src", ttl, tos, "key", "csum", "seq"];
    while let Some(word) = step(words, &known) {
        match word {
            "id" => row.id = Some(words.number(word)?),
            "dst" => row.destination = Some(read(word, words.value(word)?)?),
            "src" => row.source = Some(read(word, words.value(word)?)?),
            word if word == ttl => row.ttl = Some(words.number(word)?),
            word if word == tos => row.tos = Some(words.number(word)?),
            flag => {
                let bit = TUNNEL_FLAGS.iter().find(|(_, name)| *name == flag);
                let bit = bit.map_or(0, |(bit, _)| *bit);
                row.flags = Some(row.flags.unwrap_or(0) | bit);
            }
        }
    }
    Ok(row)
}

fn seg6(words: &mut Words<'_>) -> Result<Seg6, ParseError> {
    let (mut mode, mut segments) = (None, None);
    while let Some(word) = step(words, &["mode", "segs", "hmac"]) {
        match word {
            "mode" => {
                let name = words.value(word)?;
                let known = SEG6_MODES.iter().position(|known| *known == name);
                let known = known.and_then(|at| u32::try_from(at).ok());
                mode = Some(known.ok_or_else(|| wrong(word, name, "inline, encap or l2encap"))?);
            }
            "segs" => segments = Some(self::segments(words)?),
            other => return Err(format!("`{other}` of segments is not made by Fingerpost")),
        }
    }
    let mode = mode.ok_or_else(|| "`encap seg6` wants its `mode`".to_owned())?;
    let (mut segments, is_whole) =
        segments.ok_or_else(|| "`encap seg6` wants its `segs`".to_owned())?;
    if mode == INLINE && !is_whole {
        // The place of a packet's own destination.
        segments.push(Ipv6Addr::UNSPECIFIED);
    }
    let left = u8::try_from(segments.len()).ok().filter(|len| *len > 0);
    let left = left.filter(|len| usize::from(*len) <= MAX_SEGMENTS);
    let left = left.ok_or_else(|| format!("`segs` wants 1 to {MAX_SEGMENTS} segments"))?;
    Ok(Seg6 {
        mode,
        header: SegmentHeader {
            left: left - 1,
            segments: segments.into(),
            ..SegmentHeader::default()
        },
    })
}

/// `A,B`, or what a listing has: `2 [ A B ]`, which is the whole header.
fn segments(words: &mut Words<'_>) -> Result<(Vec<Ipv6Addr>, bool), ParseError> {
    let text = words.value("segs")?;
    if words.peek() != Some("[") {
        let all: Result<Vec<_>, _> = text.split(',').map(|one| v6("segs", one)).collect();
        return Ok((all?, false));
    }
    words.next();
    let mut all = Vec::new();
    loop {
        match words.value("segs")? {
            // A listing that was cut would be a shorter way.
            "]" if text.parse() == Ok(all.len()) => return Ok((all, true)),
            "]" => return Err(wrong("segs", text, "the number of those in brackets")),
            one => all.push(v6("segs", one)?),
        }
    }
}

fn seg6_local(words: &mut Words<'_>, context: &mut Context<'_>) -> Result<Seg6Local, ParseError> {
    const MADE: [&str; 7] = ["action", "table", "vrftable", "nh4", "nh6", "iif", "oif"];
    const NOT_MADE: [&str; 4] = ["srh", "endpoint", "count", "flavors"];
    let mut row = Seg6Local::default();
    while let Some(word) = step(words, &MADE) {
        match word {
            "action" => {
                let name = words.value(word)?;
                let known = SEG6_ACTIONS.iter().position(|known| *known == name);
                let known = known.and_then(|at| u32::try_from(at).ok());
                row.action =
                    Some(known.ok_or_else(|| wrong(word, name, "an action, like End.DT6,"))?);
            }
            "table" => row.table = Some(words.named(word, NameFile::Tables, context)?),
            "vrftable" => row.vrf_table = Some(words.named(word, NameFile::Tables, context)?),
            "nh4" => row.gateway4 = Some(v4(word, words.value(word)?)?),
            "nh6" => row.gateway6 = Some(v6(word, words.value(word)?)?),
            "iif" => row.input_link = Some(words.link(word, context)?),
            _ => row.output_link = Some(words.link(word, context)?),
        }
    }
    if let Some(word) = words.peek().filter(|word| NOT_MADE.contains(word)) {
        return Err(format!("`{word}` of an action is not made by Fingerpost"));
    }
    match row.action {
        Some(_) => Ok(row),
        None => Err("`encap seg6local` wants its `action`".to_owned()),
    }
}
