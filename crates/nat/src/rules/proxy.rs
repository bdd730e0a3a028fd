//! Proxy rules: connections that go out to a port are sent to a proxy
//! instead, which may be told where they were meant to go. The words are
//! libalias's (`LibAliasProxyRule`).

use std::net::Ipv4Addr;
use std::str::SplitWhitespace;

use super::{MAX_PROXIES, RuleError, Tuple};

const TCP: u8 = 6;
const UDP: u8 = 17;
/// The number of a rule that names none: asked first, like 0.
const NO_NUMBER: u32 = 0;

/// How the proxy is told where a connection was meant to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// Not at all.
    #[default]
    None,
    /// By an IP option (type 0x64, eight bytes: address and port) in each
    /// packet.
    IpHeader,
    /// By `[DEST 192.0.2.1 80]` and an end of line, an even number of bytes
    /// in all, put in front of the first data of the connection.
    TcpStream,
}

/// A network: an address and how many of its leading bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Network {
    address: u32,
    mask: u32,
}

impl Network {
    /// Of `bits` leading bits; more than 32 are 32.
    pub fn new(address: Ipv4Addr, bits: u32) -> Self {
        let mask = u32::MAX.checked_shl(32_u32.saturating_sub(bits));
        let mask = mask.unwrap_or(0);
        Self {
            address: u32::from(address) & mask,
            mask,
        }
    }

    /// Whether an address lies in it.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        u32::from(address) & self.mask == self.address
    }
}

/// A proxy rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proxy {
    /// Rules with lower numbers are asked first.
    pub number: u32,
    /// TCP or UDP; `None`: both, which no text says.
    pub protocol: Option<u8>,
    /// The remote port of connections it is for; 0: any.
    pub port: u16,
    /// Where they are sent instead.
    pub server: Ipv4Addr,
    /// The port there; 0: the one they were meant for.
    pub server_port: u16,
    /// From where.
    pub source: Network,
    /// To where.
    pub destination: Network,
    /// How the proxy is told.
    pub encoding: Encoding,
}

impl Proxy {
    /// Whether a new flow is for this rule.
    pub fn fits(&self, tuple: &Tuple) -> bool {
        let protocol = match self.protocol {
            Some(protocol) => protocol == tuple.protocol,
            None => matches!(tuple.protocol, TCP | UDP),
        };
        protocol
            && (self.port == 0 || self.port == tuple.remote_port)
            && self.source.contains(tuple.own)
            && self.destination.contains(tuple.remote)
    }
}

/// Proxy rules in the order they are asked.
#[derive(Debug, Clone, Default)]
pub struct Proxies {
    /// By port (0: any), then by number, the latest first among equals.
    rules: Vec<Proxy>,
}

impl Proxies {
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    pub fn add(&mut self, proxy: Proxy) -> Result<(), RuleError> {
        if self.rules.len() >= MAX_PROXIES {
            return Err(RuleError::Full { limit: MAX_PROXIES });
        }
        let key = (proxy.port, proxy.number);
        let at = self
            .rules
            .partition_point(|rule| (rule.port, rule.number) < key);
        self.rules.insert(at, proxy);
        Ok(())
    }

    pub fn remove(&mut self, number: u32) -> bool {
        let before = self.rules.len();
        self.rules.retain(|rule| rule.number != number);
        self.rules.len() < before
    }

    pub fn find(&self, tuple: &Tuple) -> Option<&Proxy> {
        let own = self.first(tuple.remote_port, tuple);
        let any = self.first(0, tuple);
        match (own, any) {
            (Some(own), Some(any)) if any.number < own.number => Some(any),
            (own, any) => own.or(any),
        }
    }

    fn first(&self, port: u16, tuple: &Tuple) -> Option<&Proxy> {
        let start = self.rules.partition_point(|rule| rule.port < port);
        let rules = self.rules.get(start..)?.iter();
        let mut rules = rules.take_while(|rule| rule.port == port);
        rules.find(|rule| rule.fits(tuple))
    }
}

/// What a proxy rule's text asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyWord {
    /// A rule more.
    Add(Proxy),
    /// Away with all of this number.
    Delete(u32),
}

