//! Routes as net-tools prints what `/proc/net/route` has of them: one line a
//! route, of several next hops the first.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};
use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use ipnet::Ipv4Net;
use serde_json::Value;

use crate::foreign::host;
use crate::foreign::inet::{self, PATIENCE};

/// Which columns stand behind the flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// Metric, references, use, link: `route`.
    Metric,
    /// MSS, window, round-trip time, link: `netstat -r`, `route -e`.
    Mss,
    /// All of them: `-ee`.
    All,
}

impl Columns {
    fn head(self) -> &'static str {
        match self {
            Self::Metric => "Flags Metric Ref    Use Iface",
            Self::Mss => "Flags   MSS Window  irtt Iface",
            Self::All => "Flags Metric Ref    Use Iface    MSS   Window irtt",
        }
    }

    /// What is shown of the cache of routes that kernels had once.
    pub fn head_of_cache(self) -> String {
        format!(
            "Kernel IP routing cache\nSource          Destination     Gateway         {}",
            match self {
                Self::All =>
                    "Flags Metric Ref    Use Iface    MSS   Window irtt  TOS HHRef HHUptod     SpecDst",
                other => other.head(),
            }
        )
    }
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    prefix: Ipv4Net,
    tos: u8,
    metric: u32,
    /// Packets are refused, with a word to their sender.
    rejects: bool,
    /// `None`: the link leads there; the unspecified address: one of IPv6.
    gateway: Option<Ipv4Addr>,
    /// `None`: packets go nowhere.
    dev: Option<String>,
    mss: u32,
    window: u32,
    rtt: u32,
}

impl Row {
    /// Of a row of `fingerpost route --ndjson`; `None`: one that
    /// `/proc/net/route` leaves out.
    fn of(row: &Value) -> Option<Self> {
        let kind = row["type"].as_str().unwrap_or("unicast");
        if matches!(kind, "broadcast" | "multicast") {
            return None;
        }
        let prefix = match row["dst"].as_str()? {
            "default" => Ipv4Net::default(),
            text => text
                .parse()
                .or_else(|_| text.parse::<Ipv4Addr>().map(Ipv4Net::from))
                .ok()?,
        };
        let hop = row["nexthops"].get(0).unwrap_or(row);
        let gateway = hop["gateway"].as_str().and_then(|text| text.parse().ok());
        let of_v6 = (!hop["via"].is_null()).then_some(Ipv4Addr::UNSPECIFIED);
        let number = |value: &Value| value.as_u64().unwrap_or_default() as u32;
        let metrics = &row["metrics"][0];
        let advmss = number(&metrics["advmss"]);
        let tos = row["tos"].as_str().unwrap_or("0");
        Some(Self {
            prefix,
            tos: u8::from_str_radix(tos.trim_start_matches("0x"), 16).unwrap_or_default(),
            metric: number(&row["metric"]),
            rejects: matches!(kind, "unreachable" | "prohibit"),
            gateway: gateway.or(of_v6),
            dev: hop["dev"].as_str().map(str::to_owned),
            mss: if advmss > 0 { advmss + 40 } else { 0 },
            window: number(&metrics["window"]),
            rtt: number(&metrics["rtt"]),
        })
    }

    fn flags(&self) -> String {
        let mut flags = String::from(if self.rejects { "!" } else { "U" });
        if self.gateway.is_some() {
            flags.push('G');
        }
        if self.prefix.prefix_len() == 32 {
            flags.push('H');
        }
        flags
    }
}

/// Reads lines of JSON, and puts them in the order of the kernel's trie: of
/// one address the longest prefix first. O(n log n).
pub fn read(lines: &[u8]) -> Result<Vec<Row>> {
    let lines = lines.split(|byte| *byte == b'\n');
    let mut rows = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let row = serde_json::from_slice(line).context("a route that cannot be read")?;
        rows.extend(Row::of(&row));
    }
    rows.sort_by_key(|row| {
        let prefix = row.prefix;
        let address = u32::from(prefix.network());
        (
            address,
            Reverse(prefix.prefix_len()),
            Reverse(row.tos),
            row.metric,
        )
    });
    Ok(rows)
}

/// The longest name of a host.
const MAX_NAME: usize = 255;

/// How routes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Which columns.
    pub columns: Columns,
    /// Addresses as numbers.
    pub numeric: bool,
    /// Names are not cut.
    pub wide: bool,
}

/// Writes them.
pub fn write(rows: &[Row], layout: Layout, out: &mut impl Write) -> io::Result<()> {
    let names = match layout.numeric {
        true => None,
        false => Some(Names::of(rows)),
    };
    writeln!(out, "Kernel IP routing table")?;
    writeln!(
        out,
        "Destination     Gateway         Genmask         {}",
        layout.columns.head()
    )?;
    rows.iter()
        .try_for_each(|row| write_row(row, layout, names.as_ref(), out))
}

