//! How many namespaces the limit of descriptors allows: a namespace takes
//! three as long as it is mirrored, and some more while it is listed. What
//! clients and listings need is kept back, so that the namespaces that have
//! a place go on being mirrored and answered for.

/// Namespaces that are listed for the first time at once: more would only
/// wait for each other in the kernel.
pub const LOADING: usize = 8;

/// The socket that events come to, the one that clients come to, and the
/// file that counters are read from beside the kernel's lock, once somebody
/// asks for them.
const EACH: u64 = 3;
/// While it is listed: its name, the right to its place, a socket, a file.
const EACH_LOADING: u64 = 4;
/// For everything else: a quarter, within these.
const LEAST_KEPT: u64 = 64;
const MOST_KEPT: u64 = 4096;

/// What the system allows.
#[derive(Debug, Clone, Copy)]
pub struct Descriptors {
    limit: u64,
}

impl Descriptors {
    /// Asks for all that the system allows: nobody knows how many
    /// namespaces there will be.
    pub fn raised() -> Self {
        Self {
            limit: serve::descriptors::raise(),
        }
    }

    /// Namespaces that may be mirrored.
    pub fn namespaces(self) -> usize {
        let kept = (self.limit / 4).clamp(LEAST_KEPT, MOST_KEPT) + EACH_LOADING * LOADING as u64;
        let most = self.limit.saturating_sub(kept) / EACH;
        usize::try_from(most.max(1)).unwrap_or(usize::MAX)
    }

    /// Why there is no place for another.
    pub fn refusal(self) -> anyhow::Error {
        anyhow::anyhow!(
            "{} descriptors are allowed, which is enough for {} namespaces; raise the hard limit \
             (LimitNOFILE= of the service, `ulimit -Hn`)",
            self.limit,
            self.namespaces()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_and_listings_keep_their_part() {
        for (limit, most) in [(0, 1), (64, 1), (160, 21), (1_024, 245), (524_288, 173_386)] {
            assert_eq!(Descriptors { limit }.namespaces(), most, "{limit}");
        }
    }
}
