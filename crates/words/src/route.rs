//! `route add 10.0.0.0/8 via 192.0.2.1 dev em1 metric 5 proto static`, as
//! `ip` has it; and what `ip route show` prints, which is nearly the same.

use std::net::IpAddr;

use crate::NameFile;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use table::row::route::{flag, hop_flag, kind, protocol, scope, table_id};
use table::{AF_INET, AF_INET6, NextHop, NextHops, RawAttributes, Route, RouteBody, RouteMetrics};

use crate::Verb;
use crate::encap::encap;
use crate::line::{Context, ParseError, Words, address, family, family_of, number, unknown, wrong};
use crate::metrics;

const KNOWN: &str = "[TYPE] PREFIX, via, dev, metric, proto, scope, src, from, table, vrf, tos, \
     nhid, nexthop (several), weight, onlink, realms, expires, pref, encap, mtu, advmss and other \
     metrics";

/// `RTN_…` by `ip`'s names.
const KINDS: &[(&str, u8)] = &[
    ("unicast", kind::UNICAST),
    ("local", kind::LOCAL),
    ("broadcast", kind::BROADCAST),
    ("anycast", kind::ANYCAST),
    ("multicast", kind::MULTICAST),
    ("blackhole", kind::BLACKHOLE),
    ("unreachable", kind::UNREACHABLE),
    ("prohibit", kind::PROHIBIT),
    ("throw", kind::THROW),
    ("nat", kind::NAT),
];

/// What `ip` prints of a route and its hops that is for the reader alone.
pub const ONLY_SHOWN: &[&str] = &[
    "linkdown",
    "dead",
    "offload",
    "trap",
    "offload_failed",
    "rt_offload",
    "rt_trap",
    "rt_offload_failed",
    "unresolved",
    "notify",
];

/// The type of routes that a word names.
pub fn route_kind(word: &str) -> Option<u8> {
    let known = KINDS.iter().find(|(name, _)| *name == word);
    known.map(|(_, kind)| *kind)
}

/// The name of a kind of route by its number.
pub fn route_kind_name(number: u8) -> Option<&'static str> {
    let known = KINDS.iter().find(|(_, kind)| *kind == number);
    known.map(|(name, _)| *name)
}

/// What has been read of a route.
struct Reader {
    kind: Option<u8>,
    prefix: Option<IpNet>,
    family: Option<u8>,
    /// Where nothing else says it.
    usual_family: Option<u8>,
    tos: u8,
    metric: u32,
    table: Option<u32>,
    protocol: Option<u8>,
    scope: Option<u8>,
    flags: u32,
    hop: NextHop,
    hops: Vec<NextHop>,
    body: Rest,
}

/// What most routes do not have.
#[derive(Default)]
struct Rest {
    preferred_source: Option<IpAddr>,
    source: Option<Ipv6Net>,
    nexthop_id: Option<u32>,
    metrics: RouteMetrics,
    preference: Option<u8>,
    expires_at_millis: Option<u64>,
}

