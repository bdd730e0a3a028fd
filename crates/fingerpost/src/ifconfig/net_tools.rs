//! The words behind a link's name, as net-tools' ifconfig(8) reads them.
//!
//! It does a word as soon as it has read it; here all are read first. So
//! where a word is wrong behind others, it is refused by name.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::Ipv6Net;
use netlink::decode::Operation;
use table::row::link::flag;

use super::step::{Changes, Flag, Step};
use crate::foreign::failed::Failed;
use crate::foreign::inet::{self, leading_number};
use crate::foreign::six_octets;

/// The status of a word that means nothing, and of one that lacks a value.
const FAILED: u8 = 1;
const WRONG_WORDS: u8 = 3;

/// What may follow the link's name, for [`super`]'s help too.
pub const USAGE: &str = "\
usage: ifconfig [-a] [-s] [-v] [LINK [WORD …]]
  ADDRESS[/LEN]  netmask MASK  broadcast [ADDRESS]  pointopoint [ADDRESS]
  dstaddr ADDRESS  add ADDRESS[/LEN]  del ADDRESS[/LEN]  hw ether ADDRESS
  mtu BYTES  txqueuelen PACKETS  name NAME  up  down
  [-]arp  [-]promisc  [-]allmulti  [-]multicast  [-]dynamic  [-]trailers";

/// Words that switch a flag, with the name under which it is told that it
/// stays on.
const FLAGS: &[(&str, u32, Option<&str>)] = &[
    ("promisc", flag::PROMISC, Some("promisc")),
    ("multicast", flag::MULTICAST, Some("MULTICAST")),
    ("allmulti", flag::ALLMULTI, Some("ALLMULTI")),
    ("dynamic", flag::DYNAMIC, Some("DYNAMIC")),
];

/// Flags that a link gets from its kind: ioctls cannot switch them.
const FIXED: &[(&str, u32, &str)] = &[
    ("-broadcast", flag::BROADCAST, "BROADCAST"),
    ("-pointopoint", flag::POINTOPOINT, "POINTOPOINT"),
];

/// What old hardware and SLIP have, and a tunnel of IPv6.
const NOT_BUILT: &[&str] = &[
    "keepalive",
    "outfill",
    "mem_start",
    "io_addr",
    "irq",
    "media",
    "port",
    "tunnel",
];

/// Families whose addresses are not for here.
const FAMILIES: &[&str] = &[
    "unix", "ax25", "netrom", "rose", "ipx", "ddp", "ec", "ash", "x25",
];

struct Reader<'a> {
    words: std::slice::Iter<'a, String>,
    steps: Vec<Step>,
    /// A netmask was said.
    has_mask: bool,
    /// The netmask of an address with a length; it is set at the end.
    mask: Option<Ipv4Addr>,
}

/// Reads the words behind a link's name.
pub fn read(name: &str, words: &[String]) -> Result<Changes, Failed> {
    let mut reader = Reader {
        words: words.iter(),
        steps: Vec::new(),
        has_mask: false,
        mask: None,
    };
    let is_v6 = reader.family(name)?;
    while let Some(word) = reader.words.next() {
        reader.word(word, is_v6)?;
    }
    reader.steps.extend(reader.mask.map(Step::Netmask));
    Ok(Changes {
        name: name.to_owned(),
        steps: reader.steps,
        stops: false,
    })
}

impl<'a> Reader<'a> {
    /// A family in the first place; whether it is IPv6.
    fn family(&mut self, name: &str) -> Result<bool, Failed> {
        let Some(word) = self.words.as_slice().first() else {
            return Ok(false);
        };
        match word.as_str() {
            "inet" => {}
            // A name of IPv4 alone.
            "inet6" if name.contains(':') => {
                let instead = "an alias is one of IPv4";
                return Err(Failed::not_built("ifconfig", word, instead));
            }
            "inet6" => {
                self.words.next();
                return Ok(true);
            }
            other if FAMILIES.contains(&other) => {
                let instead = "it knows inet and inet6";
                return Err(Failed::not_built("ifconfig", word, instead));
            }
            _ => return Ok(false),
        }
        self.words.next();
        Ok(false)
    }

