//! route(8)'s words for a route of IPv6, and the row that they mean.

use std::net::Ipv6Addr;

use anyhow::Result;
use ipnet::Ipv6Net;
use netlink::decode::Operation;
use table::row::route::{hop_flag, kind, protocol, table_id};
use table::{NextHop, NextHops, Route, RouteBody};

use super::{NO_HOST, REFUSED, metric, usage};
use crate::foreign::failed::Failed;
use crate::foreign::host;
use crate::foreign::inet::PATIENCE;
use crate::foreign::kernel::Kernel;

/// The status of a target that has no address.
const NO_TARGET: u8 = 1;
/// What holds where no metric is said.
const METRIC: u32 = 1;
/// What the kernel gives a route without a metric.
const KERNELS_METRIC: u32 = 1024;

/// A route, as it was asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Made or deleted.
    pub operation: Operation,
    prefix: Ipv6Net,
    gateway: Option<Ipv6Addr>,
    metric: u32,
    dev: Option<String>,
}

/// Reads the words after the verb.
pub fn read(operation: Operation, words: &[&str]) -> Result<Wanted, Failed> {
    let (target, words) = words.split_first().ok_or_else(usage)?;
    let mut wanted = Wanted {
        operation,
        prefix: prefix(target)?,
        gateway: None,
        metric: METRIC,
        dev: None,
    };
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "metric" => wanted.metric = metric(words.next())? as u32,
            "gw" | "gateway" => {
                let word = words.next().filter(|_| wanted.gateway.is_none());
                let word = word.ok_or_else(usage)?;
                wanted.gateway = Some(address(word, NO_HOST)?);
            }
            "mod" | "dyn" => {
                let instead = "netlink has no such flag of a route; leave it out";
                return Err(Failed::not_built("route", word, instead));
            }
            "dev" | "device" => {
                wanted.dev = Some(words.next().ok_or_else(usage)?.to_owned());
            }
            link if words.len() == 0 => wanted.dev = Some(link.to_owned()),
            _ => return Err(usage()),
        }
    }
    Ok(wanted)
}

fn prefix(target: &str) -> Result<Ipv6Net, Failed> {
    if target == "default" {
        return Ok(Ipv6Net::default());
    }
    let (name, len) = match target.split_once('/') {
        Some((name, len)) => (name, len),
        None => (target, "128"),
    };
    let len = match len.parse::<i64>() {
        Ok(len) => len,
        Err(_) => {
            let instead = "a prefix has 0 to 128 bits";
            return Err(Failed::not_built("route", target, instead));
        }
    };
    let len = u8::try_from(len).map_err(|_| usage())?;
    Ipv6Net::new(address(name, NO_TARGET)?, len).map_err(|_| usage())
}

fn address(word: &str, status: u8) -> Result<Ipv6Addr, Failed> {
    if let Ok(address) = word.parse() {
        return Ok(address);
    }
    let unknown = || Failed::new(status, format!("{word}: Unknown host"));
    // No host has such a name; to ask for it takes long.
    if crate::foreign::inet::address(word).is_some() || word.contains([':', '#', '/']) {
        return Err(unknown());
    }
    let names = vec![word.to_owned()];
    let mut found = host::ask_all(names, PATIENCE, |host| host::v6_address_of(host));
    found.remove(word).ok_or_else(unknown)
}

impl Wanted {
    /// The row, with the links of this moment.
    pub fn route(&self, kernel: &Kernel<'_>) -> Result<Result<Route, Failed>> {
        let is_made = self.operation == Operation::New;
        let mut table = table_id::MAIN;
        let mut link = 0;
        if let Some(dev) = &self.dev {
            let Some(found) = kernel.link(dev)? else {
                let failed = Failed::new(REFUSED, "SIOGIFINDEX: No such device");
                return Ok(Err(failed));
            };
            table = kernel.table_of(&found)?.unwrap_or(table);
            link = found.index;
        }
        let next_hops = match (link, self.gateway) {
            (0, None) => NextHops::None,
            (link, gateway) => NextHops::One(NextHop {
                link,
                gateway: gateway.map(Into::into),
                weight: 1,
                // The kernel's ioctl takes a host's route for one that is.
                flags: match is_made && self.prefix.prefix_len() == 128 {
                    true => hop_flag::ONLINK,
                    false => 0,
                },
                ..NextHop::default()
            }),
        };
        Ok(Ok(Route {
            table,
            prefix: self.prefix.into(),
            tos: 0,
            metric: match (is_made, self.metric) {
                (true, 0) => KERNELS_METRIC,
                (_, metric) => metric,
            },
            body: RouteBody {
                kind: kind::UNICAST,
                protocol: if is_made {
                    protocol::BOOT
                } else {
                    protocol::UNSPEC
                },
                next_hops,
                ..RouteBody::default()
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_right_and_wrong() {
        let read_line = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            read(Operation::New, &words)
        };
        let wanted = read_line("2001:db8::/32 gw fe80::1 metric 7 em1").unwrap();
        assert_eq!(wanted.prefix, "2001:db8::/32".parse().unwrap());
        assert_eq!(wanted.gateway, Some("fe80::1".parse().unwrap()));
        assert_eq!((wanted.metric, wanted.dev.as_deref()), (7, Some("em1")));
        let host = read_line("2001:db8::1 dev em1 dev em2").unwrap();
        assert_eq!((host.prefix.prefix_len(), host.metric), (128, 1));
        for (line, status) in [
            ("", 3),
            ("2001:db8::/129 em1", 3),
            ("2001:db8::/-1 em1", 3),
            ("2001:db8::/x em1", 255),
            ("2001:db8::1 em1 em2", 3),
            ("2001:db8::1 mod em1", 255),
            ("2001:db8::1 metric x", 3),
            ("2001:db8::1 gw 10.0.0.1", 6),
            ("10.0.0.0/8 em1", 1),
            ("#net 2001:db8::/32 em1", 1),
        ] {
            assert_eq!(read_line(line).unwrap_err().status, status, "{line}");
        }
    }
}
