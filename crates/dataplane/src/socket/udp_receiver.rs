//! Datagrams in batches (`recvmmsg`), with the time at which the kernel got
//! each and the number of those it had no room for.
#![allow(
    unsafe_code,
    reason = "recvmmsg into arrays that are kept, and control messages read in place"
)]

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use super::SocketError;
use super::sys::{self, Address};

/// Bytes of a datagram that are kept; its whole length is told.
const KEPT_BYTES: usize = 64;
/// Room for a time stamp beside a datagram.
// SAFETY: arithmetic on a constant; it reads nothing.
const CONTROL_BYTES: usize =
    unsafe { libc::CMSG_SPACE(mem::size_of::<libc::timespec>() as u32) } as usize;
/// `SO_MEMINFO` gives nine numbers; the last is what was dropped.
const MEMINFO_DROPS: usize = 8;

/// What a [`UdpReceiver`] is opened with.
#[derive(Debug, Clone)]
pub struct ReceiverConfig {
    /// Where it listens.
    pub address: SocketAddr,
    /// Room for datagrams that wait, in the kernel's count.
    pub buffer_bytes: usize,
    /// Datagrams of one call.
    pub batch: usize,
}

/// A datagram as it was received.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// Its first bytes, 64 at most.
    pub bytes: &'a [u8],
    /// How long it was.
    pub len: usize,
    /// Who sent it.
    pub source: SocketAddr,
    /// When the kernel got it, nanoseconds since 1970; 0 where it does not
    /// say.
    pub time_nanos: u64,
}

/// Receives datagrams on one port.
pub struct UdpReceiver {
    socket: OwnedFd,
    slots: Vec<[u8; KEPT_BYTES]>,
    controls: Vec<Control>,
    names: Vec<libc::sockaddr_storage>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    dropped_last: u32,
    dropped: u64,
}

/// Room for control messages, aligned as their header.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_BYTES]);

// SAFETY: the pointers in `vectors` and `headers` are written anew before
// each system call and not followed at any other time.
unsafe impl Send for UdpReceiver {}

impl UdpReceiver {
    /// Opens it. A larger buffer than the host's limit takes
    /// `CAP_NET_ADMIN`; without, it is as large as it may be.
    pub fn open(config: &ReceiverConfig) -> Result<Self, SocketError> {
        let domain = match config.address {
            SocketAddr::V4(_) => libc::AF_INET,
            SocketAddr::V6(_) => libc::AF_INET6,
        };
        let socket = sys::socket(domain, libc::SOCK_DGRAM, 0, "opening a UDP socket")?;
        let bytes = i32::try_from(config.buffer_bytes).unwrap_or(i32::MAX);
        let level = libc::SOL_SOCKET;
        if sys::set_option(&socket, level, libc::SO_RCVBUFFORCE, &bytes).is_err() {
            // The host's limit cuts it; what is dropped is counted.
            let _ = sys::set_option(&socket, level, libc::SO_RCVBUF, &bytes);
        }
        sys::set_option(&socket, level, libc::SO_TIMESTAMPNS, &1_i32)
            .map_err(|error| SocketError::refused("SO_TIMESTAMPNS", error))?;
        sys::bind(&socket, &Address::of(&config.address)).map_err(|source| {
            let what = format!("listening on {}", config.address);
            SocketError::refused(what, source)
        })?;
        let batch = config.batch.clamp(1, 1_024);
        // SAFETY: null pointers and zeros are values of these structures.
        let (header, vector, name) = unsafe { (mem::zeroed(), mem::zeroed(), mem::zeroed()) };
        Ok(Self {
            socket,
            slots: vec![[0; KEPT_BYTES]; batch],
            controls: vec![Control([0; CONTROL_BYTES]); batch],
            names: vec![name; batch],
            vectors: vec![vector; batch],
            headers: vec![header; batch],
            dropped_last: 0,
            dropped: 0,
        })
    }

