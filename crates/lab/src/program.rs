//! Which build of the program is under test. Set by `cargo xtask test`,
//! asked by the tests that start it.

use std::env;
use std::sync::LazyLock;

/// Names another build of the program than the one that came with the
/// tests. `cargo xtask test --program` sets it.
pub const VARIABLE: &str = "FINGERPOST_PROGRAM";

/// The program under test: the one that was built with the tests, unless
/// [`VARIABLE`] names another build of it.
#[must_use]
pub fn under_test(built: &'static str) -> &'static str {
    static NAMED: LazyLock<Option<String>> = LazyLock::new(|| env::var(VARIABLE).ok());
    NAMED.as_deref().unwrap_or(built)
}
