//! One system call for many frames, each where it lies: the arrays of
//! `sendmmsg`. Called by [`crate::port::af_packet`].
#![allow(
    unsafe_code,
    reason = "sendmmsg over arrays that are kept; building them anew for each call, as safe libraries do, cost 20 to 30 ns a packet"
)]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};

/// The arrays, kept from call to call.
pub struct Gather {
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
}

// SAFETY: the pointers are written anew before each system call and not
// followed at any other time.
unsafe impl Send for Gather {}

impl Gather {
    /// For so many frames in a call.
    pub fn new(frames: usize) -> Self {
        // SAFETY: null pointers and zeros are values of both structures.
        let (header, vector) = unsafe { (mem::zeroed(), mem::zeroed()) };
        Self {
            headers: vec![header; frames.max(1)],
            vectors: vec![vector; frames.max(1)],
        }
    }

    /// Sends the first frames, as many as there are arrays for, to whom the
    /// socket is bound; how many of them the kernel took.
    pub fn send<'a>(
        &mut self,
        fd: &OwnedFd,
        frames: impl Iterator<Item = &'a [u8]>,
    ) -> io::Result<usize> {
        let mut count = 0;
        let arrays = self.headers.iter_mut().zip(&mut self.vectors);
        for ((header, vector), frame) in arrays.zip(frames) {
            vector.iov_base = frame.as_ptr().cast_mut().cast();
            vector.iov_len = frame.len();
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        // SAFETY: `count` headers were pointed just now at frames that are
        // borrowed for longer than this call, with their right lengths; the
        // kernel reads them and writes only `msg_len` of the headers.
        let done = unsafe {
            libc::sendmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                count,
                libc::MSG_DONTWAIT,
            )
        };
        usize::try_from(done).map_err(|_| io::Error::last_os_error())
    }
}