/// Reads a route. O(words); allocates for several next hops and metrics
/// only.
pub fn route(line: &str, context: &mut Context<'_>) -> Result<Route, ParseError> {
    let mut reader = Reader {
        kind: None,
        prefix: None,
        family: None,
        usual_family: context.family,
        tos: 0,
        metric: 0,
        table: None,
        protocol: None,
        scope: None,
        flags: 0,
        hop: NextHop {
            weight: 1,
            ..NextHop::default()
        },
        hops: Vec::new(),
        body: Rest::default(),
    };
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
            "via" => self.hop.gateway = Some(self.gateway(word, words)?),
            "dev" | "oif" => self.hop.link = words.link(word, context)?,
            "metric" | "priority" | "preference" => self.metric = words.number(word)?,
            "proto" | "protocol" => {
                self.protocol = Some(words.named_byte(word, NameFile::Protocols, context)?);
            }
            "scope" => self.scope = Some(words.named_byte(word, NameFile::Scopes, context)?),
            "src" => self.body.preferred_source = Some(words.address(word)?),
            "table" => self.table = Some(table(word, words, context)?),
            "vrf" => self.table = Some(context.links.vrf_table(words.value(word)?)?),
            "nhid" => self.body.nexthop_id = Some(words.number(word)?),
            "nexthop" => {
                let hop = self.next_hop(words, context)?;
                self.hops.push(hop);
            }
            "weight" => self.hop.weight = weight(word, words)?,
            "onlink" => self.hop.flags |= hop_flag::ONLINK,
            "pervasive" => self.hop.flags |= hop_flag::PERVASIVE,
            "tos" | "dsfield" => {
                self.tos = words.named_byte(word, NameFile::DsField, context)?;
            }
            "to" => {
                let text = words.value(word)?;
                self.set_prefix(text)?;
            }
            _ if self.prefix.is_none() => self.place(word, words)?,
            _ => self.rare(word, words, context)?,
        }
        Ok(())
    }

    /// The type, or the prefix.
    fn place(&mut self, word: &str, words: &mut Words<'_>) -> Result<(), ParseError> {
        match KINDS.iter().find(|(name, _)| *name == word) {
            Some((_, kind)) if self.kind.is_none() => {
                self.kind = Some(*kind);
                Ok(())
            }
            _ if word == "type" => {
                let name = words.value(word)?;
                let known = KINDS.iter().find(|(known, _)| *known == name);
                let kind = known.ok_or_else(|| wrong(word, name, "a type of route"))?;
                self.kind = Some(kind.1);
                Ok(())
            }
            _ => self.set_prefix(word),
        }
    }

    fn set_prefix(&mut self, text: &str) -> Result<(), ParseError> {
        let prefix = crate::line::prefix(text, self.family.or(self.usual_family))?;
        // `default` alone does not say of which family it is.
        if prefix.prefix_len() != 0 || text.contains(['.', ':']) {
            self.of_family(family_of(prefix.addr()))?;
        }
        self.prefix = Some(prefix);
        Ok(())
    }

    fn of_family(&mut self, family: u8) -> Result<(), ParseError> {
        if *self.family.get_or_insert(family) == family {
            Ok(())
        } else {
            Err("IPv4 and IPv6 are mixed in one route".to_owned())
        }
    }

    /// `via [inet6] ADDRESS`.
    fn gateway(&mut self, word: &str, words: &mut Words<'_>) -> Result<IpAddr, ParseError> {
        let text = words.value(word)?;
        if let Some(family) = family(text) {
            let gateway = words.address(text)?;
            if family_of(gateway) != family {
                return Err(wrong(text, gateway, "an address of that family"));
            }
            return Ok(gateway);
        }
        let gateway = address(text).ok_or_else(|| wrong(word, text, "an address"))?;
        if self.prefix.is_none_or(|prefix| prefix.prefix_len() == 0) && self.family.is_none() {
            self.family = Some(family_of(gateway));
        }
        Ok(gateway)
    }

    /// `nexthop via ADDRESS dev NAME weight N`: its words.
    fn next_hop(
        &mut self,
        words: &mut Words<'_>,
        context: &mut Context<'_>,
    ) -> Result<NextHop, ParseError> {
        let mut hop = NextHop {
            weight: 1,
            ..NextHop::default()
        };
        loop {
            match words.peek() {
                Some(word @ "via") => {
                    words.next();
                    hop.gateway = Some(self.gateway(word, words)?);
                }
                Some(word @ "dev") => {
                    words.next();
                    hop.link = words.link(word, context)?;
                }
                Some(word @ "weight") => {
                    words.next();
                    hop.weight = weight(word, words)?;
                }
                Some("onlink") => {
                    words.next();
                    hop.flags |= hop_flag::ONLINK;
                }
                Some(word @ "realms") => {
                    words.next();
                    hop.realms = realms(word, words, context)?;
                }
                Some("encap") => {
                    words.next();
                    hop.encap = Some(encap(words, context)?);
                }
                Some(word) if ONLY_SHOWN.contains(&word) => {
                    words.next();
                }
                _ => return Ok(hop),
            }
        }
    }

    fn rare(
        &mut self,
        word: &str,
        words: &mut Words<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), ParseError> {
        let rest = &mut self.body;
        match word {
            "from" => match crate::line::prefix(words.value(word)?, Some(AF_INET6))? {
                IpNet::V6(source) => rest.source = Some(source),
                IpNet::V4(_) => return Err("`from` wants an IPv6 prefix".to_owned()),
            },
            "realms" | "realm" => self.hop.realms = realms(word, words, context)?,
            "expires" => {
                let text = words.value(word)?;
                let text = text.strip_suffix("sec").unwrap_or(text);
                let secs: u64 = number(text).ok_or_else(|| wrong(word, text, "seconds"))?;
                let until = context.now_millis.saturating_add(secs.saturating_mul(1000));
                rest.expires_at_millis = Some(until);
            }
            "pref" => {
                rest.preference = Some(match words.value(word)? {
                    "medium" => 0,
                    "high" => 1,
                    "low" => 3,
                    other => return Err(wrong(word, other, "low, medium or high")),
                });
            }
            "encap" => self.hop.encap = Some(encap(words, context)?),
            "cache" => self.flags |= flag::CLONED,
            "error" => {
                words.value(word)?;
            }
            _ if ONLY_SHOWN.contains(&word) => {}
            _ => return self.metric_of_path(word, words),
        }
        Ok(())
    }

    /// `mtu [lock] 1400`.
    fn metric_of_path(&mut self, word: &str, words: &mut Words<'_>) -> Result<(), ParseError> {
        metrics::read(word, words, &mut self.body.metrics)?.ok_or_else(|| unknown(word, KNOWN))
    }

    fn finish(self, verb: Verb) -> Result<Route, ParseError> {
        let prefix = match self.prefix {
            Some(prefix) if prefix.prefix_len() == 0 && self.family.is_some() => {
                match self.family {
                    Some(AF_INET6) => IpNet::V6(Ipv6Net::default()),
                    _ => IpNet::V4(Ipv4Net::default()),
                }
            }
            Some(prefix) => prefix,
            None => return Err("a route wants a prefix, like 10.0.0.0/8 or default".to_owned()),
        };
        if prefix != prefix.trunc() {
            return Err(format!(
                "{prefix} has bits beyond its length; the prefix is {}",
                prefix.trunc()
            ));
        }
        let is_told = self.hop.link != 0 || self.hop.gateway.is_some();
        if is_told && !self.hops.is_empty() {
            return Err(
                "`via` and `dev` stand beside `nexthop`; say them inside each `nexthop`".to_owned(),
            );
        }
        let default_kind = if verb == Verb::Delete {
            kind::UNSPEC
        } else {
            kind::UNICAST
        };
        let kind = self.kind.unwrap_or(default_kind);
        let has_gateway =
            self.hop.gateway.is_some() || !self.hops.is_empty() || self.body.nexthop_id.is_some();
        let scope = match self.scope {
            Some(scope) => scope,
            None if family_of(prefix.addr()) == AF_INET => default_scope(kind, has_gateway, verb),
            None => scope::UNIVERSE,
        };
        let default_protocol = match verb {
            Verb::Delete => protocol::UNSPEC,
            _ => protocol::BOOT,
        };
        let table = self.table.unwrap_or(match kind {
            kind::LOCAL | kind::BROADCAST | kind::NAT | kind::ANYCAST => table_id::LOCAL,
            _ => table_id::MAIN,
        });
        let next_hops = match self.hops.len() {
            0 if is_told || self.hop.flags != 0 => NextHops::One(self.hop),
            0 => NextHops::None,
            _ => NextHops::Many(self.hops.into()),
        };
        let Rest {
            preferred_source,
            source,
            nexthop_id,
            metrics,
            preference,
            expires_at_millis,
        } = self.body;
        Ok(Route {
            table,
            prefix,
            tos: self.tos,
            metric: self.metric,
            body: RouteBody {
                kind,
                protocol: self.protocol.unwrap_or(default_protocol),
                scope,
                flags: self.flags,
                preferred_source,
                source,
                nexthop_id,
                next_hops,
                metrics: metrics.into_row(),
                preference,
                error: 0,
                expires_at_millis,
                rest: RawAttributes::default(),
                path: Default::default(),
            },
        })
    }
}

