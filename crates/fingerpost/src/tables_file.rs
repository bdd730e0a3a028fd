//! A file of tables for `fingerpost forward --tables`, in ip's words: links,
//! addresses, routes and neighbours, a row a line.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use ipnet::IpNet;
use table::row::attributes::RawAttributes;
use table::row::link::{flag, hardware};
use table::row::route::{kind, protocol, scope, table_id};
use table::row::rule::action;
use table::{
    AF_INET, AF_INET6, Address, Change, Limits, Link, LinkLayerAddress, NextHop, NextHops,
    Placement, Route, RouteBody, Rule, Writer,
};
use words::Rows;

const DEFAULT_MTU: u32 = 1_500;

/// Reads a file of tables; links that it does not name are made up.
pub fn read(path: &Path, extra: &[&str]) -> Result<Writer> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let mut writer = Writer::new(Limits::default());
    let lines = || {
        text.lines()
            .zip(1_u32..)
            .filter_map(|(line, number)| Some((words(line)?, number)))
    };
    let wrong = |number: u32, why: String| anyhow::anyhow!("{}:{number}: {why}", path.display());
    let mut links: Vec<Link> = vec![loopback()];
    for ((what, rest), number) in lines() {
        if what == "link" {
            let index = links.len() as u32 + 1;
            links.push(link(rest, index).map_err(|why| wrong(number, why))?);
        }
    }
    for name in extra {
        if !links.iter().any(|link| *link.name == **name) {
            let index = links.len() as u32 + 1;
            links.push(link(name, index).map_err(|why| anyhow::anyhow!(why))?);
        }
    }
    let named = links.iter().map(|link| (&*link.name, link.index));
    let mut rows = Rows::new(named, linux::mirror::now_millis());
    let mut changes = rules();
    for ((what, rest), number) in lines() {
        let read = match what {
            "link" => Ok(Vec::new()),
            "route" => rows.route(rest).map(|row| vec![put(row)]),
            "addr" | "address" => rows.address(rest).map(own),
            "neigh" | "neighbour" => rows
                .neighbour(rest)
                .map(|row| vec![Change::PutNeighbour(row)]),
            other => Err(format!("`{other}`: link, addr, route or neigh is expected")),
        };
        changes.extend(read.map_err(|why| wrong(number, why))?);
    }
    let links = links.into_iter().map(Change::PutLink);
    writer
        .commit(links.chain(changes))
        .with_context(|| format!("{} has more rows than a table", path.display()))?;
    Ok(writer)
}

/// The first word of a line and the rest, without ip's verb; `None` for an
/// empty line or a comment.
fn words(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (what, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim_start();
    let verbs = ["add ", "replace ", "append "];
    let behind = verbs.iter().find_map(|verb| rest.strip_prefix(verb));
    Some((what, behind.unwrap_or(rest)))
}

/// `NAME [address MAC] [mtu N] [up|down]`.
fn link(line: &str, index: u32) -> Result<Link, String> {
    let mut words = line.split_whitespace();
    let name = words.next().ok_or("a link's name is expected")?;
    let mut link = Link {
        index,
        name: name.into(),
        hardware: hardware::ETHER,
        flags: flag::UP | flag::LOWER_UP | flag::BROADCAST | flag::MULTICAST,
        mtu: DEFAULT_MTU,
        ..Link::default()
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("`{word}`: a value is expected"));
        match word {
            "address" => link.address = ethernet(value()?)?,
            "mtu" => {
                let mtu = value()?;
                let number = mtu
                    .parse()
                    .map_err(|_| format!("`mtu {mtu}`: a number is expected"));
                link.mtu = number?;
            }
            "up" => {}
            "down" => link.flags &= !(flag::UP | flag::LOWER_UP),
            other => return Err(format!("`{other}`: address, mtu, up or down is expected")),
        }
    }
    Ok(link)
}

fn ethernet(text: &str) -> Result<LinkLayerAddress, String> {
    let octets = text.split(':').map(|part| u8::from_str_radix(part, 16));
    let octets: Option<Vec<u8>> = octets.map(Result::ok).collect();
    octets
        .filter(|octets| octets.len() == 6)
        .and_then(|octets| LinkLayerAddress::new(&octets))
        .ok_or_else(|| format!("`address {text}`: six octets like 02:00:00:00:00:01"))
}

