//! Why an engine cannot be made, for whoever makes one.

/// Why an engine cannot be made or a setting not be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The port range is empty.
    #[error("the port range {first}-{last} is empty: give the lower port first, above 0")]
    Ports {
        /// First port.
        first: u16,
        /// Last port.
        last: u16,
    },
    /// More flows than one engine can name.
    #[error("{asked} flows are more than the {most} of one engine: use several engines")]
    Flows {
        /// What was asked for.
        asked: usize,
        /// What is possible.
        most: usize,
    },
    /// More alias addresses than a pool holds.
    #[error("{asked} alias addresses are more than the {most} of a pool")]
    Addresses {
        /// What was asked for.
        asked: usize,
        /// What is possible.
        most: usize,
    },
    /// Subscribers or blocks that cannot be.
    #[error(transparent)]
    Blocks(#[from] crate::BlocksError),
    /// Address space for the tables was refused.
    #[error("{bytes} bytes of address space for the tables: {error}; ask for fewer flows")]
    Memory {
        /// Bytes asked for.
        bytes: usize,
        /// What the system said.
        error: String,
    },
}
