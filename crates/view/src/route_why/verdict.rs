//! What became of a candidate. For [`super`].

use table::{NoRoute, RouteRef, Tables};

use super::Followed;
use crate::route::is_reject;
use crate::route_diff::go_the_same_way;

/// What became of a candidate, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The kernel sends packets by it.
    Taken,
    /// The kernel refuses packets by it.
    Refuses(NoRoute),
    /// Another table decides before it is asked.
    OtherTable(u32),
    /// A longer prefix covers the address that was followed.
    LongerPrefix,
    /// None of its next hops can be used.
    Unusable,
    /// One of the same prefix comes before it.
    NotBest,
    /// It sends packets where the kernel sends them.
    Agrees,
    /// It would send packets elsewhere.
    Differs,
}

impl Verdict {
    /// In one word, for programs.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Taken => "taken",
            Self::Refuses(_) => "refuses",
            Self::OtherTable(_) => "other_table",
            Self::LongerPrefix => "longer_prefix",
            Self::Unusable => "unusable",
            Self::NotBest => "not_best",
            Self::Agrees => "agrees",
            Self::Differs => "differs",
        }
    }
}

/// What became of the kernel's own routes of a prefix.
pub(super) fn of_kernel(routes: &[RouteRef<'_>], packet: &Followed<'_>) -> Vec<Verdict> {
    let taken = match &packet.decision {
        Ok(decision) => decision.route,
        Err(why) => return refused(routes, *why),
    };
    let at = taken.and_then(|taken| routes.iter().position(|row| *row == taken));
    let elsewhere = match (taken, routes.first()) {
        (Some(taken), Some(row)) if taken.table != row.table => Verdict::OtherTable(taken.table),
        (Some(taken), Some(row)) if taken.prefix.prefix_len() > row.prefix.prefix_len() => {
            Verdict::LongerPrefix
        }
        _ => Verdict::Unusable,
    };
    let of = |place: usize| match at {
        None => elsewhere.clone(),
        Some(at) if place < at => Verdict::Unusable,
        Some(at) if place == at => Verdict::Taken,
        Some(_) => Verdict::NotBest,
    };
    (0..routes.len()).map(of).collect()
}

/// No packet gets through: the first that refuses does it, if one does.
fn refused(routes: &[RouteRef<'_>], why: NoRoute) -> Vec<Verdict> {
    let at = routes.iter().position(|row| is_reject(row.body));
    let of = |place: usize| match at {
        Some(at) if place == at => Verdict::Refuses(why),
        Some(at) if place > at => Verdict::NotBest,
        _ => Verdict::Unusable,
    };
    (0..routes.len()).map(of).collect()
}

/// What another source's routes are beside what the kernel does.
pub(super) fn of_other(
    routes: &[RouteRef<'_>],
    tables: &Tables,
    packet: &Followed<'_>,
) -> Vec<Verdict> {
    let agrees = |row: &RouteRef<'_>| match &packet.decision {
        Ok(decision) => decision
            .route
            .is_some_and(|taken| go_the_same_way((&taken, packet.tables), (row, tables))),
        Err(_) => is_reject(row.body),
    };
    let of = |(place, row)| match place {
        0 if agrees(row) => Verdict::Agrees,
        0 => Verdict::Differs,
        _ => Verdict::NotBest,
    };
    routes.iter().enumerate().map(of).collect()
}
