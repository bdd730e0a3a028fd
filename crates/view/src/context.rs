//! What the showing of a row needs to know beside the row.

use std::cell::Cell;

use table::row::counters::Unannounced;
use table::{Link, Links, Nexthop, RouteBody, Tables};

use crate::question::{Format, Object, Output, Question, Units};
use words::{Name, Names};

/// What the showing of a row needs to know beside the row.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The links, for the names of indexes and the state of next hops.
    pub links: &'a Links,
    /// All tables, where they are at hand: for counters, ages, and the
    /// objects that routes point to.
    pub tables: Option<&'a Tables>,
    /// Milliseconds since the UNIX epoch: what remains of lifetimes.
    pub now_millis: u64,
    /// Names of numbers.
    pub names: &'a Names,
}

/// Timers are no older than this when they are shown: they are left out
/// rather than wrong.
const TIMERS_MILLIS: u64 = 1_000;

/// Which fields `ip` leaves out because the filter has named their value
/// already. They are left out of text and JSON, never of chosen columns.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hidden {
    pub dev: bool,
    pub table: bool,
    pub protocol: bool,
    pub scope: bool,
    pub source: bool,
    pub gateway: bool,
    pub metric: bool,
}

/// How rows are shown: the context and the options of the output.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub links: &'a Links,
    pub tables: Option<&'a Tables>,
    pub now_millis: u64,
    pub names: &'a Names,
    pub details: bool,
    pub statistics: bool,
    pub errors: bool,
    pub units: Units,
    pub colour: bool,
    pub locks: bool,
    pub oneline: bool,
    pub brief: bool,
    pub numeric: bool,
    /// The kernel is asked for links whole: for one by its name, or for all
    /// where no family was named.
    pub whole_links: bool,
    /// Addresses are picked by their label: `ip` leaves out their links.
    pub by_label: bool,
    pub hidden: Hidden,
    /// For addresses: of which family only.
    pub family: Option<u8>,
    /// Links met lately, each in the place its index has: rows of one link
    /// follow each other, and routes go over a few.
    met: [Cell<Option<&'a Link>>; MET],
}

/// Links remembered at most.
const MET: usize = 16;

impl<'a> View<'a> {
    pub(crate) fn new(context: &Context<'a>, output: &Output, hidden: Hidden) -> Self {
        Self {
            links: context.links,
            tables: context.tables,
            now_millis: context.now_millis,
            names: match output.numeric {
                true => &words::NUMBERS,
                false => context.names,
            },
            details: output.details,
            statistics: output.statistics,
            errors: output.errors,
            units: output.units,
            colour: output.colour && output.format == Format::Text,
            locks: output.locks,
            oneline: output.oneline,
            brief: output.brief,
            numeric: output.numeric,
            by_label: false,
            whole_links: false,
            hidden,
            family: None,
            met: Default::default(),
        }
    }

    /// The link of an index. O(1) when it was met lately.
    #[inline]
    pub(crate) fn link(&self, index: u32) -> Option<&'a Link> {
        let place = &self.met[index as usize % MET];
        if let Some(link) = place.get()
            && link.index == index
        {
            return Some(link);
        }
        let link: &'a Link = self.links.get(index)?;
        place.set(Some(link));
        Some(link)
    }

    /// The name of a link, or `if7`.
    #[inline]
    pub(crate) fn device(&self, index: u32) -> Name<'a> {
        self.link(index)
            .map_or(Name::Link(index), |link| Name::Known(&link.name))
    }

    /// What else of a link is not announced; `None`: it was not sampled, or
    /// too long ago to be shown.
    pub(crate) fn unannounced(&self, link: u32) -> Option<&'a Unannounced> {
        let sample = &self.tables?.host.unannounced;
        let age = sample.age_millis(self.now_millis)?;
        (age <= TIMERS_MILLIS).then(|| sample.get(&link))?
    }

    /// How long a resilient group has been unbalanced, where that was read.
    pub(crate) fn unbalanced(&self, id: u32) -> Option<u64> {
        self.tables?.host.unbalanced.get(&id).copied()
    }

    /// The object of a route, which is told with details.
    pub(crate) fn object_of(&self, route: &RouteBody) -> Option<&'a Nexthop> {
        let id = route.nexthop_id.filter(|_| self.details)?;
        self.tables?.nexthops.get(id).map(|row| &**row)
    }

    /// Whether addresses are lines by themselves, without their link's.
    pub(crate) fn lines_of_addresses(&self) -> bool {
        (self.oneline || self.by_label) && !self.brief
    }

    /// What ends a line inside a row: `\` in one-line mode.
    pub(crate) fn line_break(&self) -> u8 {
        if self.oneline { b'\\' } else { b'\n' }
    }

    /// Seconds until a moment, as the kernel would tell.
    pub(crate) fn secs_until(&self, at_millis: u64) -> u64 {
        at_millis.saturating_sub(self.now_millis) / 1000
    }
}

/// Which fields `ip` leaves out for a question.
pub(crate) fn hidden(question: &Question) -> Hidden {
    let filter = &question.filter;
    let route = question.object == Object::Route;
    Hidden {
        dev: filter.dev.is_some()
            && matches!(question.object, Object::Neigh | Object::Route | Object::Fdb),
        // Without a word it is `main`.
        table: route && !matches!(filter.table.as_deref(), Some("all" | "0" | "unspec")),
        protocol: route && filter.proto.is_some(),
        scope: route && filter.scope.is_some(),
        source: route && filter.src.is_some(),
        gateway: route && filter.via.is_some(),
        metric: route && filter.priority.is_some(),
    }
}
