//! [`RouteMetrics`] to `RTA_METRICS`.

use table::row::route_metrics::CONGESTION;
use table::{Metric, RouteMetrics};

use crate::attribute::NESTED;
use crate::build::Build;
use crate::kernel::rta;

pub(super) fn put_metrics(build: &mut Build<'_>, row: &RouteMetrics) {
    let nest = build.open(rta::METRICS | NESTED);
    if row.locked != 0 {
        build.put_u32(rta::RTAX_LOCK, row.locked);
    }
    for metric in Metric::ALL {
        if let Some(value) = row.get(metric) {
            build.put_u32(metric.number(), value);
        }
    }
    if let Some(name) = &row.congestion {
        build.put_text(CONGESTION, name);
    }
    build.append(row.rest.bytes());
    build.close(&nest);
}
