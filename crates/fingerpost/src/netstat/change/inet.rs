//! route(8)'s words for a route of IPv4, and the row that they mean.

use std::net::Ipv4Addr;

use anyhow::Result;
use ipnet::Ipv4Net;
use netlink::decode::Operation;
use table::row::route::{kind, protocol, scope, table_id};
use table::row::route_metrics::{Metric, RouteMetrics};
use table::{NextHop, NextHops, Route, RouteBody};

use super::{NO_HOST, metric, refused, usage, wrong};
use crate::foreign::failed::Failed;
use crate::foreign::inet::{self, leading_number, prefix_len};
use crate::foreign::kernel::Kernel;

/// What of a packet of the maximum segment size is no data.
const HEADERS: u32 = 40;
/// What route(8) takes as a maximum segment size, and as a window.
const MSS: std::ops::RangeInclusive<i64> = 64..=65536;
const LEAST_WINDOW: i64 = 128;

/// A route, as it was asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Made or deleted.
    pub operation: Operation,
    address: Ipv4Addr,
    /// Of the prefix; `None`: the mask leaves bits of the address.
    len: Option<u8>,
    gateway: Option<Ipv4Addr>,
    metric: u32,
    /// Bytes; 0: not said.
    mss: u32,
    window: u32,
    irtt: u16,
    rejects: bool,
    dev: Option<String>,
}

/// Reads the words after the verb.
pub fn read(operation: Operation, words: &[&str]) -> Result<Wanted, Failed> {
    let (is_net, words) = match words.split_first() {
        Some((&"#net", rest)) => (Some(true), rest),
        Some((&"#host", rest)) => (Some(false), rest),
        _ => (None, words),
    };
    let (target, words) = words.split_first().ok_or_else(usage)?;
    let (name, len) = match target.split_once('/') {
        Some((name, len)) => (name, Some(length(target, len)?)),
        None => (*target, None),
    };
    let meant = inet::meant(name, is_net == Some(false));
    let meant = meant.map_err(|why| Failed::new(NO_HOST, why))?;
    let mut wanted = Wanted {
        operation,
        address: meant.address,
        len: None,
        gateway: None,
        metric: 0,
        mss: 0,
        window: 0,
        irtt: 0,
        rejects: false,
        dev: None,
    };
    // No bit of a mask is as good as no mask; net-tools loses those of 32.
    let mut mask = len.filter(|len| !matches!(len, 0 | 32));
    wanted.options(words, &mut mask)?;
    wanted.len = wanted.checked(is_net.unwrap_or(meant.is_network), mask)?;
    Ok(wanted)
}

/// The length behind the stroke.
fn length(target: &str, len: &str) -> Result<u8, Failed> {
    if len.starts_with('-') {
        let instead = "a prefix has 0 to 32 bits";
        return Err(Failed::not_built("route", target, instead));
    }
    match len.parse::<u64>() {
        Ok(len) if len > 32 => Err(wrong("netmask doesn't match route address")),
        Ok(len) => Ok(len as u8),
        Err(_) => Err(usage()),
    }
}

