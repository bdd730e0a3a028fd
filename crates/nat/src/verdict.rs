//! What is asked about a packet and what is answered. For the engine's
//! callers.

/// Which way a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From inside to outside.
    Out,
    /// From outside to inside.
    In,
}

/// What became of a packet. Unless it was translated or hairpinned, its
/// bytes are as they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Verdict {
    /// Translated: send it on.
    Translated,
    /// Not to be translated, by the modes: send it on as it is.
    Passed,
    /// Translated on both sides, to another host inside: send it back in.
    Hairpinned,
    /// It asked the translator itself (PCP, NAT-PMP), and is the answer now:
    /// send it back in.
    Answered,
    /// Dropped: incoming, and neither a flow nor a rule nor a target.
    #[default]
    NoMapping,
    /// Dropped: there is a mapping, but not for this remote; or a mode or a
    /// rule denies it.
    Denied,
    /// Dropped: a new flow, and the table is at its cap.
    TableFull,
    /// Dropped: a new flow, and no alias port is free for it.
    PortsExhausted,
    /// Dropped: a new flow, and its subscriber has what it may have.
    OverQuota,
    /// Dropped: not an IPv4 packet with the headers it says it has.
    Malformed,
    /// Not decided: a later fragment whose first one has not come. A copy is
    /// held, which [`crate::Nat::next_fragment`] gives out translated once
    /// that has come. With [`crate::fragment::Limits::held_bytes`] 0 nothing
    /// is held: the caller keeps it, or drops it.
    FragmentWaiting,
    /// Dropped: a helper cannot rewrite it soundly. There is no room behind
    /// it to grow into, or TCP has to send it again, in order.
    HelperRefused,
    /// A kind of packet that has no translation (an ICMP message that is
    /// neither query nor error): as it is.
    Unsupported,
}

impl Verdict {
    /// All verdicts, in the order of [`Verdict::index`].
    pub const ALL: [Self; 13] = [
        Self::Translated,
        Self::Passed,
        Self::Hairpinned,
        Self::Answered,
        Self::NoMapping,
        Self::Denied,
        Self::TableFull,
        Self::PortsExhausted,
        Self::OverQuota,
        Self::Malformed,
        Self::FragmentWaiting,
        Self::HelperRefused,
        Self::Unsupported,
    ];

    /// A number below [`Verdict::ALL`]`.len()`, for tables of counters.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Whether the packet goes on (translated or as it is), anywhere.
    #[inline]
    pub fn goes_on(self) -> bool {
        matches!(self, Self::Translated | Self::Passed) || self.turns_back()
    }

    /// Whether the packet goes back in, where it came from.
    #[inline]
    pub fn turns_back(self) -> bool {
        matches!(self, Self::Hairpinned | Self::Answered)
    }
}

/// A packet of a batch.
#[derive(Debug)]
pub struct Packet<'a> {
    /// An IPv4 packet from its first byte, and room behind it for helpers
    /// that lengthen it; how long it is stands in its header.
    pub bytes: &'a mut [u8],
    /// What became of it: written by the engine.
    pub verdict: Verdict,
}

impl<'a> Packet<'a> {
    /// A packet that nothing became of yet.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        let verdict = Verdict::default();
        Self { bytes, verdict }
    }
}
