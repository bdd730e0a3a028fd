//! Buffers and batches of them. Filled by a port, worked on by the
//! program, emptied by a port; allocated once.

use std::ops::Range;

/// Bytes kept free in front of a packet, for the headers that ports put
/// there: a link's of a capture, virtio's of a TUN device.
pub const HEADROOM: usize = 64;

/// Bytes kept free behind the longest packet, for helpers that lengthen.
pub const TAILROOM: usize = 192;

/// One packet and the room around it.
#[derive(Debug, Clone)]
pub struct Buffer {
    bytes: Box<[u8]>,
    /// Bytes of the link's header, which ends where the packet begins.
    link_len: usize,
    /// Bytes of the packet, from [`HEADROOM`] on.
    len: usize,
    /// Bytes that the capture had cut off behind the packet.
    cut_off: u32,
    time_nanos: u64,
    is_discarded: bool,
}

impl Buffer {
    fn new(max_packet_bytes: usize) -> Self {
        Self {
            bytes: vec![0; HEADROOM + max_packet_bytes + TAILROOM].into(),
            link_len: 0,
            len: 0,
            cut_off: 0,
            time_nanos: 0,
            is_discarded: false,
        }
    }

    /// The packet, from its IP header on.
    pub fn packet(&self) -> &[u8] {
        self.bytes.get(self.range()).unwrap_or_default()
    }

    /// The packet, to be changed in place.
    pub fn packet_mut(&mut self) -> &mut [u8] {
        let range = self.range();
        self.bytes.get_mut(range).unwrap_or_default()
    }

    /// The packet and the room behind it, [`TAILROOM`] at least.
    pub fn room_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(HEADROOM..).unwrap_or_default()
    }

    /// Says how long the packet is now; more than there is room for is cut.
    pub fn set_len(&mut self, len_bytes: usize) {
        self.len = len_bytes.min(self.bytes.len().saturating_sub(HEADROOM));
    }

    /// The header of the link that the packet came with; empty where a
    /// port has none.
    pub fn link(&self) -> &[u8] {
        self.bytes
            .get(HEADROOM - self.link_len..HEADROOM)
            .unwrap_or_default()
    }

    /// When the packet was captured, nanoseconds since 1970; 0 from a
    /// port that keeps no time.
    pub fn time_nanos(&self) -> u64 {
        self.time_nanos
    }

    /// Says whether the packet goes nowhere: a port sends the others only.
    pub fn set_discarded(&mut self, is_discarded: bool) {
        self.is_discarded = is_discarded;
    }

    /// Whether the packet goes nowhere.
    pub fn is_discarded(&self) -> bool {
        self.is_discarded
    }

    /// How long the packet was on the link, with what the capture cut off.
    pub(crate) fn original_len(&self) -> usize {
        self.link_len + self.len + self.cut_off as usize
    }

    /// Takes a frame of a capture: `link_len` bytes of the link's header,
    /// then the packet. False, with nothing taken, when there is no room.
    pub(crate) fn fill(&mut self, frame: &[u8], link_len: usize, cut_off: u32, nanos: u64) -> bool {
        let Some((link, packet)) = frame.split_at_checked(link_len) else {
            return false;
        };
        if link_len > HEADROOM || packet.len() + HEADROOM + TAILROOM > self.bytes.len() {
            return false;
        }
        self.reset();
        self.bytes[HEADROOM - link_len..HEADROOM].copy_from_slice(link);
        self.bytes[HEADROOM..][..packet.len()].copy_from_slice(packet);
        (self.link_len, self.len) = (link_len, packet.len());
        (self.cut_off, self.time_nanos) = (cut_off, nanos);
        true
    }

    /// Link header and packet in one piece, as a capture keeps them.
    pub(crate) fn frame(&self) -> &[u8] {
        self.bytes
            .get(HEADROOM - self.link_len..HEADROOM + self.len)
            .unwrap_or_default()
    }

    /// The packet behind `len` zeroed bytes of header.
    pub(crate) fn behind_zeros(&mut self, len: usize) -> &[u8] {
        let start = HEADROOM.saturating_sub(len);
        let end = HEADROOM + self.len;
        let bytes = self.bytes.get_mut(start..end).unwrap_or_default();
        if let Some(header) = bytes.get_mut(..HEADROOM - start) {
            header.fill(0);
        }
        bytes
    }

    /// Forgets everything about the packet that was in here.
    pub(crate) fn reset(&mut self) {
        (self.link_len, self.len, self.cut_off) = (0, 0, 0);
        (self.time_nanos, self.is_discarded) = (0, false);
    }

    fn range(&self) -> Range<usize> {
        HEADROOM..HEADROOM + self.len
    }
}

