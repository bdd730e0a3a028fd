//! The words of a line, one after the other, and values in `ip`'s
//! spellings. What is wrong is said in a sentence that names the word.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::{NameFile, Names, Verb, values};
use ipnet::IpNet;
use table::{AF_INET6, LinkLayerAddress};

/// What is wrong with a line: for the user, as it is.
pub type ParseError = String;

/// Names of links to indexes: a kernel's, or those of a file.
pub trait Links {
    /// The index of a link.
    fn index(&mut self, name: &str) -> Result<u32, ParseError>;

    /// The routing table of a VRF.
    fn vrf_table(&mut self, name: &str) -> Result<u32, ParseError>;
}

/// What a line is read with.
pub struct Context<'a> {
    /// Names of links to indexes.
    pub links: &'a mut dyn Links,
    /// iproute2's names of numbers.
    pub names: &'a Names,
    /// `AF_INET` or `AF_INET6`, where the line does not say it.
    pub family: Option<u8>,
    /// What is done with the row.
    pub verb: Verb,
    /// Now, milliseconds since the UNIX epoch.
    pub now_millis: u64,
}

/// The words of a line that have not been read.
#[derive(Debug, Clone)]
pub struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    /// All words of a line.
    pub fn new(line: &'a str) -> Self {
        Self { rest: line }
    }

    /// The word after `word`, which wants one.
    pub fn value(&mut self, word: &str) -> Result<&'a str, ParseError> {
        self.next()
            .ok_or_else(|| format!("`{word}` wants a value after it"))
    }

    /// A number after `word`: decimal, or hexadecimal with `0x`.
    pub fn number<T: TryFrom<u64>>(&mut self, word: &str) -> Result<T, ParseError> {
        let text = self.value(word)?;
        number(text).ok_or_else(|| wrong(word, text, "a number"))
    }

    /// An address after `word`.
    pub fn address(&mut self, word: &str) -> Result<IpAddr, ParseError> {
        let text = self.value(word)?;
        address(text).ok_or_else(|| wrong(word, text, "an address"))
    }

    /// The link whose name comes after `word`.
    pub fn link(&mut self, word: &str, context: &mut Context<'_>) -> Result<u32, ParseError> {
        let name = self.value(word)?;
        context.links.index(name)
    }

    /// A number after `word`, or its name in one of iproute2's files.
    pub fn named(
        &mut self,
        word: &str,
        file: NameFile,
        context: &Context<'_>,
    ) -> Result<u32, ParseError> {
        let text = self.value(word)?;
        context
            .names
            .number(file, text)
            .ok_or_else(|| wrong(word, text, "a number, or a name of iproute2's files,"))
    }

    /// The same of eight bits.
    pub fn named_byte(
        &mut self,
        word: &str,
        file: NameFile,
        context: &Context<'_>,
    ) -> Result<u8, ParseError> {
        let number = self.named(word, file, context)?;
        u8::try_from(number).map_err(|_| wrong(word, number, "a number up to 255"))
    }

    /// The next word, without taking it.
    pub fn peek(&self) -> Option<&'a str> {
        self.clone().next()
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a str {
        self.rest
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let start = self.rest.bytes().position(|b| !b.is_ascii_whitespace())?;
        let rest = self.rest.get(start..)?;
        let end = rest.bytes().position(|b| b.is_ascii_whitespace());
        let (word, rest) = rest.split_at_checked(end.unwrap_or(rest.len()))?;
        self.rest = rest;
        Some(word)
    }
}

/// A value that is not what it should be.
pub fn wrong(word: &str, value: impl std::fmt::Display, expected: &str) -> ParseError {
    format!("{word} `{value}`: {expected} is expected")
}

/// A word that nobody asked for.
pub fn unknown(word: &str, known: &str) -> ParseError {
    format!("`{word}` is not understood here; what may be said: {known}")
}

