//! How many descriptors the process may have. Raised once, at the start of
//! whoever answers many; for the daemon and a replay.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Asks for all that the system allows; gives what there are. Everybody may
/// raise the limit that most systems begin with, as far as the hard one.
pub fn raise() -> u64 {
    let hard = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: hard,
        maximum: hard,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!("the limit of descriptors could not be raised: {error}");
    }
    limit()
}

/// What there are.
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
