//! Lines about subscribers, their blocks and limits, and about destinations
//! that are left alone. Called by the reader of the text.

use std::net::Ipv4Addr;

use super::aliases;
use super::text::{BlocksWord, Limit, Statement, TextErrorKind, Words, port_range, wrong};
use crate::blocks::{Blocks, Deterministic, Key, Rate};
use crate::{AddressRange, QuotaKind, SubscriberConfig};

/// Longest time: a year.
const MOST_SECS: u32 = 31_536_000;
/// Ranges of one line.
const MOST_RANGES: usize = 65_536;

const RANGE: &str = "addresses: 10.0.0.1, 10.0.0.0/8 or 10.0.0.1-10.0.0.9";

/// `ADDRESSES …`.
pub fn ranges(words: &mut Words<'_>) -> Result<Vec<AddressRange>, TextErrorKind> {
    let mut ranges = vec![range(words.wanted(RANGE)?)?];
    while let Some(word) = words.next() {
        ranges.push(range(word)?);
        bound(ranges.len(), word)?;
    }
    Ok(ranges)
}

fn bound(ranges: usize, word: &str) -> Result<(), TextErrorKind> {
    match ranges > MOST_RANGES {
        true => Err(wrong(word, "one of 65536 ranges at most")),
        false => Ok(()),
    }
}

fn range(word: &str) -> Result<AddressRange, TextErrorKind> {
    let (first, last) = aliases::ends(word).ok_or_else(|| wrong(word, RANGE))?;
    Ok(AddressRange {
        first: Ipv4Addr::from_bits(first),
        last: Ipv4Addr::from_bits(last),
    })
}

/// `ADDRESSES … [each /BITS]`.
pub fn inside(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    let mut ranges = Vec::new();
    let mut bits = None;
    let mut word = words.wanted(RANGE)?;
    loop {
        if word == "each" {
            bits = Some(prefix(words)?);
            break;
        }
        ranges.push(range(word)?);
        bound(ranges.len(), word)?;
        match words.next() {
            Some(next) => word = next,
            None => break,
        }
    }
    Ok(Statement::Subscribers(ranges, bits))
}

fn prefix(words: &mut Words<'_>) -> Result<u8, TextErrorKind> {
    const WANTED: &str = "the length of a subscriber's prefix, from /8 to /32";
    let word = words.wanted(WANTED)?;
    let bits = word.strip_prefix('/').and_then(|bits| bits.parse().ok());
    let bits = bits.filter(|bits| (8..=32).contains(bits));
    bits.ok_or_else(|| wrong(word, WANTED))
}

/// `[size N] [most N] [active S] [hold_down S] [interim S]`, one at least.
pub fn blocks(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    const WANTED: &str = "size, most, active, hold_down or interim";
    const SIZE: &str = "ports of a block, from 8 to 65535";
    const MOST: &str = "blocks of a subscriber, from 1 to 64";
    const SECONDS: &str = "seconds, from 0 to 31536000";
    let mut said = BlocksWord::default();
    let mut word = words.wanted(WANTED)?;
    loop {
        match word {
            "size" => {
                let least = u32::from(Blocks::LEAST_SIZE);
                said.size = Some(number(words, least, u16::MAX.into(), SIZE)? as u16);
            }
            "most" => said.most = Some(number(words, 1, Blocks::MOST.into(), MOST)? as u8),
            "active" => said.active_secs = Some(number(words, 0, MOST_SECS, SECONDS)?),
            "hold_down" => said.hold_down_secs = Some(number(words, 0, MOST_SECS, SECONDS)?),
            "interim" => said.interim_secs = Some(number(words, 0, MOST_SECS, SECONDS)?),
            other => return Err(wrong(other, WANTED)),
        }
        match words.next() {
            Some(next) => word = next,
            None => return Ok(Statement::Blocks(said)),
        }
    }
}

fn number(
    words: &mut Words<'_>,
    least: u32,
    most: u32,
    wanted: &'static str,
) -> Result<u32, TextErrorKind> {
    let word = words.wanted(wanted)?;
    let number = word.parse().ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| wrong(word, wanted))
}

/// `PORT[-PORT] …`.
pub fn reserved(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    let mut ranges = vec![port_range(words.wanted("ports")?)?];
    while let Some(word) = words.next() {
        ranges.push(port_range(word)?);
    }
    Ok(Statement::ReservePorts(ranges))
}

/// `[ratio C] [dynamic D] [key HEX]`.
pub fn deterministic(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    const WANTED: &str = "ratio, dynamic or key";
    const RATIO: &str = "subscribers of an alias address, from 1 to 8192";
    const DYNAMIC: &str = "how many subscribers' ports are kept for all, from 0 to 8192";
    let mut said = Deterministic::default();
    while let Some(word) = words.next() {
        match word {
            "ratio" => said.ratio = number(words, 1, 8_192, RATIO)?,
            "dynamic" => said.dynamic = number(words, 0, 8_192, DYNAMIC)?,
            "key" => said.key = Some(key(words)?),
            other => return Err(wrong(other, WANTED)),
        }
    }
    Ok(Statement::Deterministic(said))
}

/// What stands there instead of a key is not said: it may be half of one.
fn key(words: &mut Words<'_>) -> Result<Key, TextErrorKind> {
    const WANTED: &str = "a key of 32 hexadecimal digits";
    let word = words.wanted(WANTED)?;
    let refused = || wrong("…", WANTED);
    let digits = word.is_ascii() && word.len() == 32;
    let mut bytes = [0; 16];
    for (at, byte) in bytes.iter_mut().enumerate() {
        let pair = word.get(2 * at..2 * at + 2).filter(|_| digits);
        let pair = pair.filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let value = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        *byte = value.ok_or_else(refused)?;
    }
    Ok(Key(bytes))
}

