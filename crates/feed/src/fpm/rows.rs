//! What a netlink message of zebra's does to the rows of a feed.

use std::collections::BTreeSet;

use netlink::Malformed;
use netlink::decode::{Decoded, Item, Operation, decode};
use netlink::message::Message;
use table::row::route::{flag, hop_flag, table_id};
use table::{Feeder, Nexthop, Route, TableFull};

use super::acknowledging::Place;
use super::meaning::Meanings;
use super::placing;

/// `AF_MPLS`, `linux/socket.h`.
const AF_MPLS: u8 = 28;

/// The rows of a feed.
#[derive(Debug)]
pub(super) struct Rows {
    feeder: Feeder,
    meanings: Meanings,
}

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is in the rows.
    Row,
    /// So is the route that it told, of a prefix of a table.
    Route(Place),
    /// So is a next hop, and what it means to the routes with it.
    Nexthop,
    /// It has no row here: what it is.
    Skipped(&'static str),
    /// Its row had no place; the feeder counts that.
    Full(TableFull),
}

impl Rows {
    pub(super) fn new(feeder: Feeder) -> Self {
        Self {
            feeder,
            meanings: Meanings::default(),
        }
    }

    pub(super) fn feeder(&mut self) -> &mut Feeder {
        &mut self.feeder
    }

    /// The peer is about to tell all its rows. One step.
    pub(super) fn begin(&mut self) {
        self.feeder.begin();
        self.meanings.begin();
    }

    /// It has: what it did not tell goes; how many rows that were.
    ///
    /// zebra walks the tables of its VRFs and no others (`rib_tables_iter`
    /// of FRR 8.4 to 10.3): a route of `ip route … table 100` is told when
    /// it changes and never again. Those stay, unconfirmed.
    pub(super) fn end(&mut self) -> usize {
        self.meanings.end();
        let links = self.feeder.named_links();
        let vrfs: BTreeSet<u32> = links.iter().filter_map(|link| link.vrf_table).collect();
        self.feeder
            .end_but(|table| table != table_id::MAIN && !vrfs.contains(&table))
    }

    /// Takes a message in. O(log n); for a next hop as much for each
    /// distinct body of routes that has it.
    pub(super) fn take(
        &mut self,
        message: &Message<'_>,
        now_millis: u64,
    ) -> Result<Taken, Malformed> {
        let announcement = match decode(message, now_millis)? {
            Decoded::Announcement(announcement) => announcement,
            Decoded::Noop => return Ok(Taken::Skipped("noop")),
            _ => return Ok(Taken::Skipped("other messages")),
        };
        let is_new = announcement.operation == Operation::New;
        Ok(match announcement.item {
            Item::Route(row) => {
                let place = (row.table, row.prefix);
                match self.route(is_new, row) {
                    Ok(()) if is_new => Taken::Route(place),
                    Ok(()) => Taken::Row,
                    Err(full) => Taken::Full(full),
                }
            }
            Item::Nexthop(row) => {
                let taken = self.nexthop(is_new, row);
                taken.map_or_else(Taken::Full, |()| Taken::Nexthop)
            }
            Item::OtherRoute(row) if row.key.family == AF_MPLS => Taken::Skipped("mpls"),
            Item::OtherRoute(_) => Taken::Skipped("other families"),
            Item::Fdb(_) => Taken::Skipped("fdb"),
            Item::Neighbour(_) => Taken::Skipped("neighbours"),
            Item::Link(_) | Item::Address(_) => Taken::Skipped("links"),
            Item::Rule(_) => Taken::Skipped("rules"),
        })
    }

    fn route(&mut self, is_new: bool, mut row: Route) -> Result<(), TableFull> {
        // Ours to say, not the peer's: nobody has offloaded it.
        row.body.flags &= !(flag::OFFLOAD | flag::OFFLOAD_FAILED | flag::TRAP | flag::CLONED);
        for hop in row.body.next_hops.as_mut_slice() {
            // The link tells it.
            hop.flags &= !hop_flag::LINKDOWN;
        }
        if !is_new {
            return placing::delete(&mut self.feeder, &row);
        }
        self.meanings.fill(&mut self.feeder, &mut row.body);
        placing::put(&mut self.feeder, row)
    }

    fn nexthop(&mut self, is_new: bool, row: Nexthop) -> Result<(), TableFull> {
        match is_new {
            true => self.meanings.put(&mut self.feeder, row),
            false => self.meanings.delete(&mut self.feeder, row.id),
        }
    }
}
