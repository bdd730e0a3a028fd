//! Which instructions lookups use, chosen once when a table is made.

/// The instructions that lookups use. All give the same answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Those of every processor.
    Portable,
    /// AVX2, BMI and POPCNT.
    Avx2,
    /// AVX-512 as well (F, BW and VL).
    Avx512,
}

impl Path {
    /// The best of this machine. O(1).
    pub fn best() -> Self {
        [Self::Avx512, Self::Avx2]
            .into_iter()
            .find(|path| path.is_here())
            .unwrap_or(Self::Portable)
    }

    /// Whether this machine has the instructions.
    pub fn is_here(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_here()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }
}
