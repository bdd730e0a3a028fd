//! Routes of IPv6 as net-tools prints what `/proc/net/ipv6_route` has of
//! them. Read from there, with a daemon or without: how often a route is
//! referred to is told nowhere else.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr};

use anyhow::{Context, Result};
use linux::Namespace;

use crate::foreign::host;
use crate::foreign::inet::PATIENCE;

/// The file, of the namespace of the thread that reads it.
const ROUTES: &str = "/proc/thread-self/net/ipv6_route";

/// Flags of a route (`linux/ipv6_route.h`, `linux/route.h`) and their
/// letters, in net-tools' order.
const FLAGS: [(u32, char); 12] = [
    (0x0001, 'U'),
    (0x0200, '!'),
    (0x0002, 'G'),
    (0x0004, 'H'),
    (0x0001_0000, 'D'),
    (0x0004_0000, 'A'),
    (CACHE, 'C'),
    (0x0002_0000, 'a'),
    (0x0040_0000, 'e'),
    (0x0020, 'm'),
    (0x0020_0000, 'n'),
    (0x0200_0000, 'f'),
];
/// The kernel's cache of routes, which is no more.
const CACHE: u32 = 0x0100_0000;

/// A route.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    address: Ipv6Addr,
    len: u8,
    gateway: Ipv6Addr,
    metric: u32,
    references: u32,
    used: u32,
    flags: u32,
    dev: String,
}

/// The routes of all tables of a namespace.
pub fn read(namespace: &Namespace) -> Result<Vec<Row>> {
    let text = namespace.run(|| std::fs::read_to_string(ROUTES))?;
    let text = text.context("this system has no IPv6: /proc/net/ipv6_route")?;
    text.lines()
        .map(|line| row(line).with_context(|| format!("/proc/net/ipv6_route: `{line}`")))
        .collect()
}

fn row(line: &str) -> Option<Row> {
    let mut words = line.split_whitespace();
    let mut hex = |digits: usize| {
        let word = words.next().filter(|word| word.len() == digits)?;
        u128::from_str_radix(word, 16).ok()
    };
    let (address, len) = (hex(32)?, hex(2)?);
    let (_source, _source_len) = (hex(32)?, hex(2)?);
    let gateway = hex(32)?;
    let [metric, references, used, flags] = [hex(8)?, hex(8)?, hex(8)?, hex(8)?];
    Some(Row {
        address: address.into(),
        len: len as u8,
        gateway: gateway.into(),
        metric: metric as u32,
        references: references as u32,
        used: used as u32,
        flags: flags as u32,
        dev: words.next().unwrap_or_default().to_owned(),
    })
}

/// Writes them: the table, or the cache.
pub fn write(rows: &[Row], cache: bool, numeric: bool, out: &mut impl Write) -> io::Result<()> {
    let what = if cache { "cache" } else { "table" };
    writeln!(out, "Kernel IPv6 routing {what}")?;
    writeln!(
        out,
        "Destination                    Next Hop                   Flag Met Ref  Use If"
    )?;
    let rows = rows.iter().filter(|row| (row.flags & CACHE != 0) == cache);
    let rows: Vec<&Row> = rows.collect();
    let names = match numeric {
        true => None,
        false => Some(names(&rows)),
    };
    let text = |address: Ipv6Addr| match &names {
        Some(_) if address.is_unspecified() => "[::]".to_owned(),
        Some(names) if names.contains_key(&address) => names[&address].to_string(),
        _ => number(address),
    };
    for row in rows {
        let prefix = format!("{}/{}", text(row.address), row.len);
        let flags = FLAGS.iter().filter(|(flag, _)| row.flags & flag != 0);
        let flags: String = flags.map(|(_, letter)| *letter).collect();
        let gateway = text(row.gateway);
        // Net-tools has a signed number.
        let [metric, references, used] =
            [row.metric, row.references, row.used].map(|number| number as i32);
        writeln!(
            out,
            "{prefix:<30} {gateway:<26} {flags:<4} {metric:<3} {references} {used:>6} {}",
            row.dev
        )?;
    }
    Ok(())
}

/// Net-tools leaves the prefix of mapped addresses away.
fn number(address: Ipv6Addr) -> String {
    match address.to_ipv4_mapped() {
        Some(mapped) => mapped.to_string(),
        None => address.to_string(),
    }
}

fn names(rows: &[&Row]) -> HashMap<Ipv6Addr, Box<str>> {
    let all = rows.iter().flat_map(|row| [row.address, row.gateway]);
    let mut all: Vec<Ipv6Addr> = all.filter(|address| !address.is_unspecified()).collect();
    all.sort_unstable();
    all.dedup();
    host::ask_all(all, PATIENCE, |address| {
        host::name_of(&IpAddr::V6(*address))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &str = "00000000000000000000000000000000";

    #[test]
    fn lines_are_as_net_tools_has_them() {
        let line = |flags: &str, rest: &str| {
            let text = format!(
                "20010db8000500000000000000000001 80 {NONE} 00 {NONE} {rest} {flags}       v0"
            );
            row(&text).unwrap()
        };
        let rows = [
            line("feffffff", "00000400 00000001 00000000"),
            line("00000001", "ffffffff 0000000a 00000005"),
            line("01000001", "00000000 00003039 00bc614e"),
        ];
        let said = |cache| {
            let mut out = Vec::new();
            write(&rows, cache, true, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            text.lines().skip(2).map(str::to_owned).collect::<Vec<_>>()
        };
        let start = "2001:db8:5::1/128              ::                         ";
        assert_eq!(
            said(false),
            [
                format!("{start}U!GHDAaemnf 1024 1      0 v0"),
                format!("{start}U    -1  10      5 v0"),
            ]
        );
        assert_eq!(said(true), [format!("{start}UC   0   12345 12345678 v0")]);
    }

    #[test]
    fn a_line_that_is_none_is_said() {
        for text in ["", "zz", "20010db8000500000000000000000001 80"] {
            assert_eq!(row(text), None, "{text}");
        }
    }
}
