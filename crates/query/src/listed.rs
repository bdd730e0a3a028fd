//! Tables that have no index: what changed, who feeds rows, and the BGP
//! peers that routers tell of. Their rows are made when a statement asks.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use rusqlite::types::ValueRef;
use table::{Event, Tables};
use view::Context;

use crate::moment::Moment;
use crate::schema::Rows;

/// A row.
#[derive(Debug)]
pub(crate) enum Listed {
    /// Value by value.
    Values(Vec<Value>),
    /// One of the changes of a generation: it is large once it is text.
    Change {
        at_millis: u64,
        /// `None`: of a time whose generations are not known.
        generation: Option<u64>,
        events: Arc<[Event]>,
        at: u32,
        /// For names of links.
        tables: Arc<Tables>,
    },
}

/// A value of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    None,
    Number(i64),
    Text(String),
}

impl Value {
    pub(crate) fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::None => ValueRef::Null,
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }
    }
}

impl Listed {
    /// What tells it from the others of its table, whichever conditions led
    /// to it; `None`: nothing does.
    pub(crate) fn number(&self) -> Option<i64> {
        match self {
            Self::Values(values) => {
                let mut hasher = DefaultHasher::new();
                values.hash(&mut hasher);
                Some(hasher.finish().cast_signed())
            }
            Self::Change { generation, at, .. } => {
                let generation = i64::try_from((*generation)?).ok()?;
                generation.checked_mul(1 << 32)?.checked_add((*at).into())
            }
        }
    }

    /// What it has in a column, by the column's place.
    pub(crate) fn value(&self, column: usize, moment: &Moment) -> Value {
        match self {
            Self::Values(values) => values.get(column).cloned().unwrap_or(Value::None),
            Self::Change {
                at_millis,
                generation,
                events,
                at,
                tables,
            } => {
                let event = events.get(*at as usize);
                let names = event.and_then(view::event_names);
                match column {
                    0 => (*at_millis).into(),
                    1 => (*generation).into(),
                    2 => names.map(|(happened, _)| happened).into(),
                    3 => names.map(|(_, object)| object).into(),
                    4 => change(event, *at_millis, moment.context(tables)).into(),
                    _ => Value::None,
                }
            }
        }
    }
}

/// A change as the line of JSON that `--watch` shows of it.
fn change(event: Option<&Event>, at_millis: u64, context: Context<'_>) -> Option<String> {
    let line = view::event(event?, at_millis, context)?;
    let line = String::from_utf8_lossy(&line);
    Some(line.trim_end().to_owned())
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Value {
    fn from(is: bool) -> Self {
        Self::Number(is.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// The rows of such a table at a moment; of what changed, that between two
/// times.
pub(crate) fn rows(of: Rows, moment: &Moment, times: (u64, u64)) -> Vec<Listed> {
    match of {
        Rows::Events => events(moment, times),
        Rows::Feeds => feeds(moment),
        Rows::Peers => peers(moment),
        Rows::Of(_) | Rows::Hops | Rows::Nat(_) => Vec::new(),
    }
}

/// The changes that are kept between two times, the oldest first.
fn events(moment: &Moment, (from, until): (u64, u64)) -> Vec<Listed> {
    let mut rows = Vec::new();
    let mut kept = moment.reader.kept_events();
    kept.retain(|batch| (from..=until).contains(&batch.at_millis));
    for batch in kept {
        let of = (batch.at_millis, Some(batch.generation.0));
        changes(of, &batch.events, &moment.tables, &mut rows);
    }
    rows
}

/// The changes of a generation that are told, with their time.
pub(crate) fn changes(
    (at_millis, generation): (u64, Option<u64>),
    events: &Arc<[Event]>,
    tables: &Arc<Tables>,
    rows: &mut Vec<Listed>,
) {
    for (at, event) in (0_u32..).zip(events.iter()) {
        if view::event_names(event).is_some() {
            rows.push(Listed::Change {
                at_millis,
                generation,
                events: Arc::clone(events),
                at,
                tables: Arc::clone(tables),
            });
        }
    }
}

/// Who feeds rows beside the kernel.
fn feeds(moment: &Moment) -> Vec<Listed> {
    let row = |owner: &table::Owner| {
        let status = owner.status();
        let phase = status.in_words();
        let complete = status.is_whole();
        let feed = status.feed.unwrap_or_default();
        Listed::Values(vec![
            owner.name().into(),
            phase.into(),
            complete.into(),
            (owner.tables().routes.len() as u64).into(),
            (owner.tables().nexthops.len() as u64).into(),
            feed.unconfirmed.into(),
            feed.peer.into(),
            Some(feed.listening).filter(|at| !at.is_empty()).into(),
            feed.since.map(|since| since.millis).into(),
            feed.messages.into(),
        ])
    };
    moment.tables.owners().map(row).collect()
}

/// The BGP peers that routers tell of, each with the source of its rows.
fn peers(moment: &Moment) -> Vec<Listed> {
    let row = |owner: &table::Owner| {
        let peer = owner.status().feed?.monitored?;
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Some(Listed::Values(vec![
            owner.name().into(),
            peer.router.clone().into(),
            some(&peer.address).into(),
            u64::from(peer.asn).into(),
            some(&peer.bgp_id).into(),
            peer.rib.into(),
            some(&peer.distinguisher).into(),
            peer.is_up.into(),
            peer.ups.into(),
            peer.downs.into(),
            (owner.tables().routes.len() as u64).into(),
        ]))
    };
    moment.tables.owners().filter_map(row).collect()
}
