//! The words behind a link's name, as the ifconfig(8) of the BSDs reads
//! them. All are read before the first is done, and nothing is done behind
//! one that the kernel refuses.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use table::row::link::flag;

use super::step::{Changes, Flag, Put, Step};
use crate::foreign::failed::Failed;
use crate::foreign::inet::{self, prefix_len};
use crate::foreign::six_octets;

/// The status of a command line that is wrong.
const WRONG_WORDS: u8 = 2;

/// What may follow the link's name, for [`super`]'s help too.
pub const USAGE: &str = "\
usage: fingerpost ifconfig LINK [inet|inet6] ADDRESS[/LEN] [DESTINATION]
                           [netmask MASK|prefixlen LEN] [broadcast ADDRESS] [alias|-alias]
       fingerpost ifconfig LINK up|down|ether ADDRESS|mtu BYTES|name NAME|description TEXT
                           |[-]arp|[-]promisc|[-]allmulti|destroy …";

/// What makes links of a kind, or is a setting that Linux has elsewhere.
const NOT_BUILT: &[(&str, &str)] = &[
    (
        "create",
        "`fingerpost link add NAME type KIND` makes a link",
    ),
    ("plumb", "`fingerpost link add NAME type KIND` makes a link"),
    (
        "vlan",
        "`fingerpost link add NAME link LINK type vlan id N` makes one",
    ),
    (
        "vlandev",
        "`fingerpost link add NAME link LINK type vlan id N` makes one",
    ),
    (
        "addm",
        "`fingerpost link set PORT master BRIDGE` adds a port",
    ),
    (
        "deletem",
        "`fingerpost link set PORT nomaster` takes a port out",
    ),
    ("vrf", "`fingerpost link set LINK master VRF` puts it there"),
    ("vnet", "`fingerpost link set LINK netns NAME` moves it"),
    ("media", "`ethtool -s LINK` sets it"),
    ("mediaopt", "`ethtool -s LINK` sets it"),
    (
        "tunnel",
        "`fingerpost link add NAME type KIND local … remote …` makes one",
    ),
    (
        "metric",
        "`fingerpost ip addr change … metric N` sets that of an address",
    ),
    ("fib", "`fingerpost link set LINK master VRF` puts it there"),
];

/// Reads the words behind a link's name.
pub fn read(name: &str, words: &[String]) -> Result<Changes, Failed> {
    if name.contains(':') {
        // Net-tools' word for an address: what follows would be done to the
        // whole link.
        let instead = "name the link, and the address with `alias` or `-alias`";
        return Err(Failed::not_built("ifconfig", name, instead));
    }
    let mut reader = Reader {
        words: words.iter().map(String::as_str).collect(),
        at: 0,
        steps: Vec::new(),
    };
    while let Some(word) = reader.next() {
        reader.word(word)?;
    }
    Ok(Changes {
        name: name.to_owned(),
        steps: reader.steps,
        stops: true,
    })
}

struct Reader<'a> {
    words: Vec<&'a str>,
    at: usize,
    steps: Vec<Step>,
}

/// An address and what is said of it.
#[derive(Default)]
struct Said<'a> {
    address: Option<(&'a str, IpAddr)>,
    len: Option<u8>,
    broadcast: Option<Ipv4Addr>,
    destination: Option<IpAddr>,
    alias: bool,
    goes: bool,
}

impl Said<'_> {
    /// Takes the prefix's length, unless it has been said.
    fn length(&mut self, word: &str, len: u8) -> Result<(), Failed> {
        match self.len.replace(len) {
            Some(_) => Err(wrong(word, "the prefix's length is said twice")),
            None => Ok(()),
        }
    }
}