/// What is wrong with a proxy rule's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// A word that is none of the language's.
    #[error("`{0}` is no word of a proxy rule: type, port, server, proto, src, dst, rule, delete")]
    Unknown(String),
    /// The last word wants a value.
    #[error("`{0}` wants a value")]
    NoValue(String),
    /// A value that the word does not take.
    #[error("`{value}` is no value for `{word}`: {wanted}")]
    Value {
        /// The word.
        word: &'static str,
        /// What was said.
        value: String,
        /// What could have been.
        wanted: &'static str,
    },
    /// Something that a rule must have.
    #[error("a proxy rule names its `{0}`")]
    Missing(&'static str),
    /// A TCP-only way of telling for a rule that is not for TCP only.
    #[error("`encode_tcp_stream` is for `proto tcp`")]
    NotTcp,
}

impl ProxyError {
    fn value(word: &'static str, value: &str, wanted: &'static str) -> Self {
        Self::Value {
            word,
            value: value.to_owned(),
            wanted,
        }
    }
}

/// Reads a proxy rule: pairs of words, such as `type encode_ip_hdr port 80
/// server 10.0.0.1:3128 proto tcp src 10.0.0.0/8 dst 0.0.0.0/0 rule 10`, or
/// `delete 10`. Addresses and ports are numbers: nothing is looked up.
/// O(length of the text).
pub fn parse(text: &str) -> Result<ProxyWord, ProxyError> {
    let mut words = text.split_whitespace();
    let mut proxy = Proxy {
        number: NO_NUMBER,
        // As in libalias, a rule that names no protocol is for TCP.
        protocol: Some(TCP),
        port: 0,
        server: Ipv4Addr::UNSPECIFIED,
        server_port: 0,
        source: Network::default(),
        destination: Network::default(),
        encoding: Encoding::None,
    };
    let mut with_server = false;
    while let Some(word) = words.next() {
        match word {
            "type" => proxy.encoding = encoding(value(word, &mut words)?)?,
            "port" => {
                let text = value(word, &mut words)?;
                proxy.port = port(text).ok_or_else(|| wrong_port("port", text))?;
            }
            "server" => {
                let (address, port) = server(value(word, &mut words)?)?;
                (proxy.server, proxy.server_port) = (address, port);
                with_server = true;
            }
            "proto" => proxy.protocol = Some(protocol(value(word, &mut words)?)?),
            "src" => proxy.source = network("src", value(word, &mut words)?)?,
            "dst" => proxy.destination = network("dst", value(word, &mut words)?)?,
            "rule" => proxy.number = number("rule", value(word, &mut words)?)?,
            "delete" => {
                let number = number("delete", value(word, &mut words)?)?;
                return match words.next() {
                    None => Ok(ProxyWord::Delete(number)),
                    Some(more) => Err(ProxyError::Unknown(more.to_owned())),
                };
            }
            _ => return Err(ProxyError::Unknown(word.to_owned())),
        }
    }
    if !with_server {
        return Err(ProxyError::Missing("server"));
    }
    if proxy.encoding == Encoding::TcpStream && proxy.protocol == Some(UDP) {
        return Err(ProxyError::NotTcp);
    }
    Ok(ProxyWord::Add(proxy))
}

fn value<'a>(word: &str, words: &mut SplitWhitespace<'a>) -> Result<&'a str, ProxyError> {
    words
        .next()
        .ok_or_else(|| ProxyError::NoValue(word.to_owned()))
}

fn encoding(text: &str) -> Result<Encoding, ProxyError> {
    match text {
        "encode_ip_hdr" => Ok(Encoding::IpHeader),
        "encode_tcp_stream" => Ok(Encoding::TcpStream),
        "no_encode" => Ok(Encoding::None),
        _ => Err(ProxyError::value(
            "type",
            text,
            "encode_ip_hdr, encode_tcp_stream or no_encode",
        )),
    }
}

fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port| *port != 0)
}

fn wrong_port(word: &'static str, text: &str) -> ProxyError {
    ProxyError::value(word, text, "a port, 1 to 65535")
}

