//! What `top` looks at once an interval, and the rates between two looks.

use std::collections::HashMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::daemon::Daemon;
use serve::forwarding::Report;
use serve::status::Status;

/// Looks again at most, when the daemon read the counters meanwhile.
const LOOKS: usize = 3;

/// One look.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// How the daemon is.
    pub status: Status,
    /// Its links, as they were at `links_at_millis`.
    pub links: Vec<Link>,
    /// When the kernel's counters were read, milliseconds since the UNIX
    /// epoch.
    pub links_at_millis: Option<u64>,
}

/// A link.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Link {
    /// Its index.
    pub ifindex: u32,
    /// Its name; whoever made the link chose it.
    pub ifname: String,
    /// Its operational state.
    #[serde(default)]
    pub operstate: String,
    /// Its counters.
    #[serde(default)]
    pub stats64: Counters,
}

/// Counters of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Received.
    pub rx: Direction,
    /// Sent.
    pub tx: Direction,
}

/// Counters of a direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Direction {
    /// Octets.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Packets with errors.
    pub errors: u64,
    /// Packets dropped.
    pub dropped: u64,
}

/// A link's counters as rates, a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Packets received.
    pub rx_packets: f64,
    /// Bits received.
    pub rx_bits: f64,
    /// Packets sent.
    pub tx_packets: f64,
    /// Bits sent.
    pub tx_bits: f64,
    /// Errors in both directions.
    pub errors: f64,
    /// Drops in both directions.
    pub drops: f64,
}

/// Packets a second of forwarding at XDP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RouterRates {
    /// Packets that left by another port.
    pub forwarded: f64,
    /// Bits of these.
    pub forwarded_bits: f64,
    /// Packets that went up to the kernel.
    pub up: f64,
}

impl RouterRates {
    /// Between two reports; `None` where they are of one moment, or the
    /// router began anew.
    pub fn between(before: &Report, now: &Report) -> Option<Self> {
        let millis = now.millis.checked_sub(before.millis)?;
        if millis == 0 {
            return None;
        }
        let [forwarded, up] = now.total();
        let [forwarded_before, up_before] = before.total();
        let rate =
            |now: u64, before: u64| now.saturating_sub(before) as f64 * 1_000.0 / millis as f64;
        Some(Self {
            forwarded: rate(forwarded.packets, forwarded_before.packets),
            forwarded_bits: rate(forwarded.bytes, forwarded_before.bytes) * 8.0,
            up: rate(up.packets, up_before.packets),
        })
    }
}

impl Sample {
    /// What forwards at XDP has said.
    pub fn router(&self) -> Option<&Report> {
        self.status.router.as_ref()?.report.as_ref()
    }

    /// Asks the daemon. The time of the counters is told with its status:
    /// the links are asked between two of those until both tell the same.
    pub fn take(daemon: &Daemon) -> Result<Self> {
        let mut sample = Self {
            status: daemon.status()?,
            ..Self::default()
        };
        for _ in 0..LOOKS {
            let before = sample.status.mirror.counters_at_millis;
            sample.links = daemon.links()?;
            sample.status = daemon.status()?;
            sample.links_at_millis = sample.status.mirror.counters_at_millis;
            if before == sample.links_at_millis {
                return Ok(sample);
            }
        }
        sample.links_at_millis = None;
        Ok(sample)
    }

    /// Rates by the index of a link since an earlier look; `None` when the
    /// counters were not read anew since. A link that is new, or whose
    /// counters began again, has none. O(links).
    pub fn rates_since(&self, before: &Self) -> Option<HashMap<u32, Rates>> {
        let millis = self.links_at_millis?.checked_sub(before.links_at_millis?)?;
        if millis == 0 {
            return None;
        }
        let secs = millis as f64 / 1_000.0;
        let old: HashMap<u32, &Counters> = before
            .links
            .iter()
            .map(|link| (link.ifindex, &link.stats64))
            .collect();
        let rates = self.links.iter().filter_map(|link| {
            let before = old.get(&link.ifindex)?;
            Some((link.ifindex, Rates::between(before, &link.stats64, secs)))
        });
        Some(rates.collect())
    }
}

impl Rates {
    fn between(old: &Counters, new: &Counters, secs: f64) -> Self {
        let rate = |of: fn(&Counters) -> u64| of(new).saturating_sub(of(old)) as f64 / secs;
        Self {
            rx_packets: rate(|c| c.rx.packets),
            rx_bits: rate(|c| c.rx.bytes) * 8.0,
            tx_packets: rate(|c| c.tx.packets),
            tx_bits: rate(|c| c.tx.bytes) * 8.0,
            errors: rate(|c| c.rx.errors.saturating_add(c.tx.errors)),
            drops: rate(|c| c.rx.dropped.saturating_add(c.tx.dropped)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: Option<u64>, links: &[(u32, u64)]) -> Sample {
        let link = |&(ifindex, packets): &(u32, u64)| Link {
            ifindex,
            stats64: Counters {
                rx: Direction {
                    bytes: packets * 100,
                    packets,
                    ..Direction::default()
                },
                ..Counters::default()
            },
            ..Link::default()
        };
        Sample {
            links: links.iter().map(link).collect(),
            links_at_millis: at,
            ..Sample::default()
        }
    }

    #[test]
    fn rates_are_by_the_time_of_the_counters() {
        let before = sample(Some(1_000), &[(1, 100), (2, 50), (9, 1)]);
        let after = sample(Some(1_500), &[(1, 200), (2, 7), (3, 1_000)]);
        let rates = after.rates_since(&before).unwrap();
        assert_eq!(
            (rates[&1].rx_packets, rates[&1].rx_bits),
            (200.0, 160_000.0)
        );
        assert_eq!(rates[&2], Rates::default(), "counters that began again");
        assert!(!rates.contains_key(&3), "a new link has no rate yet");
        assert!(!rates.contains_key(&9));
    }

    #[test]
    fn the_same_counters_say_nothing_new() {
        let before = sample(Some(1_000), &[(1, 100)]);
        assert!(before.rates_since(&before).is_none());
        assert!(sample(None, &[]).rates_since(&before).is_none());
        assert!(
            sample(Some(900), &[]).rates_since(&before).is_none(),
            "the clock was set back"
        );
    }

    #[test]
    fn a_link_is_read_as_the_daemon_writes_it() {
        let link: Link = serde_json::from_str(
            r#"{"ifindex":3,"ifname":"a\"b","operstate":"UP","stats64":{"rx":{"bytes":586,"packets":7,
            "errors":0,"dropped":1,"over_errors":0},"tx":{"bytes":5,"packets":2,"carrier_errors":0}}}"#,
        )
        .unwrap();
        assert_eq!(link.ifname, "a\"b");
        assert_eq!((link.stats64.rx.dropped, link.stats64.tx.bytes), (1, 5));
        let bare: Link = serde_json::from_str(r#"{"ifindex":3,"ifname":"x"}"#).unwrap();
        assert_eq!(bare.stats64, Counters::default());
    }
}