    fn word(&mut self, word: &str, is_v6: bool) -> Result<(), Failed> {
        if NOT_BUILT.contains(&word) {
            let instead = "netlink has no such setting of a link";
            return Err(Failed::not_built("ifconfig", word, instead));
        }
        if let Some(step) = flag_of(word) {
            self.steps.push(step);
            return Ok(());
        }
        match word {
            "mtu" => {
                let value = self.value(word)?;
                self.steps.push(Step::Mtu(leading_number(value) as u32));
            }
            "txqueuelen" => {
                let value = self.value(word)?;
                self.steps.push(Step::Queue(queue(value)));
            }
            "name" => {
                let value = self.value(word)?.to_owned();
                self.steps.push(Step::Name(value));
            }
            "broadcast" => {
                if let Some(value) = self.words.next() {
                    let address = self.address(value)?;
                    self.steps.push(Step::Broadcast(address));
                }
                self.steps.push(switch(flag::BROADCAST, true, None));
            }
            "pointopoint" => {
                if let Some(value) = self.words.next() {
                    let address = self.address(value)?;
                    self.steps.push(Step::Destination(address));
                }
                self.steps.push(switch(flag::POINTOPOINT, true, None));
            }
            "dstaddr" => {
                let value = self.value(word)?;
                let address = self.address(value)?;
                self.steps.push(Step::Destination(address));
            }
            "netmask" => {
                let value = self.value(word)?;
                if self.has_mask {
                    return Err(self.wrong(WRONG_WORDS, word, USAGE));
                }
                let address = self.address(value)?;
                self.has_mask = true;
                self.steps.push(Step::Netmask(address));
            }
            "hw" => self.hardware(word)?,
            "add" => self.further(word, Operation::New)?,
            "del" => self.further(word, Operation::Delete)?,
            _ if is_v6 => return Err(self.wrong(FAILED, word, "say it with `add`")),
            address => self.own_address(address)?,
        }
        Ok(())
    }

    /// The word behind one that wants a value.
    fn value(&mut self, word: &str) -> Result<&'a str, Failed> {
        match self.words.next() {
            Some(value) => Ok(value),
            None => Err(self.wrong(WRONG_WORDS, word, USAGE)),
        }
    }

    fn address(&self, word: &str) -> Result<Ipv4Addr, Failed> {
        let meant = inet::meant(word, false);
        Ok(meant.map_err(|why| self.wrong(FAILED, word, &why))?.address)
    }

    /// An address alone, with a length or without.
    fn own_address(&mut self, word: &str) -> Result<(), Failed> {
        let (name, len) = match word.split_once('/') {
            Some((name, len)) => (name, Some(len)),
            None => (word, None),
        };
        if let Some(len) = len {
            let Ok(bits) = len.parse::<u8>() else {
                return Err(self.wrong(WRONG_WORDS, word, USAGE));
            };
            if bits > 32 {
                let instead = "a prefix has 0 to 32 bits";
                return Err(Failed::not_built("ifconfig", word, instead));
            }
            if bits == 32 {
                let instead = "net-tools takes it for 0 bits; say `netmask 255.255.255.255`";
                return Err(Failed::not_built("ifconfig", word, instead));
            }
            if self.has_mask {
                return Err(self.wrong(WRONG_WORDS, word, USAGE));
            }
            let ones = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            self.mask = Some(ones.into());
        }
        let address = self.address(name)?;
        self.steps.push(Step::Address(address));
        Ok(())
    }

    /// What follows `add` and `del`.
    fn further(&mut self, word: &str, operation: Operation) -> Result<(), Failed> {
        let value = self.value(word)?.to_owned();
        if !value.contains(':') {
            let address = self.address(&value)?;
            self.steps.push(Step::Alias(operation, address));
            return Ok(());
        }
        let (name, len) = value.split_once('/').unwrap_or((&value, "128"));
        let Ok(len) = len.parse::<u16>() else {
            let instead = "a prefix has 0 to 128 bits";
            return Err(Failed::not_built("ifconfig", &value, instead));
        };
        let Ok(address) = name.parse::<Ipv6Addr>() else {
            let why = format!("{name}: Unknown host");
            return Err(self.wrong(FAILED, &value, &why));
        };
        let prefix = u8::try_from(len).ok().map(|len| Ipv6Net::new(address, len));
        match prefix {
            Some(Ok(prefix)) => self.steps.push(Step::Inet6(operation, prefix)),
            _ => return Err(self.wrong(WRONG_WORDS, &value, USAGE)),
        }
        Ok(())
    }

    fn hardware(&mut self, word: &str) -> Result<(), Failed> {
        let kind = self.value(word)?.to_owned();
        if kind != "ether" {
            return Err(match view::arp::linux_type_number(&kind) {
                Some(_) => Failed::not_built("ifconfig", &kind, "it knows `hw ether`"),
                None => self.wrong(WRONG_WORDS, &kind, USAGE),
            });
        }
        let value = self.value(&kind)?.to_owned();
        if let Some(address) = six_octets(&value) {
            self.steps.push(Step::Hardware(address));
            return Ok(());
        }
        // Net-tools makes six of them.
        if value
            .chars()
            .all(|one| one == ':' || one.is_ascii_hexdigit())
        {
            let instead = "an address of six octets is wanted";
            return Err(Failed::not_built("ifconfig", &value, instead));
        }
        let why = format!("{value}: invalid ether address.");
        Err(self.wrong(FAILED, &value, &why))
    }

    /// A word that is wrong: as net-tools says it where it would have done
    /// nothing, else by name.
    fn wrong(&self, status: u8, word: &str, why: &str) -> Failed {
        let is_alone = self.steps.is_empty()
            && self.mask.is_none()
            && (status == WRONG_WORDS || self.words.len() == 0);
        match is_alone {
            true => Failed::new(status, why),
            false => Failed::not_built("ifconfig", word, "it is no word and no address"),
        }
    }
}