fn loopback() -> Link {
    Link {
        index: 1,
        name: "lo".into(),
        hardware: hardware::LOOPBACK,
        flags: flag::UP | flag::LOOPBACK,
        mtu: 65_536,
        ..Link::default()
    }
}

/// The rules that every namespace begins with.
fn rules() -> Vec<Change> {
    let rule = |family, priority, table| {
        Change::PutRule(Rule {
            family,
            priority,
            table,
            action: action::TO_TABLE,
            ..Rule::default()
        })
    };
    vec![
        rule(AF_INET, 0, table_id::LOCAL),
        rule(AF_INET, 32_766, table_id::MAIN),
        rule(AF_INET, 32_767, table_id::DEFAULT),
        rule(AF_INET6, 0, table_id::LOCAL),
        rule(AF_INET6, 32_766, table_id::MAIN),
    ]
}

fn put(route: Route) -> Change {
    Change::PutRoute(route, Placement::Last)
}

/// An own address, with the routes that the kernel makes for it.
fn own(address: Address) -> Vec<Change> {
    let route = |table, of, prefix: IpNet, scope| {
        put(Route {
            table,
            prefix,
            tos: 0,
            metric: 0,
            body: RouteBody {
                kind: of,
                protocol: protocol::KERNEL,
                scope,
                flags: 0,
                preferred_source: Some(address.local),
                source: None,
                nexthop_id: None,
                next_hops: NextHops::One(NextHop {
                    link: address.link,
                    weight: 1,
                    ..NextHop::default()
                }),
                metrics: None,
                preference: None,
                error: 0,
                expires_at_millis: None,
                rest: RawAttributes::default(),
                path: Default::default(),
            },
        })
    };
    let mut changes = vec![route(
        table_id::LOCAL,
        kind::LOCAL,
        address.local.into(),
        scope::HOST,
    )];
    let far = address.peer.unwrap_or(address.local);
    if let Ok(net) = IpNet::new(far, address.prefix_len)
        && !(address.peer.is_none() && net.prefix_len() == net.max_prefix_len())
    {
        let (net, main) = (net.trunc(), table_id::MAIN);
        changes.push(route(main, kind::UNICAST, net, scope::LINK));
        if let IpNet::V4(net) = net
            && net.prefix_len() < 31
        {
            let all = IpNet::from(std::net::IpAddr::from(net.broadcast()));
            changes.push(route(table_id::LOCAL, kind::BROADCAST, all, scope::LINK));
        }
    }
    changes.push(Change::PutAddress(address));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(text: &str) -> Result<Writer> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        read(file.path(), &["tun0"])
    }

    #[test]
    fn lines_are_rows() {
        let writer = tables(
            "# a router\n\
             link lan address 02:00:00:00:00:01 mtu 1400\n\
             addr add 10.0.1.1/24 dev lan\n\
             \n\
             route add 10.9.0.0/16 via 10.0.1.9 dev lan\n\
             route unreachable 10.8.0.0/16\n\
             neigh 10.0.1.9 dev lan lladdr 02:00:00:00:00:09 REACHABLE\n",
        );
        let tables = writer.unwrap().tables().clone();
        let lan = tables.links.by_name("lan").unwrap();
        assert_eq!((lan.mtu, lan.address.octets()[5]), (1_400, 1));
        assert!(tables.links.by_name("tun0").is_some());
        // Local, connected, broadcast, and the two that were said.
        assert_eq!(tables.routes.len(), 5);
        assert_eq!((tables.addresses.len(), tables.neighbours.len()), (1, 1));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, said) in [
            ("route 10.0.0.0/8 dev nowhere", "nowhere"),
            ("\nroad 10.0.0.0/8", ":2: `road`"),
            ("link lan address 02", "six octets"),
            ("link lan mtu", "a value"),
            ("neigh 10.0.0.300 dev lo", "10.0.0.300"),
        ] {
            let error = tables(text).err().map(|error| error.to_string());
            assert!(
                error.as_ref().is_some_and(|e| e.contains(said)),
                "{error:?}"
            );
        }
    }
}
