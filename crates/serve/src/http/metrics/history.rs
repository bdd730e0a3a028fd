//! What is measured of the history. Called by [`super`].

use super::{head, labelled};
use crate::status::HistoryStatus;

/// Writes how it stands.
pub fn write(status: &HistoryStatus, out: &mut String) {
    for (name, help, kind, value) in [
        (
            "fingerpost_history_up",
            "Whether the history is written; 0: it has a gap now",
            "gauge",
            u64::from(status.stopped.is_none()),
        ),
        (
            "fingerpost_history_bytes",
            "Bytes of the files of the history",
            "gauge",
            status.stored_bytes,
        ),
        (
            "fingerpost_history_oldest_seconds",
            "When the oldest of them was begun, since the UNIX epoch",
            "gauge",
            status.oldest_micros / 1_000_000,
        ),
        (
            "fingerpost_history_written_bytes_total",
            "Bytes written to the history",
            "counter",
            status.bytes,
        ),
        (
            "fingerpost_history_lost_total",
            "Records that were not written",
            "counter",
            status.lost,
        ),
        (
            "fingerpost_history_gaps_total",
            "Times that records are missing in the history",
            "counter",
            status.gaps,
        ),
    ] {
        head(out, name, help, kind);
        labelled(out, name, &[], value);
    }
}