/// All bytes, headroom included: for a library that fills many buffers in
/// one call.
impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// See [`AsMut`].
impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A run of buffers, of which the first [`Batch::len`] hold packets.
#[derive(Debug, Clone)]
pub struct Batch {
    buffers: Vec<Buffer>,
    len: usize,
}

impl Batch {
    /// Room for `packets` packets of up to `max_packet_bytes` each. The
    /// memory is the system's until it is written to.
    pub fn new(packets: usize, max_packet_bytes: usize) -> Self {
        Self {
            buffers: vec![Buffer::new(max_packet_bytes); packets],
            len: 0,
        }
    }

    /// How many packets are in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many packets have room in it.
    pub fn capacity(&self) -> usize {
        self.buffers.len()
    }

    /// The packets.
    pub fn packets(&self) -> &[Buffer] {
        self.buffers.get(..self.len).unwrap_or_default()
    }

    /// The packets, to be changed in place.
    pub fn packets_mut(&mut self) -> &mut [Buffer] {
        self.buffers.get_mut(..self.len).unwrap_or_default()
    }

    /// Empties it; the buffers stay.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Makes it a batch of one empty packet, to be written by the caller.
    pub fn one(&mut self) -> Option<&mut Buffer> {
        let one = self.buffers.first_mut()?;
        one.reset();
        self.len = 1;
        Some(one)
    }

    /// Makes it a batch of one empty packet, captured with `other`: with
    /// its link's header and time. For a packet that was held back.
    pub fn one_beside(&mut self, other: &Buffer) -> Option<&mut Buffer> {
        let one = self.one()?;
        one.link_len = other.link_len;
        one.time_nanos = other.time_nanos;
        let link = HEADROOM - one.link_len..HEADROOM;
        one.bytes[link.clone()].copy_from_slice(&other.bytes[link]);
        Some(one)
    }

    /// All buffers, for a port to fill from the first on.
    pub(crate) fn buffers_mut(&mut self) -> &mut [Buffer] {
        &mut self.buffers
    }

    /// Says how many of the buffers hold packets now.
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len.min(self.buffers.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_grows_into_the_room_behind_it_and_no_further() {
        let mut batch = Batch::new(1, 100);
        let buffer = &mut batch.buffers_mut()[0];
        assert!(buffer.fill(&[7; 114], 14, 3, 5));
        assert_eq!((buffer.link().len(), buffer.packet().len()), (14, 100));
        assert_eq!((buffer.original_len(), buffer.time_nanos()), (117, 5));
        assert_eq!(buffer.room_mut().len(), 100 + TAILROOM);
        buffer.set_len(120);
        assert_eq!(buffer.frame().len(), 134);
        buffer.set_len(usize::MAX);
        assert_eq!(buffer.packet_mut().len(), 100 + TAILROOM);
    }

    #[test]
    fn what_has_no_room_is_not_taken() {
        let mut buffer = Buffer::new(100);
        assert!(!buffer.fill(&[7; 115], 14, 0, 0));
        assert!(!buffer.fill(&[7; 10], 14, 0, 0));
        assert!(!buffer.fill(&[7; 100], HEADROOM + 1, 0, 0));
        assert!(buffer.packet().is_empty());
    }

    #[test]
    fn one_beside_another_has_its_link_and_its_time() {
        let mut batch = Batch::new(1, 100);
        let mut other = Buffer::new(100);
        assert!(other.fill(&[7; 30], 14, 9, 5));
        let one = batch.one_beside(&other).unwrap();
        one.set_len(2);
        assert_eq!((one.link(), one.packet()), (&[7; 14][..], &[0, 0][..]));
        assert_eq!((one.time_nanos(), one.original_len()), (5, 16));
        assert_eq!(batch.len(), 1);
    }

    #[test]
    fn a_header_of_zeros_stands_right_before_the_packet() {
        let mut buffer = Buffer::new(100);
        assert!(buffer.fill(&[7; 30], 10, 0, 0));
        let bytes = buffer.behind_zeros(12);
        assert_eq!((bytes.len(), &bytes[..12]), (32, &[0; 12][..]));
        assert_eq!(&bytes[12..], &[7; 20]);
    }
}
