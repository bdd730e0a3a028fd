//! `addr add 10.0.0.1/24 dev em1`, as `ip` has it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{NameFile, values};
use ipnet::IpNet;
use table::Address;
use table::row::address::flag;
use table::row::route::scope;

use crate::Verb;
use crate::line::{Context, ParseError, Words, address as parse, number, unknown, wrong};

const KNOWN: &str = "ADDRESS[/LEN], dev, peer, brd, anycast, label, scope, metric, valid_lft, \
     preferred_lft, proto, nodad, noprefixroute, home, mngtmpaddr, autojoin, optimistic";

/// `IFA_F_…` by `ip`'s names.
const FLAGS: &[(&str, u32)] = &[
    ("nodad", flag::NODAD),
    ("noprefixroute", flag::NOPREFIXROUTE),
    ("home", flag::HOMEADDRESS),
    ("mngtmpaddr", flag::MANAGETEMPADDR),
    ("autojoin", flag::MCAUTOJOIN),
    ("optimistic", flag::OPTIMISTIC),
];

#[derive(Default)]
struct Reader {
    local: Option<(IpAddr, Option<u8>)>,
    peer: Option<(IpAddr, Option<u8>)>,
    link: Option<u32>,
    broadcast: Option<Broadcast>,
    anycast: Option<IpAddr>,
    label: Option<Box<str>>,
    scope: Option<u8>,
    flags: u32,
    valid: Option<u64>,
    preferred: Option<u64>,
    metric: u32,
    protocol: u8,
}

enum Broadcast {
    /// `brd +`: the last of the prefix.
    Last,
    /// `brd -`: the first of the prefix.
    First,
    Said(IpAddr),
}

/// Reads an address. O(words).
pub fn address(line: &str, context: &mut Context<'_>) -> Result<Address, ParseError> {
    let mut reader = Reader::default();
    let mut words = Words::new(line);
    while let Some(word) = words.next() {
        reader.read(word, &mut words, context)?;
    }
    reader.finish(context.verb)
}

impl Reader {
    fn read(
        &mut self,
        word: &str,
        words: &mut Words<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), ParseError> {
        match word {
            "dev" => self.link = Some(words.link(word, context)?),
            "local" => self.local = Some(with_len(word, words.value(word)?)?),
            "peer" | "remote" => self.peer = Some(with_len(word, words.value(word)?)?),
            "brd" | "broadcast" => {
                self.broadcast = Some(match words.value(word)? {
                    "+" => Broadcast::Last,
                    "-" => Broadcast::First,
                    text => {
                        let said = parse(text);
                        Broadcast::Said(
                            said.ok_or_else(|| wrong(word, text, "an address, + or -"))?,
                        )
                    }
                });
            }
            "anycast" => self.anycast = Some(words.address(word)?),
            "label" => self.label = Some(words.value(word)?.into()),
            "scope" => self.scope = Some(words.named_byte(word, NameFile::Scopes, context)?),
            "metric" | "priority" | "preference" => self.metric = words.number(word)?,
            "proto" => self.protocol = words.number(word)?,
            "valid_lft" => self.valid = lifetime(word, words, context)?,
            "preferred_lft" => self.preferred = lifetime(word, words, context)?,
            _ => match FLAGS.iter().find(|(name, _)| *name == word) {
                Some((_, flag)) => self.flags |= flag,
                None if self.local.is_none() => self.local = Some(with_len("address", word)?),
                None => return Err(unknown(word, KNOWN)),
            },
        }
        Ok(())
    }

    fn finish(self, verb: Verb) -> Result<Address, ParseError> {
        let (local, len) = self
            .local
            .ok_or_else(|| "an address is wanted, like 10.0.0.1/24".to_owned())?;
        let link = self
            .link
            .ok_or_else(|| "`dev` is wanted: the link the address is put on".to_owned())?;
        let whole = if local.is_ipv4() { 32 } else { 128 };
        // A peer's length counts, whatever stands behind the own address.
        let peer_len = self.peer.map(|(_, len)| len.unwrap_or(whole));
        let prefix_len = peer_len.or(len).unwrap_or(whole);
        let net = IpNet::new(local, prefix_len)
            .map_err(|_| wrong("length", prefix_len, "at most 128"))?;
        let broadcast = match self.broadcast {
            Some(Broadcast::Said(said)) => Some(said),
            Some(Broadcast::Last) => Some(net.broadcast()),
            Some(Broadcast::First) => Some(net.network()),
            None => None,
        };
        let is_loopback = matches!(local, IpAddr::V4(v4) if v4.is_loopback());
        let scope = match self.scope {
            Some(scope) => scope,
            None if is_loopback && verb != Verb::Delete => scope::HOST,
            None => scope::UNIVERSE,
        };
        Ok(Address {
            link,
            local,
            prefix_len,
            peer: self
                .peer
                .map(|(peer, _)| peer)
                .filter(|peer| *peer != local),
            broadcast,
            anycast: self.anycast,
            label: self.label,
            scope,
            flags: self.flags,
            valid_until_millis: self.valid,
            preferred_until_millis: self.preferred.or(self.valid),
            metric: self.metric,
            protocol: self.protocol,
            created_centisecs: 0,
        })
    }
}

/// `ADDRESS` or `ADDRESS/LEN`.
fn with_len(word: &str, text: &str) -> Result<(IpAddr, Option<u8>), ParseError> {
    let expected = || wrong(word, text, "an address with its length, like 10.0.0.1/24,");
    let (bits, len) = match text.split_once('/') {
        Some((bits, len)) => (bits, Some(values::length(len).ok_or_else(expected)?)),
        None => (text, None),
    };
    let bits = match bits {
        "any" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        _ => parse(bits).ok_or_else(expected)?,
    };
    let whole = if bits.is_ipv4() {
        Ipv4Addr::BITS
    } else {
        Ipv6Addr::BITS
    };
    if len.is_some_and(|len: u8| u32::from(len) > whole) {
        return Err(expected());
    }
    Ok((bits, len))
}

/// Seconds, as the time they end; `None`: `forever`.
fn lifetime(
    word: &str,
    words: &mut Words<'_>,
    context: &Context<'_>,
) -> Result<Option<u64>, ParseError> {
    let text = words.value(word)?;
    if text == "forever" {
        return Ok(None);
    }
    let secs: u32 = number(text.strip_suffix("sec").unwrap_or(text))
        .ok_or_else(|| wrong(word, text, "seconds or forever"))?;
    if secs == u32::MAX {
        return Ok(None);
    }
    Ok(Some(context.now_millis + u64::from(secs) * 1000))
}
