//! The metrics of a route: what a connection over it starts from
//! (`RTA_METRICS`).

use super::attributes::RawAttributes;

/// The metrics that a route sets. Behind a pointer in the row: nearly no
/// route has any.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RouteMetrics {
    numbers: [Option<u32>; METRICS],
    /// `RTAX_LOCK`: a bit for each metric that path discovery may not
    /// change ([`Metric::number`]).
    pub locked: u32,
    /// `RTAX_CC_ALGO`: the congestion control to use.
    pub congestion: Option<Box<str>>,
    /// Metrics not named here, as they came.
    pub rest: RawAttributes,
}

/// The metrics that are numbers (`RTAX_…`, `linux/rtnetlink.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
#[repr(u8)]
pub enum Metric {
    Mtu = 2,
    Window = 3,
    /// In eighths of a millisecond.
    Rtt = 4,
    /// In quarters of a millisecond.
    RttVar = 5,
    SsThresh = 6,
    Cwnd = 7,
    AdvMss = 8,
    Reordering = 9,
    HopLimit = 10,
    InitCwnd = 11,
    /// [`feature`].
    Features = 12,
    /// In milliseconds.
    RtoMin = 13,
    InitRwnd = 14,
    QuickAck = 15,
    FastOpenNoCookie = 17,
}

/// How many places there are: from `RTAX_MTU` to
/// `RTAX_FASTOPEN_NO_COOKIE`.
const METRICS: usize = 16;

/// `RTAX_CC_ALGO`, the only metric that is text.
pub const CONGESTION: u16 = 16;

impl Metric {
    /// All, by their numbers.
    pub const ALL: [Metric; 15] = [
        Metric::Mtu,
        Metric::Window,
        Metric::Rtt,
        Metric::RttVar,
        Metric::SsThresh,
        Metric::Cwnd,
        Metric::AdvMss,
        Metric::Reordering,
        Metric::HopLimit,
        Metric::InitCwnd,
        Metric::Features,
        Metric::RtoMin,
        Metric::InitRwnd,
        Metric::QuickAck,
        Metric::FastOpenNoCookie,
    ];

    /// Its `RTAX_…`.
    pub fn number(self) -> u16 {
        self as u16
    }

    /// The metric with a number.
    pub fn of_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.number() == number)
    }

    fn place(self) -> usize {
        usize::from(self.number() - Metric::Mtu.number())
    }
}

impl RouteMetrics {
    /// Its value, if the route sets it.
    pub fn get(&self, metric: Metric) -> Option<u32> {
        self.numbers.get(metric.place()).copied().flatten()
    }

    /// The route sets it.
    pub fn set(&mut self, metric: Metric, value: u32) {
        if let Some(number) = self.numbers.get_mut(metric.place()) {
            *number = Some(value);
        }
    }

    /// Whether path discovery may not change the metric with a number.
    pub fn is_locked(&self, number: u16) -> bool {
        let bit = 1u32.checked_shl(number.into());
        bit.is_some_and(|bit| self.locked & bit != 0)
    }

    /// As a row holds them: nothing where nothing is set.
    pub fn into_row(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// `RTAX_FEATURE_…`, `linux/rtnetlink.h`.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod feature {
    pub const ECN: u32 = 1;
    pub const SACK: u32 = 2;
    pub const TIMESTAMP: u32 = 4;
    pub const ALLFRAG: u32 = 8;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_place_of_its_own() {
        let mut metrics = RouteMetrics::default();
        for metric in Metric::ALL {
            assert_eq!(metrics.get(metric), None);
            metrics.set(metric, u32::from(metric.number()) + 100);
            assert_eq!(Metric::of_number(metric.number()), Some(metric));
        }
        for metric in Metric::ALL {
            let value = u32::from(metric.number()) + 100;
            assert_eq!(metrics.get(metric), Some(value));
        }
        assert_eq!(Metric::of_number(CONGESTION), None);
        assert_eq!(Metric::of_number(1), None);
        assert_eq!(RouteMetrics::default().into_row(), None);
    }
}
