//! The words of iproute2, for all that read or write them.
//!
//! - [`Names`]: names of protocols, scopes, tables; [`load`] reads those of
//!   the host.
//! - [`values`]: addresses, prefixes, numbers in the spellings of `ip`.
//!
//! Pure but for [`load`]. Called by `view` and by every crate above it.

mod names;
pub mod values;

pub use names::host::load;
pub use names::{Name, NameFile, Names};
