//! How much a link takes in one piece: what is cut by the device (TSO), by
//! the kernel (GSO), or joined (GRO).

/// The limits of a link; `None` where the kernel did not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the kernel's own names: `IFLA_…`")]
pub struct Limits {
    pub gso_max_size: Option<u32>,
    pub gso_max_segs: Option<u32>,
    pub tso_max_size: Option<u32>,
    pub tso_max_segs: Option<u32>,
    pub gro_max_size: Option<u32>,
}

/// Limits as a row keeps them: nearly all links have one of few.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptLimits(Kept);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Kept {
    #[default]
    Untold,
    /// A place in [`COMMON`].
    Common(usize),
    Own(Box<Limits>),
}

const fn common(tso_max_size: u32) -> Limits {
    Limits {
        gso_max_size: Some(65_536),
        gso_max_segs: Some(65_535),
        tso_max_size: Some(tso_max_size),
        tso_max_segs: Some(65_535),
        gro_max_size: Some(65_536),
    }
}

/// Of devices whose driver says nothing, and of those that only pass on
/// what they get (`TSO_LEGACY_MAX_SIZE` and `GSO_MAX_SIZE`,
/// `linux/netdevice.h`).
const COMMON: [Limits; 2] = [common(65_536), common(524_280)];

impl KeptLimits {
    /// Equal limits are kept alike.
    pub fn new(limits: Limits) -> Self {
        if limits == Limits::default() {
            return Self(Kept::Untold);
        }
        let place = COMMON.iter().position(|common| *common == limits);
        Self(place.map_or_else(|| Kept::Own(Box::new(limits)), Kept::Common))
    }

    /// The limits.
    pub fn get(&self) -> Limits {
        match &self.0 {
            Kept::Untold => Limits::default(),
            Kept::Common(place) => COMMON.get(*place).copied().unwrap_or_default(),
            Kept::Own(limits) => **limits,
        }
    }
}

// A row has one of each.
const _: () = assert!(size_of::<KeptLimits>() == 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_what_they_were() {
        let odd = Limits {
            tso_max_segs: Some(7),
            ..Limits::default()
        };
        for limits in [Limits::default(), COMMON[0], COMMON[1], odd] {
            assert_eq!(KeptLimits::new(limits).get(), limits);
        }
    }
}
