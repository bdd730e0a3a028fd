//! What a writer can be told to do.

use std::sync::Arc;

use crate::routes::Placement;
use crate::row::address::{Address, AddressKey};
use crate::row::fdb::{FdbEntry, FdbKey};
use crate::row::link::Link;
use crate::row::neighbour::{Neighbour, NeighbourKey};
use crate::row::nexthop::Nexthop;
use crate::row::route::{OtherRoute, OtherRouteKey, Route, RouteBody};
use crate::row::rule::Rule;

/// A change to a table. Deleting what is not there changes nothing.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each names its row; see the row's own docs")]
pub enum Change {
    PutLink(Link),
    DeleteLink(u32),
    /// An address as a listing tells it: a new one stands behind those of
    /// its link and kind.
    PutAddress(Address),
    /// An address as it is announced: a new one stands where the kernel
    /// puts it.
    AddAddress(Address),
    DeleteAddress(AddressKey),
    /// The addresses of a link in this order, as far as they are there and
    /// the kinds of addresses leave it open; others stay behind them.
    OrderAddresses(u32, Box<[AddressKey]>),
    PutNeighbour(Neighbour),
    DeleteNeighbour(NeighbourKey),
    PutRoute(Route, Placement),
    /// The route that equals this one, body and all.
    DeleteRoute(Route<Arc<RouteBody>>),
    PutOtherRoute(OtherRoute),
    DeleteOtherRoute(OtherRouteKey),
    PutNexthop(Nexthop),
    DeleteNexthop(u32),
    PutRule(Rule),
    /// The second in the place of the first, which is of the same family
    /// and priority.
    ReplaceRule(Rule, Rule),
    DeleteRule(Rule),
    PutFdb(FdbEntry),
    DeleteFdb(FdbKey),
}

impl Change {
    /// Whether it takes a row out and puts none in.
    pub fn is_deletion(&self) -> bool {
        matches!(
            self,
            Self::DeleteLink(_)
                | Self::DeleteAddress(_)
                | Self::DeleteNeighbour(_)
                | Self::DeleteRoute(_)
                | Self::DeleteOtherRoute(_)
                | Self::DeleteNexthop(_)
                | Self::DeleteRule(_)
                | Self::DeleteFdb(_)
        )
    }
}
