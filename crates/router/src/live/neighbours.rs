//! Next hops that packets go by at XDP, which the kernel does not see: those
//! that have gone stale are used by name (`NTF_USE`), as a packet would use
//! them. So the kernel asks whether they are there still, and notices when
//! they have moved or gone. Called by `watching`.

use std::collections::HashSet;

use anyhow::{Context, Result};
use dataplane::xdp::UsedHop;
use linux::{Namespace, bulk, on_the_way};
use netlink::decode::Operation;
use netlink::encode::{self, Request};
use table::row::neighbour::{flag, state};
use table::{LinkLayerAddress, Neighbour};

/// Uses those of them that are stale; their number.
pub fn refresh(namespace: &Namespace, hops: &[UsedHop]) -> Result<usize> {
    let links: HashSet<u32> = hops.iter().map(|hop| hop.link).collect();
    let used: HashSet<UsedHop> = hops.iter().copied().collect();
    let mut stale = Vec::new();
    for link in links {
        // A link that has gone meanwhile has none.
        let Ok(neighbours) = on_the_way::neighbours(namespace, link) else {
            continue;
        };
        stale.extend(neighbours.into_iter().filter(|one| is_due(one, &used)));
    }
    if stale.is_empty() {
        return Ok(0);
    }
    let requests = stale.iter().map(|neighbour| {
        let asked = used_row(neighbour);
        move |sequence, out: &mut Vec<u8>| {
            // Not made where it has gone meanwhile.
            let request = Request::plain(Operation::New, sequence);
            // Two addresses and some numbers are never too long.
            let _ = encode::neighbour(out, &request, &asked);
        }
    });
    let mut refreshed = 0;
    bulk::apply(namespace, requests, &mut |_, done| {
        refreshed += usize::from(done.is_ok());
    })
    .context("asking for neighbours in use")?;
    Ok(refreshed)
}

fn is_due(neighbour: &Neighbour, used: &HashSet<UsedHop>) -> bool {
    let hop = UsedHop {
        link: neighbour.link,
        address: neighbour.address,
    };
    neighbour.state == state::STALE && used.contains(&hop)
}

/// The request: which one, and that it is used. Nothing else is changed.
fn used_row(neighbour: &Neighbour) -> Neighbour {
    Neighbour {
        lladdr: LinkLayerAddress::default(),
        state: state::NONE,
        flags: flag::USE,
        protocol: 0,
        ..neighbour.clone()
    }
}
