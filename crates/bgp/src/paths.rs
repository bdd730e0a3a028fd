//! What a message says of paths, one by one, and how a feeder of rows takes
//! that. For [`crate::Rib`], and for who is told by other ways than files.

use ipnet::IpNet;
use table::row::route::table_id;
use table::{Change, Feeder, Placement, Route, RouteBody, SharedRoute, TableFull};

use crate::Bad;
use crate::as_path::AsSize;
use crate::body::body;
use crate::update::Update;

/// The table that paths stand in.
pub const TABLE: u32 = table_id::MAIN;

/// What a message says of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It is no longer there: the prefix, the path identifier.
    Gone(IpNet, Option<u32>),
    /// It is: the prefix, the route's body with the path identifier.
    There(IpNet, RouteBody),
    /// It is, with attributes that cannot be read, which is to be taken as
    /// withdrawn (RFC 7606 §2).
    Unreadable(IpNet, Option<u32>, Bad),
}

/// Tells all that a message says, withdrawals first. Where a prefix cannot
/// be read those behind it in its list cannot either; the other lists are
/// told.
pub fn each(update: &Update<'_>, size: AsSize, mut tell: impl FnMut(Result<Said, Bad>)) {
    for one in update.withdrawn.into_iter().flatten() {
        tell(one.map(|(path_id, prefix)| Said::Gone(prefix, path_id)));
    }
    for (prefixes, next_hop) in update.announced {
        // What many prefixes share is read once.
        let mut read: Option<(Option<u32>, Result<RouteBody, Bad>)> = None;
        for one in prefixes {
            let (path_id, prefix) = match one {
                Ok(one) => one,
                Err(bad) => {
                    tell(Err(bad));
                    continue;
                }
            };
            let (_, path) = match read.take().filter(|(of, _)| *of == path_id) {
                Some(same) => read.insert(same),
                None => {
                    let path = update.attributes.packed(size, path_id);
                    read.insert((path_id, path.map(|path| body(next_hop, path))))
                }
            };
            tell(Ok(match path {
                Ok(path) => Said::There(prefix, path.clone()),
                Err(bad) => Said::Unreadable(prefix, path_id, *bad),
            }));
        }
    }
}

/// Gives a feeder a path, in the place of the one to this prefix with this
/// path identifier. O(log n).
pub fn put(feeder: &mut Feeder, prefix: IpNet, body: RouteBody) -> Result<(), TableFull> {
    let path_id = body.path.path_id();
    let route = Route {
        table: TABLE,
        prefix,
        tos: 0,
        metric: 0,
        body,
    };
    let placement = match path_id {
        None => Placement::InsteadOfFirst,
        Some(_) => {
            let old = find(feeder, prefix, path_id);
            if let Some(old) = old.filter(|old| *old.body != route.body) {
                feeder.apply(Change::DeleteRoute(old))?;
            }
            Placement::Last
        }
    };
    feeder.apply(Change::PutRoute(route, placement))
}

/// Takes a path of a feeder out; whether there was one. O(log n).
pub fn take_out(feeder: &mut Feeder, prefix: IpNet, path_id: Option<u32>) -> bool {
    let Some(old) = find(feeder, prefix, path_id) else {
        return false;
    };
    // A deletion needs no room.
    let _ = feeder.apply(Change::DeleteRoute(old));
    true
}

fn find(feeder: &Feeder, prefix: IpNet, path_id: Option<u32>) -> Option<SharedRoute> {
    let mut paths = feeder.tables().routes.exact(TABLE, prefix);
    let path = paths.find(|path| path.body.path.path_id() == path_id)?;
    Some(path.to_shared())
}