    /// Gives each datagram of a batch to `each`; how many they were. Never
    /// waits. One system call.
    pub fn receive(&mut self, mut each: impl FnMut(Datagram<'_>)) -> Result<usize, SocketError> {
        self.prepare();
        // SAFETY: `prepare` has just pointed all headers at slots, names
        // and control bytes of their stated lengths, which live as long as
        // `self`; nothing else looks at them during the call.
        let done = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as u32,
                libc::MSG_DONTWAIT | libc::MSG_TRUNC,
                ptr::null_mut(),
            )
        };
        let Ok(count) = usize::try_from(done) else {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                // An ICMP error that came back to this port is nothing here.
                Some(libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED) => Ok(0),
                _ => Err(SocketError::refused("recvmmsg", error)),
            };
        };
        let rows = self.headers.iter().zip(&self.slots).zip(&self.names);
        for ((header, slot), name) in rows.take(count) {
            let len = header.msg_len as usize;
            let kept = slot.get(..len.min(KEPT_BYTES)).unwrap_or_default();
            if let Some(source) = sys::Address::from_storage(name).socket_addr() {
                each(Datagram {
                    bytes: kept,
                    len,
                    source,
                    time_nanos: time(&header.msg_hdr),
                });
            }
        }
        Ok(count)
    }

    /// Datagrams for which there was no room, since the start. One system
    /// call; exact at least once in 2^32 of them.
    pub fn dropped(&mut self) -> u64 {
        let numbers = sys::option::<[u32; 9]>(&self.socket, libc::SOL_SOCKET, libc::SO_MEMINFO);
        // Older kernels do not tell: then it stays as it was.
        if let Some(now) = numbers.ok().and_then(|all| all.get(MEMINFO_DROPS).copied()) {
            self.dropped += u64::from(now.wrapping_sub(self.dropped_last));
            self.dropped_last = now;
        }
        self.dropped
    }

    /// What becomes readable when there is a datagram.
    pub fn readable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Where it listens, with the port that the kernel chose.
    pub fn local_address(&self) -> Option<SocketAddr> {
        // SAFETY: all zeros is a value of this structure of integers.
        let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
        let mut len = mem::size_of_val(&storage) as libc::socklen_t;
        // SAFETY: live storage and its length; the kernel writes no more.
        let done = unsafe {
            libc::getsockname(
                self.socket.as_raw_fd(),
                (&raw mut storage).cast(),
                &raw mut len,
            )
        };
        sys::check(done).ok()?;
        Address::from_storage(&storage).socket_addr()
    }

    fn prepare(&mut self) {
        let arrays = self.headers.iter_mut().zip(&mut self.vectors);
        let memory = self.slots.iter_mut().zip(&mut self.controls);
        let rows = arrays.zip(memory).zip(&mut self.names);
        for (((header, vector), (slot, control)), name) in rows {
            vector.iov_base = slot.as_mut_ptr().cast();
            vector.iov_len = KEPT_BYTES;
            let message = &mut header.msg_hdr;
            message.msg_iov = vector;
            message.msg_iovlen = 1;
            message.msg_name = ptr::from_mut(name).cast();
            message.msg_namelen = mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = CONTROL_BYTES;
        }
    }
}

/// The time beside a datagram.
fn time(message: &libc::msghdr) -> u64 {
    // SAFETY: a header that the kernel has just filled: its control pointer
    // and length are of live control bytes, aligned for their header.
    let mut control = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !control.is_null() {
        // SAFETY: not null, so that a whole header lies in the bytes.
        let header = unsafe { *control };
        if header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_TIMESTAMPNS {
            // SAFETY: such a message carries a `timespec`.
            let time: libc::timespec = unsafe {
                libc::CMSG_DATA(control)
                    .cast::<libc::timespec>()
                    .read_unaligned()
            };
            let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
            return seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0);
        }
        // SAFETY: as above; gives null behind the last one.
        control = unsafe { libc::CMSG_NXTHDR(message, control) };
    }
    0
}