fn write_row(
    row: &Row,
    layout: Layout,
    names: Option<&Names>,
    out: &mut impl Write,
) -> io::Result<()> {
    let destination = match names {
        Some(names) => names.prefix(row.prefix),
        None => row.prefix.network().to_string(),
    };
    let gateway = row.gateway.unwrap_or(Ipv4Addr::UNSPECIFIED);
    let gateway = match names {
        _ if row.rejects => "-".to_owned(),
        Some(names) => names.host(gateway),
        None => gateway.to_string(),
    };
    let (mask, flags) = (row.prefix.netmask().to_string(), row.flags());
    // Of what rejects packets nothing but the metric is told.
    let told = |number: u32| match row.rejects {
        true => "-".to_owned(),
        false => number.to_string(),
    };
    let dev = row.dev.as_deref().unwrap_or("*");
    let dev = if row.rejects { "-" } else { dev };
    let (references, metric) = (told(0), row.metric);
    let [mss, window, rtt] = [row.mss, row.window, row.rtt].map(told);
    let cut = if layout.wide { MAX_NAME } else { 15 };
    write!(
        out,
        "{destination:<15.cut$} {gateway:<15.cut$} {mask:<15} {flags:<5} "
    )?;
    match layout.columns {
        Columns::Metric => writeln!(out, "{metric:<6} {references:<2} {:>7} {dev}", 0),
        Columns::Mss => writeln!(out, "{mss:>5} {window:<5} {rtt:>6} {dev}"),
        Columns::All => writeln!(
            out,
            "{metric:<6} {references:<2} {:>7} {dev:<8} {mss:<5} {window:<6} {rtt}",
            0
        ),
    }
}

/// Names of hosts and of networks.
struct Names {
    hosts: HashMap<Ipv4Addr, Box<str>>,
    networks: HashMap<Ipv4Addr, String>,
}

impl Names {
    /// Those that some rows need.
    fn of(rows: &[Row]) -> Self {
        let gateways = rows.iter().filter_map(|row| row.gateway);
        let hosts = rows.iter().map(|row| row.prefix);
        let hosts = hosts.filter(|prefix| prefix.prefix_len() == 32);
        let mut all: Vec<Ipv4Addr> = gateways.chain(hosts.map(|host| host.addr())).collect();
        all.sort_unstable();
        all.dedup();
        all.retain(|address| !address.is_unspecified());
        Self {
            hosts: host::ask_all(all, PATIENCE, host::name_of),
            networks: inet::networks(),
        }
    }

    fn host(&self, address: Ipv4Addr) -> String {
        let name = self.hosts.get(&address);
        name.map_or_else(|| address.to_string(), |name| name.to_string())
    }

    fn prefix(&self, prefix: Ipv4Net) -> String {
        let network = prefix.network();
        match prefix.prefix_len() {
            0 => "default".to_owned(),
            32 => self.host(network),
            _ => {
                let name = self.networks.get(&network);
                name.cloned().unwrap_or_else(|| network.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_the_order_of_the_kernel() {
        let lines = br#"{"dst":"10.1.0.0/16","gateway":"10.9.0.7","dev":"br0","metric":20}
{"dst":"10.1.0.0/24","gateway":"10.9.0.8","dev":"br0","metric":6}
{"dst":"10.1.0.0/24","gateway":"10.9.0.8","dev":"br0","metric":5,"metrics":[{"window":5000,"rtt":80,"advmss":1000}]}
{"type":"broadcast","dst":"10.14.0.0/24","dev":"br0"}
{"type":"prohibit","dst":"10.5.0.1"}
{"dst":"default","nexthops":[{"via":{"family":"inet6","host":"fe80::1"},"dev":"v1"}]}
"#;
        let rows = read(lines).unwrap();
        let mut said = Vec::new();
        let layout = Layout {
            columns: Columns::Metric,
            numeric: true,
            wide: false,
        };
        write(&rows, layout, &mut said).unwrap();
        let said = String::from_utf8(said).unwrap();
        let lines: Vec<&str> = said.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "0.0.0.0         0.0.0.0         0.0.0.0         UG    0      0        0 v1",
                "10.1.0.0        10.9.0.8        255.255.255.0   UG    5      0        0 br0",
                "10.1.0.0        10.9.0.8        255.255.255.0   UG    6      0        0 br0",
                "10.1.0.0        10.9.0.7        255.255.0.0     UG    20     0        0 br0",
                "10.5.0.1        -               255.255.255.255 !H    0      -        0 -",
            ]
        );
        assert!(read(b"no JSON\n").is_err());
    }
}