impl Wanted {
    /// Reads what follows the target.
    fn options(&mut self, words: &[&str], mask: &mut Option<u8>) -> Result<(), Failed> {
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                // The kernel's number is a signed one of 16 bits, one more.
                "metric" => {
                    let said = metric(words.next())?.wrapping_add(1) as i16;
                    self.metric = if said == 0 {
                        0
                    } else {
                        (i32::from(said) - 1) as u32
                    };
                }
                "netmask" => self.mask(words.next(), mask)?,
                "gw" | "gateway" => self.gateway(words.next())?,
                "mss" | "mtu" => {
                    let said = leading_number(words.next().ok_or_else(usage)?);
                    if !MSS.contains(&said) {
                        return Err(wrong("Invalid MSS/MTU."));
                    }
                    self.mss = said as u32;
                }
                "window" => {
                    let said = leading_number(words.next().ok_or_else(usage)?);
                    if said < LEAST_WINDOW {
                        return Err(wrong("Invalid window."));
                    }
                    self.window = said as u32;
                }
                "irtt" => self.irtt = leading_number(words.next().ok_or_else(usage)?) as u16,
                "reject" => self.rejects = true,
                // Flags that the kernel passes over.
                "mod" | "dyn" | "reinstate" => {}
                "dev" | "device" if self.dev.is_none() => {
                    self.dev = Some(words.next().ok_or_else(usage)?.to_owned());
                }
                // A link's name alone is the last word.
                link if self.dev.is_none() && words.len() == 0 => {
                    self.dev = Some(link.to_owned());
                }
                _ => return Err(usage()),
            }
        }
        Ok(())
    }

    fn mask(&self, word: Option<&str>, mask: &mut Option<u8>) -> Result<(), Failed> {
        let word = word.filter(|_| mask.is_none()).ok_or_else(usage)?;
        let meant = inet::meant(word, false).map_err(|why| Failed::new(NO_HOST, why))?;
        let Some(len) = prefix_len(meant.address) else {
            return Err(wrong(&format!("bogus netmask {word}")));
        };
        *mask = Some(len).filter(|len| *len > 0);
        Ok(())
    }

    fn gateway(&mut self, word: Option<&str>) -> Result<(), Failed> {
        let word = word.filter(|_| self.gateway.is_none()).ok_or_else(usage)?;
        let meant = inet::meant(word, true).map_err(|why| Failed::new(NO_HOST, why))?;
        if meant.is_network {
            return Err(wrong(&format!("{word}: cannot use a NETWORK as gateway!")));
        }
        self.gateway = Some(meant.address);
        Ok(())
    }

    /// The length of the prefix; `None` where the kernel refuses it.
    fn checked(&self, is_net: bool, mask: Option<u8>) -> Result<Option<u8>, Failed> {
        let bits = |len: u8| u32::MAX.checked_shr(len.into()).unwrap_or(0);
        match mask {
            Some(len) if !is_net => {
                let rest = bits(len);
                let why = format!("netmask {rest:08x} doesn't make sense with host route");
                Err(wrong(&why))
            }
            Some(len) if u32::from(self.address) & bits(len) != 0 => {
                Err(wrong("netmask doesn't match route address"))
            }
            Some(len) => Ok(Some(len)),
            None if !is_net => Ok(Some(32)),
            None => Ok(Some(0).filter(|_| self.address.is_unspecified())),
        }
    }

    /// The row, with the links of this moment.
    pub fn route(&self, kernel: &Kernel<'_>) -> Result<Result<Route, Failed>> {
        let invalid = || refused(self.operation, "Invalid argument");
        let is_made = self.operation == Operation::New;
        let Some(prefix) = self
            .len
            .and_then(|len| Ipv4Net::new(self.address, len).ok())
        else {
            return Ok(Err(invalid()));
        };
        let mut route = Route {
            table: table_id::MAIN,
            prefix: prefix.into(),
            tos: 0,
            metric: self.metric,
            body: RouteBody {
                protocol: if is_made {
                    protocol::BOOT
                } else {
                    protocol::UNSPEC
                },
                ..RouteBody::default()
            },
        };
        if self.rejects {
            route.body.kind = kind::UNREACHABLE;
            route.body.scope = scope::HOST;
            return Ok(Ok(route));
        }
        route.body.kind = kind::UNICAST;
        route.body.scope = match (is_made, self.gateway) {
            (false, _) => scope::NOWHERE,
            (true, Some(gateway)) if kernel.is_other_host(gateway) => scope::UNIVERSE,
            (true, _) => scope::LINK,
        };
        let mut link = 0;
        if let Some(dev) = &self.dev {
            match self.leaving_by(dev, &mut route, kernel)? {
                Some(index) => link = index,
                None => return Ok(Err(refused(self.operation, "No such device"))),
            }
        }
        let gateway = self.gateway.filter(|gateway| !gateway.is_unspecified());
        if is_made && self.gateway.is_some() && gateway.is_none() {
            return Ok(Err(invalid()));
        }
        if link != 0 || gateway.is_some() {
            route.body.next_hops = NextHops::One(NextHop {
                link,
                gateway: gateway.map(Into::into),
                weight: 1,
                ..NextHop::default()
            });
        }
        if is_made {
            route.body.metrics = self.metrics();
        }
        Ok(Ok(route))
    }

    /// The index of the link. With one goes the table of its VRF; with an
    /// alias (`eth0:1`) its address.
    fn leaving_by(&self, dev: &str, route: &mut Route, kernel: &Kernel<'_>) -> Result<Option<u32>> {
        let (name, alias) = match dev.split_once(':') {
            Some((name, _)) => (name, Some(dev)),
            None => (dev, None),
        };
        let Some(link) = kernel.link(name)? else {
            return Ok(None);
        };
        if let Some(table) = kernel.table_of(&link)? {
            route.table = table;
        }
        let Some(alias) = alias else {
            return Ok(Some(link.index));
        };
        let addresses = kernel.addresses(&link)?;
        let labelled = addresses
            .iter()
            .find(|address| address.label.as_deref() == Some(alias));
        route.body.preferred_source = labelled.map(|address| address.local);
        Ok(labelled.map(|_| link.index))
    }

    fn metrics(&self) -> Option<Box<RouteMetrics>> {
        let mut metrics = RouteMetrics::default();
        let said = [
            (Metric::AdvMss, self.mss.saturating_sub(HEADERS)),
            (Metric::Window, self.window),
            // In eighths of a millisecond.
            (Metric::Rtt, u32::from(self.irtt) << 3),
        ];
        let mut any = false;
        for (metric, value) in said.into_iter().filter(|(_, value)| *value > 0) {
            metrics.set(metric, value);
            any = true;
        }
        any.then(|| Box::new(metrics))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_line(line: &str) -> Result<Wanted, Failed> {
        let words: Vec<&str> = line.split_whitespace().collect();
        read(Operation::New, &words)
    }

    #[test]
    fn the_words_of_a_route() {
        let line = "#net 10.5.0.0 netmask 255.255.0.0 gw 10.0.0.9 metric 40000 mss 1000 \
                    window 5000 irtt 80 mod dyn reinstate em1";
        let wanted = read_line(line).unwrap();
        assert_eq!(
            (wanted.address, wanted.len),
            ([10, 5, 0, 0].into(), Some(16))
        );
        assert_eq!(wanted.gateway, Some([10, 0, 0, 9].into()));
        assert_eq!(wanted.metric, 4_294_941_760);
        assert_eq!((wanted.mss, wanted.window, wanted.irtt), (1000, 5000, 80));
        assert_eq!(wanted.dev.as_deref(), Some("em1"));
        let metrics = wanted.metrics().unwrap();
        assert_eq!(metrics.get(Metric::AdvMss), Some(960));
        assert_eq!(metrics.get(Metric::Rtt), Some(640));
    }

    #[test]
    fn what_a_target_means() {
        for (line, len) in [
            ("10.0.0.1 em1", Some(32)),
            ("#host default em1", Some(32)),
            ("default gw 10.0.0.9", Some(0)),
            ("#net 0.0.0.0/0 em1", Some(0)),
            ("#net 10.5.0.0/16 em1", Some(16)),
            ("#net 10.5.0.0 em1", None),
            ("#net 10.0.0.0/0 em1", None),
        ] {
            assert_eq!(read_line(line).unwrap().len, len, "{line}");
        }
    }

    #[test]
    fn wrong_words_are_refused() {
        for (line, status, says) in [
            ("", 3, "usage"),
            ("#net", 3, "usage"),
            ("10.0.0.1 gw", 3, "usage"),
            ("10.0.0.1 em1 em2", 3, "usage"),
            ("10.0.0.1 dev em1 dev em2", 3, "usage"),
            ("10.0.0.1 metric x", 3, "usage"),
            ("#net 10.5.0.0/255.255.0.0 em1", 3, "usage"),
            ("#net 10.5.0.0/-1 em1", 255, "not built"),
            ("#net 10.5.0.0/33 em1", 3, "doesn't match"),
            ("#net 10.5.0.1/16 em1", 3, "doesn't match"),
            ("#net 10.5.0.0/16 netmask 255.0.0.0 em1", 3, "usage"),
            ("#net 10.5.0.0 netmask 255.0.255.0 em1", 3, "bogus"),
            ("#host 10.5.0.0/16 em1", 3, "0000ffff"),
            ("10.5.0.0 netmask 255.255.0.0 em1", 3, "0000ffff"),
            ("default gw default", 3, "NETWORK"),
            ("default mss 3 em1", 3, "MSS"),
            ("default window 3 em1", 3, "window"),
            ("a:b em1", 6, "Unknown host"),
        ] {
            let failed = read_line(line).unwrap_err();
            assert_eq!(failed.status, status, "{line}: {failed:?}");
            assert!(failed.text.contains(says), "{line}: {failed:?}");
        }
    }
}
