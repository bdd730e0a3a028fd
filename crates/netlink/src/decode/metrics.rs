//! `RTA_METRICS` to [`RouteMetrics`].

use table::row::route_metrics::CONGESTION;
use table::{Metric, RouteMetrics};

use crate::attribute::Attributes;
use crate::kernel::rta;
use crate::malformed::Malformed;

/// The metrics of a route; `None` if it sets none. A metric that is not
/// known, or whose value is no number, is kept as it came.
pub(super) fn metrics(attributes: Attributes<'_>) -> Result<Option<Box<RouteMetrics>>, Malformed> {
    let mut row = RouteMetrics::default();
    let rest = attributes.sort(|attribute| {
        match attribute.kind {
            rta::RTAX_LOCK => row.locked = u32::from_ne_bytes(attribute.exact()?),
            CONGESTION => row.congestion = Some(attribute.exact_text()?),
            other => row.set(
                Metric::of_number(other)?,
                u32::from_ne_bytes(attribute.exact()?),
            ),
        }
        Some(())
    })?;
    row.rest = rest;
    Ok(row.into_row())
}
