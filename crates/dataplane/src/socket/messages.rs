//! Packets of one size in slots, and the arrays by which one system call
//! takes many of them. Called by the senders that have no ring.
#![allow(
    unsafe_code,
    reason = "sendmmsg over arrays that are kept; building them anew for each call, as safe libraries do, cost 20 to 30 ns a packet"
)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use super::sys::Address;
use super::{Flushed, SocketError, flushed};

/// Room for one control message of 16 bits, aligned as one.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_BYTES]);

// SAFETY: arithmetic on a constant; it reads nothing.
const CONTROL_BYTES: usize = unsafe { libc::CMSG_SPACE(2) } as usize;

/// Slots for packets of one size, some of which wait to be sent.
pub struct Messages {
    slots: Vec<u8>,
    slot_bytes: usize,
    capacity: usize,
    /// Packets in one message: more than one is a train for the kernel or
    /// the device to cut.
    per_message: usize,
    /// Slots that hold a packet to be sent, and those of them that the
    /// kernel has taken.
    filled: usize,
    taken: usize,
    /// To whom each message goes: a number in the list given to `flush`.
    destinations: Vec<u32>,
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
    control: Control,
}

// SAFETY: the pointers in `headers` and `vectors` are written anew before
// each system call and not followed at any other time.
unsafe impl Send for Messages {}

impl Messages {
    /// Slots for `packets` packets of `slot_bytes` each, all zeros.
    pub fn new(packets: usize, slot_bytes: usize, per_message: usize) -> Self {
        let per_message = per_message.max(1);
        let messages = packets.div_ceil(per_message);
        // SAFETY: null pointers and zeros are values of both structures.
        let (header, vector) = unsafe { (mem::zeroed(), mem::zeroed()) };
        Self {
            slots: vec![0; packets * slot_bytes],
            slot_bytes,
            capacity: packets,
            per_message,
            filled: 0,
            taken: 0,
            destinations: vec![0; messages],
            headers: vec![header; messages],
            vectors: vec![vector; messages],
            control: Control::segment(slot_bytes as u16),
        }
    }

    /// Packets that wait to be sent.
    pub fn pending(&self) -> usize {
        self.filled - self.taken
    }

    /// The next slot, with what was in it before, to be filled for a
    /// destination. `None` when all are full, or some of them not taken yet.
    #[inline]
    pub fn push(&mut self, destination: u32) -> Option<&mut [u8]> {
        self.push_train(destination, 1).map(|(slot, _)| slot)
    }

    /// The next slots, one behind the other, and how many: at most so many,
    /// and those that are left of one message. As [`Messages::push`].
    #[inline]
    pub fn push_train(&mut self, destination: u32, most: usize) -> Option<(&mut [u8], usize)> {
        if self.taken > 0 || self.filled >= self.capacity {
            return None;
        }
        let message = self.filled / self.per_message;
        let end = ((message + 1) * self.per_message).min(self.capacity);
        let count = most.min(end - self.filled);
        *self.destinations.get_mut(message)? = destination;
        let start = self.filled * self.slot_bytes;
        let slots = self.slots.get_mut(start..start + count * self.slot_bytes)?;
        self.filled += count;
        Some((slots, count))
    }

    /// Forgets what was not sent.
    pub fn clear(&mut self) {
        (self.filled, self.taken) = (0, 0);
    }

    /// Sends what waits, each message to its destination; with none in the
    /// list, to whom the socket is connected. One system call for all of
    /// them, or as many as it takes.
    pub fn flush(
        &mut self,
        fd: &OwnedFd,
        destinations: &[Address],
        sent: &mut u64,
        what: &str,
    ) -> Result<Flushed, SocketError> {
        while self.taken < self.filled {
            let count = self.prepare(destinations);
            // SAFETY: `prepare` has just pointed `count` headers at slots,
            // addresses and control bytes that live at least as long as
            // this call, with their right lengths; the kernel reads them
            // and writes only `msg_len` of the headers.
            let done = unsafe {
                libc::sendmmsg(
                    fd.as_raw_fd(),
                    self.headers.as_mut_ptr(),
                    count,
                    libc::MSG_DONTWAIT,
                )
            };
            if let Ok(messages) = usize::try_from(done) {
                self.take(messages * self.per_message, sent);
            } else if let Some(flushed) = flushed(io::Error::last_os_error(), what)? {
                return Ok(flushed);
            }
        }
        self.clear();
        Ok(Flushed::All)
    }

