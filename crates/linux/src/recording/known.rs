//! Which namespaces and feeds a file tells of, and of which all was told in
//! it: for the threads that write recordings and histories.

use std::collections::BTreeMap;

use super::format::{Input, Outcome, Record, Which, kind, put, seal};

/// The namespaces and feeds that are recorded, by number.
#[derive(Debug, Default)]
pub(super) struct Known(BTreeMap<u32, One>);

/// A namespace or a feed that is recorded.
#[derive(Debug)]
struct One {
    /// Its record.
    kind: u16,
    payload: Vec<u8>,
    /// The listing under way is of all tables.
    lists_all: bool,
    /// All tables were listed in this part, or all of a feed was told.
    is_listed: bool,
}

impl Known {
    /// Notes what a record means for the parts.
    pub(super) fn note(&mut self, record: &Record<'_>) {
        let payload = record.payload;
        if matches!(record.kind, kind::NAMESPACE | kind::FEED) {
            let one = One {
                kind: record.kind,
                payload: payload.to_vec(),
                lists_all: false,
                is_listed: false,
            };
            self.0.insert(record.namespace, one);
        } else if record.kind == kind::ENDED {
            self.0.remove(&record.namespace);
        } else if matches!(record.kind, kind::BEGIN | kind::LISTED | kind::FEED_STATE)
            && let Some(one) = self.0.get_mut(&record.namespace)
        {
            match record.input() {
                Ok(Input::Begin(_, which)) => one.lists_all = which == Which::All,
                Ok(Input::Listed(Outcome::Listed(_))) => one.is_listed |= one.lists_all,
                Ok(Input::FeedState { is_whole }) => one.is_listed |= is_whole,
                _ => {}
            }
        }
    }

    /// Whether all was told of all in this part.
    pub(super) fn are_listed(&self) -> bool {
        self.0.values().all(|one| one.is_listed)
    }

    /// A part begins: gives the records that name them all.
    pub(super) fn begin_part(&mut self, at_micros: u64) -> Vec<u8> {
        let mut records = Vec::new();
        for (namespace, one) in &mut self.0 {
            one.is_listed = false;
            one.lists_all = false;
            let record = Record {
                kind: one.kind,
                namespace: *namespace,
                at_micros,
                payload: &one.payload,
            };
            put(&mut records, &record);
        }
        seal(&mut records, &mut |_| {});
        records
    }
}