fn server(text: &str) -> Result<(Ipv4Addr, u16), ProxyError> {
    let wrong = || ProxyError::value("server", text, "an IPv4 address, and a port behind a colon");
    let (address, server_port) = match text.split_once(':') {
        Some((address, server_port)) => (address, port(server_port).ok_or_else(wrong)?),
        None => (text, 0),
    };
    Ok((address.parse().map_err(|_| wrong())?, server_port))
}

fn protocol(text: &str) -> Result<u8, ProxyError> {
    match text {
        "tcp" => Ok(TCP),
        "udp" => Ok(UDP),
        _ => Err(ProxyError::value("proto", text, "tcp or udp")),
    }
}

fn network(word: &'static str, text: &str) -> Result<Network, ProxyError> {
    let wrong = || ProxyError::value(word, text, "an IPv4 address, and bits behind a slash");
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, bits.parse().map_err(|_| wrong())?),
        None => (text, 32),
    };
    if bits > 32 {
        return Err(wrong());
    }
    Ok(Network::new(address.parse().map_err(|_| wrong())?, bits))
}

fn number(word: &'static str, text: &str) -> Result<u32, ProxyError> {
    text.parse()
        .map_err(|_| ProxyError::value(word, text, "a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(text: &str) -> Proxy {
        match parse(text) {
            Ok(ProxyWord::Add(proxy)) => proxy,
            other => unreachable!("{text}: {other:?}"),
        }
    }

    fn tuple(port: u16) -> Tuple {
        Tuple {
            protocol: TCP,
            own: Ipv4Addr::new(10, 0, 0, 5),
            own_port: 40_000,
            remote: Ipv4Addr::new(18, 0, 0, 1),
            remote_port: port,
        }
    }

    #[test]
    fn lower_numbers_first_and_the_latest_among_equals() {
        let mut proxies = Proxies::default();
        proxies.add(add("server 10.0.0.1 rule 5")).unwrap();
        proxies.add(add("port 80 server 10.0.0.2 rule 7")).unwrap();
        let server = |proxies: &Proxies, port| {
            let rule = proxies.find(&tuple(port));
            rule.map(|rule| rule.server.octets()[3])
        };
        assert_eq!(server(&proxies, 80), Some(1));
        proxies.add(add("port 80 server 10.0.0.3 rule 2")).unwrap();
        proxies.add(add("port 80 server 10.0.0.4 rule 2")).unwrap();
        assert_eq!(server(&proxies, 80), Some(4));
        assert_eq!(server(&proxies, 81), Some(1));
        assert!(proxies.remove(2) && !proxies.remove(2));
        assert!(proxies.remove(5));
        assert_eq!(server(&proxies, 80), Some(2));
        assert_eq!(server(&proxies, 81), None);
        let narrow = add("server 10.0.0.9:99 src 10.0.1.0/24 rule 1");
        proxies.add(narrow).unwrap();
        assert_eq!(server(&proxies, 80), Some(2));
    }

    #[test]
    fn words_and_what_is_wrong_with_them() {
        let rule = add("type encode_tcp_stream port 80 server 10.0.0.1:3128 dst 18.0.0.0/8");
        assert_eq!((rule.protocol, rule.server_port), (Some(TCP), 3_128));
        assert!(rule.fits(&tuple(80)) && !rule.fits(&tuple(81)));
        let udp = Tuple {
            protocol: UDP,
            ..tuple(80)
        };
        assert!(!add("port 80 server 10.0.0.1").fits(&udp));
        assert!(add("port 80 server 10.0.0.1 proto udp").fits(&udp));
        assert_eq!(parse("delete 4"), Ok(ProxyWord::Delete(4)));
        for wrong in [
            "",
            "port 80",
            "server",
            "server 10.0.0.1:0",
            "server host",
            "port 0 server 10.0.0.1",
            "proto sctp server 10.0.0.1",
            "src 10.0.0.0/33 server 10.0.0.1",
            "delete x",
            "type rot13 server 10.0.0.1",
            "type encode_tcp_stream proto udp server 10.0.0.1",
            "delete 1 2",
            "shout loud",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
