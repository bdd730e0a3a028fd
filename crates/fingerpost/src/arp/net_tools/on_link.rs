//! The link that an address is reached by without a gateway, as the kernel
//! finds it for `SIOCSARP` (a lookup with the scope of a link).

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;

use anyhow::Result;
use ipnet::IpNet;
use linux::{Namespace, once};
use netlink::decode::{self, Item};
use netlink::request::{Dump, RouteQuery};
use table::AF_INET;
use table::row::route::{scope, table_id};

use crate::foreign::failed::reason;

/// What the kernel says where no route leads to an address.
const NO_ROUTE: &str = "Network is unreachable";

/// Routes without a gateway, by the length of their prefix, then by their
/// network: the links that they lead to.
struct Routes(Vec<HashMap<u32, u32>>);

/// The tables that packets are looked up in where no rule says otherwise,
/// read when they are needed.
#[derive(Default)]
pub struct OnLink {
    tables: Option<[Routes; 3]>,
}

impl OnLink {
    /// The index of the link, or what the kernel says where there is none.
    /// O(1), but that the first address behind a gateway reads the tables.
    pub fn link(
        &mut self,
        address: Ipv4Addr,
        namespace: &Namespace,
    ) -> Result<Result<u32, String>> {
        match once::route(address.into(), &RouteQuery::default(), namespace) {
            Ok(route) => match route.body.next_hops.as_slice() {
                // The longest of all is the longest of those on the link.
                [hop] if hop.gateway.is_none() => return Ok(Ok(hop.link)),
                _ => {}
            },
            Err(linux::Error::Refused { source, .. }) if is_unreachable(&source) => {
                return Ok(Err(reason(&source)));
            }
            Err(error) => return Err(error.into()),
        }
        let tables = match &mut self.tables {
            Some(tables) => tables,
            None => self.tables.insert([
                read(table_id::LOCAL, namespace)?,
                read(table_id::MAIN, namespace)?,
                read(table_id::DEFAULT, namespace)?,
            ]),
        };
        let link = tables.iter().find_map(|table| table.link(address));
        Ok(link.ok_or_else(|| NO_ROUTE.to_owned()))
    }
}

fn is_unreachable(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, InvalidInput, NetworkUnreachable, PermissionDenied};
    matches!(
        error.kind(),
        HostUnreachable | InvalidInput | NetworkUnreachable | PermissionDenied
    )
}

impl Routes {
    fn link(&self, address: Ipv4Addr) -> Option<u32> {
        let bits = u32::from(address);
        let longest_first = self.0.iter().enumerate().rev();
        let mut found = longest_first.filter_map(|(len, links)| {
            let network = bits & u32::MAX.checked_shl(32 - len as u32).unwrap_or(0);
            links.get(&network).copied()
        });
        found.next()
    }
}

fn read(table: u32, namespace: &Namespace) -> Result<Routes> {
    let mut routes = Routes(vec![HashMap::new(); 33]);
    let request = Dump::Routes {
        family: AF_INET,
        table: Some(table),
        link: None,
        protocol: None,
        kind: None,
    };
    let listed = once::rows(namespace, &request, &mut |message| -> Result<()> {
        let decoded = decode::decode(message, linux::mirror::now_millis())?;
        let decode::Decoded::Announcement(announced) = decoded else {
            return Ok(());
        };
        let Item::Route(route) = announced.item else {
            return Ok(());
        };
        if let ([hop, ..], IpNet::V4(prefix)) = (route.body.next_hops.as_slice(), route.prefix)
            && route.body.scope >= scope::LINK
            && hop.gateway.is_none()
            && let Some(links) = routes.0.get_mut(usize::from(prefix.prefix_len()))
        {
            // The kernel lists the best of a prefix first.
            links.entry(prefix.network().into()).or_insert(hop.link);
        }
        Ok(())
    });
    match listed {
        Err(error) if !is_no_table(&error) => Err(error),
        _ => Ok(routes),
    }
}

/// A table that nothing was ever put into.
fn is_no_table(error: &anyhow::Error) -> bool {
    match error.downcast_ref() {
        Some(linux::Error::Refused { source, .. }) => source.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}