/// `ports|sessions|half_open|new_mappings [tcp|udp|icmp] N [burst N]`.
pub fn limit(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    const WHAT: &str = "ports, sessions, half_open or new_mappings";
    const COUNT: &str = "a number, from 1 to 4294967294";
    const RATE: &str = "a number a second, from 1 to 50000";
    let word = words.wanted(WHAT)?;
    let of = match word {
        "ports" => QuotaKind::Ports,
        "sessions" => QuotaKind::Sessions,
        "half_open" => QuotaKind::HalfOpen,
        "new_mappings" => QuotaKind::NewMappings,
        other => return Err(wrong(other, WHAT)),
    };
    let is_rate = of == QuotaKind::NewMappings;
    let wanted = if is_rate { RATE } else { COUNT };
    let mut word = words.wanted("tcp, udp, icmp or a number")?;
    let class = ["tcp", "udp", "icmp"]
        .iter()
        .position(|class| *class == word);
    if class.is_some() {
        word = words.wanted(wanted)?;
    }
    if of == QuotaKind::HalfOpen && class == Some(2) {
        return Err(wrong("icmp", "tcp or udp: nothing else is half open"));
    }
    let most = word.parse().ok().filter(|most| match is_rate {
        true => (1..=Rate::MOST).contains(most),
        false => (1..u32::MAX).contains(most),
    });
    let most = most.ok_or_else(|| wrong(word, wanted))?;
    let mut burst = 0;
    if let Some(word) = words.next() {
        if word != "burst" || !is_rate {
            return Err(TextErrorKind::Extra(word.to_owned()));
        }
        burst = number(words, 1, 1_000_000, "a number at once, from 1 to 1000000")?;
    }
    Ok(Statement::Limit(Limit {
        of,
        class,
        most,
        burst,
    }))
}

/// `N`.
pub fn most(words: &mut Words<'_>) -> Result<Statement, TextErrorKind> {
    const WANTED: &str = "a number of subscribers, from 1 to 16777214";
    let most = number(words, 1, SubscriberConfig::MOST as u32, WANTED)?;
    Ok(Statement::MaxSubscribers(most as usize))
}

#[cfg(test)]
mod tests {
    use super::super::text::parse;
    use super::*;

    #[test]
    fn a_whole_set_of_lines_is_read() {
        let text = "subscribers 100.64.0.0/10 10.0.0.1-10.0.0.9 each /32\n\
                    port_blocks size 256 most 4 hold_down 0 interim 3600\n\
                    reserve_ports 5060-5061 8080\n\
                    deterministic ratio 14 dynamic 2 key 000102030405060708090a0b0c0d0e0F\n\
                    limit sessions udp 500\nlimit new_mappings 100 burst 300\n\
                    exempt 10.0.0.0/8\nmax_subscribers 5\n";
        let script = parse(text).unwrap();
        let statements: Vec<Statement> = script.statements.into_iter().map(|line| line.1).collect();
        let Statement::Subscribers(ranges, Some(32)) = &statements[0] else {
            panic!("{:?}", statements[0]);
        };
        assert_eq!(ranges[1].to_string(), "10.0.0.1-10.0.0.9");
        let blocks = BlocksWord {
            size: Some(256),
            most: Some(4),
            hold_down_secs: Some(0),
            interim_secs: Some(3_600),
            active_secs: None,
        };
        assert_eq!(statements[1], Statement::Blocks(blocks));
        let ports = vec![(5_060, 5_061), (8_080, 8_080)];
        assert_eq!(statements[2], Statement::ReservePorts(ports));
        let Statement::Deterministic(deterministic) = &statements[3] else {
            panic!("{:?}", statements[3]);
        };
        let bytes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        assert_eq!(deterministic.key, Some(Key(bytes)));
        assert_eq!((deterministic.ratio, deterministic.dynamic), (14, 2));
        let limit = |of, class, most, burst| {
            Statement::Limit(Limit {
                of,
                class,
                most,
                burst,
            })
        };
        let sessions = limit(QuotaKind::Sessions, Some(1), 500, 0);
        let rate = limit(QuotaKind::NewMappings, None, 100, 300);
        assert_eq!(statements[4..6], [sessions, rate]);
        assert_eq!(statements[7], Statement::MaxSubscribers(5));
    }

    #[test]
    fn a_wrong_word_is_named_with_its_place() {
        for (line, says) in [
            (
                "subscribers 10.0.0.0/8 each 32",
                "1:29: `32` is not the length",
            ),
            (
                "subscribers 10.0.0.1/8",
                "1:13: `10.0.0.1/8` is not addresses",
            ),
            ("subscribers", "1:12: the line ends where addresses"),
            ("port_blocks size 7", "1:18: `7` is not ports of a block"),
            ("port_blocks sise 64", "1:13: `sise` is not size, most"),
            ("port_blocks size 64 most 65", "1:26: `65` is not blocks"),
            ("limit ports udp 0", "1:17: `0` is not a number"),
            ("limit sessions 5 burst 6", "`burst` is one word too many"),
            (
                "limit new_mappings 50001",
                "`50001` is not a number a second",
            ),
            ("limit half_open icmp 5", "nothing else is half open"),
            ("limit flows 5", "`flows` is not ports, sessions"),
            ("reserve_ports 0", "`0` is not a port"),
            ("exempt", "the line ends where addresses"),
            ("max_subscribers 0", "`0` is not a number of subscribers"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
        // Nothing of a key is said again.
        let error = parse("deterministic key 0123456789abcdef0123456789abcdeX").unwrap_err();
        assert!(!error.to_string().contains("0123"), "{error}");
    }
}
