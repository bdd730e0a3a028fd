//! The system calls that the ways share: options, addresses, interfaces.
//! Called within `socket` only.
#![allow(
    unsafe_code,
    reason = "socket options and addresses that no safe library passes on (UDP_SEGMENT, PACKET_*, XDP_*)"
)]

use std::ffi::CString;
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::SocketError;

/// A socket that does not wait and is not handed to other programs.
pub fn socket(domain: i32, kind: i32, protocol: i32, what: &str) -> Result<OwnedFd, SocketError> {
    // SAFETY: no pointers; the result is checked.
    let fd = unsafe {
        libc::socket(
            domain,
            kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
            protocol,
        )
    };
    if fd < 0 {
        return Err(SocketError::refused(what, io::Error::last_os_error()));
    }
    // SAFETY: a descriptor that was just made and is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets a socket option of any plain type.
pub fn set_option<T: Copy>(fd: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: the pointer and the length are of one live value; the kernel
    // only reads it.
    let done = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            mem::size_of::<T>() as libc::socklen_t,
        )
    };
    check(done)
}

/// Values whose bytes may be anything: integers and arrays of them.
///
/// # Safety
/// Each value of the bytes of such a type is a value of it, and none of them
/// is padding.
pub unsafe trait Plain: Copy + Default {}

// SAFETY: integers side by side.
unsafe impl Plain for [u32; 9] {}
// SAFETY: integers side by side.
unsafe impl Plain for [u64; 16] {}

/// A socket option as it stands.
pub fn option<T: Plain>(fd: &OwnedFd, level: i32, name: i32) -> io::Result<T> {
    let mut value = T::default();
    let mut len = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, which is the size of
    // the live value behind the pointer; any bytes are a value of it.
    let done = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut len,
        )
    };
    check(done).map(|()| value)
}

/// An error where a call gave less than zero.
pub fn check(done: i32) -> io::Result<()> {
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A socket address as the kernel wants it.
#[derive(Clone, Copy)]
pub struct Address {
    storage: libc::sockaddr_storage,
    len: libc::socklen_t,
}

impl Address {
    /// Of an IP address and port.
    pub fn of(address: &SocketAddr) -> Self {
        match address {
            SocketAddr::V4(v4) => Self::from_plain(&libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(v4.ip().octets()),
                },
                sin_zero: [0; 8],
            }),
            SocketAddr::V6(v6) => Self::from_plain(&libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr {
                    s6_addr: v6.ip().octets(),
                },
                sin6_scope_id: v6.scope_id(),
            }),
        }
    }

    /// Of an interface, for `AF_PACKET`.
    pub fn of_link(index: u32) -> Self {
        Self::from_plain(&libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            // No protocol: the socket sends and receives nothing.
            sll_protocol: 0,
            sll_ifindex: index as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        })
    }

    /// Of a queue of an interface, for `AF_XDP`.
    pub fn of_queue(index: u32, queue: u32, flags: u16) -> Self {
        Self::from_plain(&libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: index,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        })
    }

    fn from_plain<T: Copy>(plain: &T) -> Self {
        const { assert!(mem::size_of::<T>() <= mem::size_of::<libc::sockaddr_storage>()) }
        // SAFETY: all zeros is a value of this structure of integers.
        let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
        // SAFETY: `storage` is at least as large (asserted above) and as
        // aligned as any address; both are live and do not overlap.
        unsafe { (&raw mut storage).cast::<T>().write(*plain) };
        Self {
            storage,
            len: mem::size_of::<T>() as libc::socklen_t,
        }
    }

    /// As the kernel filled it in.
    pub fn from_storage(storage: &libc::sockaddr_storage) -> Self {
        Self {
            storage: *storage,
            len: mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t,
        }
    }

    /// Where it lies, for as long as `self` is borrowed.
    pub fn pointer(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    /// Its bytes.
    pub fn len(&self) -> libc::socklen_t {
        self.len
    }

    /// The IP address and port in it.
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        match i32::from(self.storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: the family says which structure it is; the
                // storage is large and aligned enough for any.
                let v4: libc::sockaddr_in =
                    unsafe { (&raw const self.storage).cast::<libc::sockaddr_in>().read() };
                let ip = v4.sin_addr.s_addr.to_ne_bytes();
                Some((ip, u16::from_be(v4.sin_port)).into())
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let v6: libc::sockaddr_in6 = unsafe {
                    (&raw const self.storage)
                        .cast::<libc::sockaddr_in6>()
                        .read()
                };
                Some((v6.sin6_addr.s6_addr, u16::from_be(v6.sin6_port)).into())
            }
            _ => None,
        }
    }
}

/// Binds a socket.
pub fn bind(fd: &OwnedFd, address: &Address) -> io::Result<()> {
    // SAFETY: the address is live and as long as it says.
    check(unsafe { libc::bind(fd.as_raw_fd(), address.pointer(), address.len()) })
}

/// Connects a socket.
pub fn connect(fd: &OwnedFd, address: &Address) -> io::Result<()> {
    // SAFETY: the address is live and as long as it says.
    check(unsafe { libc::connect(fd.as_raw_fd(), address.pointer(), address.len()) })
}

/// Asks the kernel to send what stands in a ring. What it says when it has
/// taken some of it is no error.
pub fn kick(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no bytes are handed over: null with length zero.
    let sent = unsafe {
        libc::sendto(
            fd.as_raw_fd(),
            std::ptr::null(),
            0,
            libc::MSG_DONTWAIT,
            std::ptr::null(),
            0,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The index of an interface in the calling thread's namespace.
pub fn interface_index(name: &str) -> Result<u32, SocketError> {
    let missing = || SocketError::NoInterface(name.to_owned());
    let text = CString::new(name).map_err(|_| missing())?;
    // SAFETY: a live string that ends with zero.
    match unsafe { libc::if_nametoindex(text.as_ptr()) } {
        0 => Err(missing()),
        index => Ok(index),
    }
}