/// The step of a word that switches a flag.
fn flag_of(word: &str) -> Option<Step> {
    let (name, on) = match word.strip_prefix('-') {
        Some(name) => (name, false),
        None => (word, true),
    };
    if let Some((_, bits, still)) = FLAGS.iter().find(|(known, ..)| *known == name) {
        return Some(switch(*bits, on, *still));
    }
    if let Some((_, bits, still)) = FIXED.iter().find(|(known, ..)| *known == word) {
        return Some(switch(*bits, false, Some(still)));
    }
    Some(match word {
        "up" => switch(flag::UP, true, None),
        "down" => switch(flag::UP, false, None),
        "arp" | "-arp" => switch(flag::NOARP, !on, None),
        "trailers" | "-trailers" => switch(flag::NOTRAILERS, !on, None),
        _ => return None,
    })
}

fn switch(bits: u32, on: bool, still: Option<&'static str>) -> Step {
    Step::Flag(Flag { bits, on, still })
}

/// The length of a queue: decimal, octal or hexadecimal.
fn queue(word: &str) -> i32 {
    match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).unwrap_or(0) as i32,
        None => match word.strip_prefix('0').filter(|rest| !rest.is_empty()) {
            Some(digits) => u32::from_str_radix(digits, 8).unwrap_or(0) as i32,
            None => leading_number(word) as i32,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_line(line: &str) -> Result<Vec<Step>, Failed> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Ok(read("em1", &words)?.steps)
    }

    #[test]
    fn words_become_steps_in_their_order() {
        let mask = |text: &str| Step::Netmask(text.parse().unwrap());
        let address = |text: &str| Step::Address(text.parse().unwrap());
        for (line, steps) in [
            ("", vec![]),
            (
                "10.1 netmask 255.0.0.0",
                vec![address("10.0.0.1"), mask("255.0.0.0")],
            ),
            (
                "inet 10.0.0.1/24 mtu 9000",
                vec![address("10.0.0.1"), Step::Mtu(9000), mask("255.255.255.0")],
            ),
            ("inet6 up", vec![switch(flag::UP, true, None)]),
            ("-arp", vec![switch(flag::NOARP, true, None)]),
            (
                "-promisc",
                vec![switch(flag::PROMISC, false, Some("promisc"))],
            ),
            (
                "add 2001:db8::1",
                vec![Step::Inet6(
                    Operation::New,
                    "2001:db8::1/128".parse().unwrap(),
                )],
            ),
            ("txqueuelen 0x10", vec![Step::Queue(16)]),
            ("txqueuelen -1", vec![Step::Queue(-1)]),
        ] {
            assert_eq!(read_line(line), Ok(steps), "{line}");
        }
    }

    #[test]
    fn a_wrong_word_is_refused_before_anything_is_done() {
        for (line, status) in [
            ("a:b", 1),
            ("up a:b", 255),
            ("a:b up", 255),
            ("mtu", 3),
            ("up mtu", 255),
            ("hw", 3),
            ("hw fish 1", 3),
            ("hw ax25 x", 255),
            ("hw ether zz", 1),
            ("10.0.0.1/33", 255),
            ("10.0.0.1/x", 3),
            ("netmask 255.0.0.0 netmask 255.0.0.0", 255),
            ("add 2001:db8::1/129", 3),
            ("ax25 x", 255),
            ("inet6 2001:db8::1", 1),
            ("irq 4", 255),
        ] {
            let failed = read_line(line).unwrap_err();
            assert_eq!(failed.status, status, "{line}: {failed:?}");
        }
    }
}