/// A number: decimal, or hexadecimal with `0x`.
pub fn number<T: TryFrom<u64>>(text: &str) -> Option<T> {
    let value = match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok()?,
        None if !text.starts_with('+') => text.parse().ok()?,
        _ => return None,
    };
    T::try_from(value).ok()
}

/// An address.
pub fn address(text: &str) -> Option<IpAddr> {
    // By far the most common first: `IpAddr` would try both from the start.
    if text.contains(':') {
        Ipv6Addr::from_str(text).ok().map(IpAddr::V6)
    } else {
        Ipv4Addr::from_str(text).ok().map(IpAddr::V4)
    }
}

/// A prefix in `ip`'s spellings; `default` is of a family if one is given.
pub fn prefix(text: &str, family: Option<u8>) -> Result<IpNet, ParseError> {
    let net = plain_prefix(text).map_or_else(|| values::prefix(text), Ok)?;
    let is_any = net.prefix_len() == 0 && !text.contains(['.', ':']);
    if is_any && family == Some(AF_INET6) {
        return Ok(IpNet::V6(Default::default()));
    }
    Ok(net)
}

/// An address and a length, as most prefixes are spelt. No octet of one that
/// is read begins with a 0 that is not all of it.
pub fn plain_prefix(text: &str) -> Option<IpNet> {
    let (bits, len) = text.split_once('/')?;
    IpNet::new(address(bits)?, u8::from_str(len).ok()?).ok()
}

/// An IPv4 address with fewer than four octets, with the others, which are
/// 0: `10.1` is 10.1.0.0 to `ip`. Other text as it is.
pub fn spelt_out(text: &str) -> Cow<'_, str> {
    match is_short(text) {
        true => with_all_octets(text).map_or(text.into(), Cow::Owned),
        false => text.into(),
    }
}

/// Whether it may be an IPv4 address with fewer than four octets.
fn is_short(text: &str) -> bool {
    let mut dots = 0;
    for byte in text.bytes() {
        match byte {
            b':' => return false,
            b'.' => dots += 1,
            b'/' => break,
            _ => {}
        }
    }
    dots < 3
}

fn with_all_octets(text: &str) -> Option<String> {
    let (bits, len) = match text.split_once('/') {
        Some((bits, len)) => (bits, Some(len)),
        None => (text, None),
    };
    let mut octets = [0; 4];
    let mut parts = bits.split('.');
    for (octet, part) in octets.iter_mut().zip(&mut parts) {
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        *octet = part.parse::<u8>().ok().filter(|_| is_number)?;
    }
    let address = Ipv4Addr::from(octets);
    Some(match len {
        Some(len) => format!("{address}/{len}"),
        None => address.to_string(),
    })
}

/// A link-layer address, or an IPv4 one as the address of a tunnel's end.
pub fn lladdr(text: &str) -> Result<LinkLayerAddress, ParseError> {
    let expected = || {
        wrong(
            "lladdr",
            text,
            "a link-layer address, like 02:00:00:00:00:01,",
        )
    };
    if let Ok(v4) = Ipv4Addr::from_str(text) {
        return LinkLayerAddress::new(&v4.octets()).ok_or_else(expected);
    }
    let mut octets = [0; 32];
    let mut len = 0;
    for part in text.split([':', '-']) {
        let octet = octets.get_mut(len).ok_or_else(expected)?;
        let is_short = matches!(part.len(), 1 | 2) && !part.starts_with('+');
        *octet = u8::from_str_radix(part, 16)
            .ok()
            .filter(|_| is_short)
            .ok_or_else(expected)?;
        len += 1;
    }
    octets
        .get(..len)
        .and_then(LinkLayerAddress::new)
        .ok_or_else(expected)
}

/// Number of a family by `ip`'s name of it.
pub fn family(text: &str) -> Option<u8> {
    match text {
        "inet" => Some(table::AF_INET),
        "inet6" => Some(AF_INET6),
        _ => None,
    }
}

/// The family of an address.
pub fn family_of(address: IpAddr) -> u8 {
    if address.is_ipv4() {
        table::AF_INET
    } else {
        AF_INET6
    }
}
