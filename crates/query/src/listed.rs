//! Tables that have no index: what changed, who feeds rows, and the BGP
//! peers that routers tell of. Their rows are made when a statement asks.

use std::sync::Arc;

use rusqlite::types::ValueRef;
use table::Event;

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
        generation: u64,
        events: Arc<[Event]>,
        at: u32,
    },
}

/// A value of it.
#[derive(Debug, Clone)]
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
    /// What it has in a column, by the column's place.
    pub(crate) fn value(&self, column: usize, moment: &Moment) -> Value {
        match self {
            Self::Values(values) => values.get(column).cloned().unwrap_or(Value::None),
            Self::Change {
                at_millis,
                generation,
                events,
                at,
            } => {
                let event = events.get(*at as usize);
                let names = event.and_then(view::event_names);
                match column {
                    0 => (*at_millis).into(),
                    1 => (*generation).into(),
                    2 => names.map(|(happened, _)| happened).into(),
                    3 => names.map(|(_, object)| object).into(),
                    4 => change(event, *at_millis, moment).into(),
                    _ => Value::None,
                }
            }
        }
    }
}

/// A change as the line of JSON that `--watch` shows of it.
fn change(event: Option<&Event>, at_millis: u64, moment: &Moment) -> Option<String> {
    let line = view::event(event?, at_millis, moment.context(&moment.tables))?;
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

/// The rows of such a table at a moment.
pub(crate) fn rows(of: Rows, moment: &Moment) -> Vec<Listed> {
    match of {
        Rows::Events => events(moment),
        Rows::Feeds => feeds(moment),
        Rows::Peers => peers(moment),
        Rows::Of(_) | Rows::Hops => Vec::new(),
    }
}

/// All changes that are kept, the oldest first.
fn events(moment: &Moment) -> Vec<Listed> {
    let mut rows = Vec::new();
    for batch in moment.reader.kept_events() {
        for (at, event) in (0_u32..).zip(batch.events.iter()) {
            if view::event_names(event).is_some() {
                rows.push(Listed::Change {
                    at_millis: batch.at_millis,
                    generation: batch.generation.0,
                    events: Arc::clone(&batch.events),
                    at,
                });
            }
        }
    }
    rows
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