    /// The same with a system call for each packet.
    pub fn flush_each(
        &mut self,
        fd: &OwnedFd,
        destinations: &[Address],
        sent: &mut u64,
        what: &str,
    ) -> Result<Flushed, SocketError> {
        while self.taken < self.filled {
            let start = self.taken * self.slot_bytes;
            let slot = self
                .slots
                .get(start..start + self.slot_bytes)
                .unwrap_or_default();
            let to = self.destinations.get(self.taken).copied().unwrap_or(0);
            let (name, len) = destinations
                .get(to as usize)
                .map_or((ptr::null(), 0), |to| (to.pointer(), to.len()));
            // SAFETY: slot and address are live slices with their lengths;
            // the kernel only reads them.
            let done = unsafe {
                libc::sendto(
                    fd.as_raw_fd(),
                    slot.as_ptr().cast(),
                    slot.len(),
                    libc::MSG_DONTWAIT,
                    name,
                    len,
                )
            };
            if done >= 0 {
                self.take(1, sent);
            } else if let Some(flushed) = flushed(io::Error::last_os_error(), what)? {
                return Ok(flushed);
            }
        }
        self.clear();
        Ok(Flushed::All)
    }

    fn take(&mut self, packets: usize, sent: &mut u64) {
        let before = self.taken;
        self.taken = (before + packets).min(self.filled);
        *sent += (self.taken - before) as u64;
    }

    /// Points the headers at the messages that wait; how many they are.
    fn prepare(&mut self, destinations: &[Address]) -> u32 {
        let first = self.taken / self.per_message;
        let mut from = self.taken;
        let control = (&raw mut self.control).cast();
        let mut count = 0;
        let destinations_of = self.destinations.get(first..).unwrap_or_default();
        let arrays = self.headers.iter_mut().zip(&mut self.vectors);
        for ((header, vector), to) in arrays.zip(destinations_of) {
            if from >= self.filled {
                break;
            }
            let packets = self.per_message.min(self.filled - from);
            let start = from * self.slot_bytes;
            let bytes = packets * self.slot_bytes;
            let Some(slots) = self.slots.get_mut(start..start + bytes) else {
                break;
            };
            vector.iov_base = slots.as_mut_ptr().cast();
            vector.iov_len = bytes;
            let message = &mut header.msg_hdr;
            message.msg_iov = vector;
            message.msg_iovlen = 1;
            if let Some(to) = destinations.get(*to as usize) {
                message.msg_name = to.pointer().cast_mut().cast();
                message.msg_namelen = to.len();
            }
            if self.per_message > 1 {
                message.msg_control = control;
                message.msg_controllen = CONTROL_BYTES;
            }
            from += packets;
            count += 1;
        }
        count
    }
}

impl Control {
    /// "Cut this into datagrams of so many bytes."
    fn segment(bytes: u16) -> Self {
        let mut control = Self([0; CONTROL_BYTES]);
        let header: *mut libc::cmsghdr = (&raw mut control).cast();
        // SAFETY: `control` is aligned as a header, and as long as the
        // macro says that a header with two bytes of data is.
        unsafe {
            (*header).cmsg_level = libc::SOL_UDP;
            (*header).cmsg_type = libc::UDP_SEGMENT;
            (*header).cmsg_len = libc::CMSG_LEN(2) as usize;
            libc::CMSG_DATA(header).cast::<u16>().write_unaligned(bytes);
        }
        control
    }
}