fn wrong(word: &str, why: &str) -> Failed {
    Failed::new(WRONG_WORDS, format!("ifconfig: `{word}`: {why}\n{USAGE}"))
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.at).copied();
        self.at += usize::from(word.is_some());
        word
    }

    fn value(&mut self, word: &str, what: &str) -> Result<&'a str, Failed> {
        self.next()
            .ok_or_else(|| wrong(word, &format!("{what} is missing")))
    }

    fn word(&mut self, word: &'a str) -> Result<(), Failed> {
        if let Some((_, instead)) = NOT_BUILT.iter().find(|(known, _)| *known == word) {
            return Err(Failed::not_built("ifconfig", word, instead));
        }
        if let Some((bits, on)) = flag_of(word) {
            let still = None;
            self.steps.push(Step::Flag(Flag { bits, on, still }));
            return Ok(());
        }
        let step = match word {
            "mtu" => {
                let value = self.value(word, "the number of bytes")?;
                let bytes = value.parse();
                Step::Mtu(bytes.map_err(|_| wrong(value, "a number of bytes is wanted"))?)
            }
            "name" => Step::Name(self.value(word, "the new name")?.to_owned()),
            "description" | "descr" => Step::Description(self.value(word, "the text")?.to_owned()),
            "-description" | "-descr" => Step::Description(String::new()),
            "ether" | "lladdr" | "link" => {
                let value = self.value(word, "the address")?;
                let address = six_octets(value);
                Step::Hardware(
                    address.ok_or_else(|| {
                        wrong(value, "an address like 00:0c:29:65:4d:48 is wanted")
                    })?,
                )
            }
            "destroy" | "unplumb" => Step::Destroy,
            "inet" | "inet6" => {
                let address = self.value(word, "the address")?;
                self.address(address, word == "inet6")?
            }
            address => self.address(address, address.contains(':'))?,
        };
        self.steps.push(step);
        Ok(())
    }

    /// An address, with the words that belong to it.
    fn address(&mut self, word: &'a str, is_v6: bool) -> Result<Step, Failed> {
        let mut said = Said {
            // IPv6 has always had several.
            alias: is_v6,
            ..Said::default()
        };
        // `inet6 -alias ADDRESS` is not BSD's, `delete ADDRESS` is.
        let word = match word {
            "delete" | "remove" | "-alias" => {
                said.goes = true;
                self.value(word, "the address")?
            }
            "add" | "alias" => {
                said.alias = true;
                self.value(word, "the address")?
            }
            address => address,
        };
        let (name, len) = match word.split_once('/') {
            Some((name, len)) => (name, Some(length(word, len, is_v6)?)),
            None => (word, None),
        };
        said.address = Some((word, host(name, is_v6)?));
        said.len = len;
        while let Some(word) = self.words.get(self.at).copied() {
            if !self.further(word, is_v6, &mut said)? {
                break;
            }
        }
        step_of(said)
    }

    /// A word that belongs to the address before it; false: it does not.
    fn further(&mut self, word: &'a str, is_v6: bool, said: &mut Said<'a>) -> Result<bool, Failed> {
        self.at += 1;
        match word {
            "alias" | "add" => said.alias = true,
            "-alias" | "delete" | "remove" => said.goes = true,
            "netmask" if !is_v6 => {
                let value = self.value(word, "the mask")?;
                let mask = mask(value).and_then(prefix_len);
                let mask = mask.ok_or_else(|| {
                    wrong(value, "a mask like 255.255.255.0 or 0xffffff00 is wanted")
                })?;
                said.length(value, mask)?;
            }
            "prefixlen" => {
                let value = self.value(word, "the length")?;
                said.length(value, length(value, value, is_v6)?)?;
            }
            "broadcast" if !is_v6 => {
                let value = self.value(word, "the address")?;
                match host(value, false)? {
                    IpAddr::V4(address) => said.broadcast = Some(address),
                    IpAddr::V6(_) => return Err(wrong(value, "an IPv4 address is wanted")),
                }
            }
            // The other end stands behind the address at once.
            other if said.destination.is_none() && is_address(other, is_v6) => {
                said.destination = Some(host(other, is_v6)?);
            }
            _ => {
                self.at -= 1;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn step_of(said: Said<'_>) -> Result<Step, Failed> {
    let Some((word, address)) = said.address else {
        return Err(wrong("inet", "the address is missing"));
    };
    if said.goes {
        return Ok(Step::Remove(address, said.len));
    }
    let usual = match address {
        IpAddr::V4(_) => said.destination.map(|_| 32),
        IpAddr::V6(_) if said.destination.is_some() => Some(128),
        IpAddr::V6(_) => Some(64),
    };
    let Some(len) = said.len.or(usual) else {
        let why = "its prefix is not said: ADDRESS/LEN, netmask MASK or prefixlen LEN";
        return Err(wrong(word, why));
    };
    let net = match address {
        IpAddr::V4(address) => Ipv4Net::new(address, len).map(IpNet::V4),
        IpAddr::V6(address) => Ipv6Net::new(address, len).map(IpNet::V6),
    };
    Ok(Step::Put(Put {
        address: net.map_err(|_| wrong(word, "its prefix is too long"))?,
        broadcast: said.broadcast,
        destination: said.destination,
        alias: said.alias,
    }))
}

fn is_address(word: &str, is_v6: bool) -> bool {
    match is_v6 {
        true => word.parse::<std::net::Ipv6Addr>().is_ok(),
        false => word.parse::<Ipv4Addr>().is_ok(),
    }
}

fn host(word: &str, is_v6: bool) -> Result<IpAddr, Failed> {
    if is_v6 {
        let address = word.parse::<std::net::Ipv6Addr>();
        return Ok(address
            .map_err(|_| wrong(word, "no word of ifconfig, and no address of IPv6"))?
            .into());
    }
    let meant = inet::meant(word, true)
        .ok()
        .filter(|meant| !meant.is_network);
    let meant = meant.ok_or_else(|| wrong(word, "no word of ifconfig, and no host"))?;
    Ok(meant.address.into())
}

fn length(word: &str, len: &str, is_v6: bool) -> Result<u8, Failed> {
    let most = if is_v6 { 128 } else { 32 };
    let len = len.parse().ok().filter(|len| *len <= most);
    len.ok_or_else(|| wrong(word, &format!("a prefix has 0 to {most} bits")))
}

/// A mask: an address, or a hexadecimal number.
fn mask(word: &str) -> Option<Ipv4Addr> {
    inet::address(word)
}

fn flag_of(word: &str) -> Option<(u32, bool)> {
    Some(match word {
        "up" => (flag::UP, true),
        "down" => (flag::UP, false),
        "arp" => (flag::NOARP, false),
        "-arp" => (flag::NOARP, true),
        "promisc" => (flag::PROMISC, true),
        "-promisc" => (flag::PROMISC, false),
        "allmulti" => (flag::ALLMULTI, true),
        "-allmulti" => (flag::ALLMULTI, false),
        "debug" => (flag::DEBUG, true),
        "-debug" => (flag::DEBUG, false),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_line(line: &str) -> Result<Vec<Step>, Failed> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Ok(read("em1", &words)?.steps)
    }

    fn put(address: &str, alias: bool) -> Put {
        Put {
            address: address.parse().unwrap(),
            broadcast: None,
            destination: None,
            alias,
        }
    }

    #[test]
    fn addresses_in_bsd_s_words() {
        let peer = Put {
            destination: Some("10.0.0.2".parse().unwrap()),
            ..put("10.0.0.1/32", false)
        };
        let broadcast = Put {
            broadcast: Some([10, 0, 0, 7].into()),
            ..put("10.0.0.1/24", true)
        };
        let up = Step::Flag(Flag {
            bits: flag::UP,
            on: true,
            still: None,
        });
        for (line, steps) in [
            ("10.0.0.1/24", vec![Step::Put(put("10.0.0.1/24", false))]),
            (
                "inet 10.0.0.1 netmask 0xffffff00 alias up",
                vec![Step::Put(put("10.0.0.1/24", true)), up],
            ),
            (
                "10.0.0.1 netmask 255.255.255.0 broadcast 10.0.0.7 alias",
                vec![Step::Put(broadcast)],
            ),
            ("inet 10.0.0.1 10.0.0.2", vec![Step::Put(peer)]),
            (
                "inet6 2001:db8::1 prefixlen 48",
                vec![Step::Put(put("2001:db8::1/48", true))],
            ),
            ("2001:db8::1", vec![Step::Put(put("2001:db8::1/64", true))]),
            (
                "inet 10.0.0.1 -alias",
                vec![Step::Remove("10.0.0.1".parse().unwrap(), None)],
            ),
            (
                "inet6 2001:db8::1 delete",
                vec![Step::Remove("2001:db8::1".parse().unwrap(), None)],
            ),
            (
                "10.0.0.1/24 -alias",
                vec![Step::Remove("10.0.0.1".parse().unwrap(), Some(24))],
            ),
            (
                "description text mtu 9000",
                vec![Step::Description("text".into()), Step::Mtu(9000)],
            ),
        ] {
            assert_eq!(read_line(line), Ok(steps), "{line}");
        }
    }

    #[test]
    fn a_wrong_word_is_refused_with_what_is_wanted() {
        for (line, status, says) in [
            ("10.0.0.1", 2, "prefix is not said"),
            ("10.0.0.1/33", 2, "0 to 32 bits"),
            ("inet6 2001:db8::1/129", 2, "0 to 128 bits"),
            ("inet 10.0.0.1 netmask 255.0.255.0", 2, "a mask like"),
            ("10.0.0.1/24 netmask 255.255.0.0", 2, "said twice"),
            ("2001:db8::1/64 prefixlen 64", 2, "said twice"),
            ("inet", 2, "missing"),
            ("mtu", 2, "missing"),
            ("mtu big", 2, "a number of bytes"),
            ("ether zz", 2, "an address like"),
            ("inet6 10.0.0.1", 2, "no address of IPv6"),
            ("up a:b", 2, "no address of IPv6"),
            ("create", 255, "link add"),
        ] {
            let failed = read_line(line).unwrap_err();
            assert_eq!(failed.status, status, "{line}: {failed:?}");
            assert!(failed.text.contains(says), "{line}: {failed:?}");
        }
    }

    #[test]
    fn an_alias_by_name_is_refused_before_its_link_is_touched() {
        for words in [["destroy"].as_slice(), &["10.0.0.5/24"], &["mtu", "1400"]] {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let failed = read("em1:1", &words).unwrap_err();
            assert_eq!(failed.status, 255, "{failed:?}");
            assert!(failed.text.contains("em1:1"), "{failed:?}");
        }
    }
}