/// The scope that `ip` gives an IPv4 route.
fn default_scope(kind: u8, has_gateway: bool, verb: Verb) -> u8 {
    match kind {
        kind::LOCAL | kind::NAT => scope::HOST,
        kind::BROADCAST | kind::MULTICAST | kind::ANYCAST => scope::LINK,
        kind::UNICAST | kind::UNSPEC if verb == Verb::Delete => scope::NOWHERE,
        kind::UNICAST if !has_gateway => scope::LINK,
        _ => scope::UNIVERSE,
    }
}

fn table(word: &str, words: &mut Words<'_>, context: &Context<'_>) -> Result<u32, ParseError> {
    words.named(word, NameFile::Tables, context)
}

fn weight(word: &str, words: &mut Words<'_>) -> Result<u16, ParseError> {
    let weight: u16 = words.number(word)?;
    if (1..=256).contains(&weight) {
        Ok(weight)
    } else {
        Err(wrong(word, weight, "a number from 1 to 256"))
    }
}

/// `[FROM/]TO`.
pub fn realms(word: &str, words: &mut Words<'_>, context: &Context<'_>) -> Result<u32, ParseError> {
    let text = words.value(word)?;
    let realm = |text: &str| {
        let number = context.names.number(NameFile::Realms, text);
        number.ok_or_else(|| wrong(word, text, "a realm"))
    };
    match text.split_once('/') {
        Some((from, to)) => Ok(realm(from)? << 16 | realm(to)?),
        None => realm(text),
    }
}
