//! Netlink attributes kept as they came, so that what Fingerpost does not
//! know is not dropped.

use std::fmt;

/// A run of netlink attributes (`struct nlattr`, each padded to four
/// bytes), unparsed, in the order the kernel sent them. Empty ones cost no
/// allocation.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct RawAttributes(Option<Box<[u8]>>);

impl RawAttributes {
    /// Keeps the bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self((!bytes.is_empty()).then(|| bytes.into()))
    }

    /// The bytes, ready to be walked or sent again.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether nothing was kept.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for RawAttributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x?}", self.bytes())
    }
}
