//! Which user of this host a client over TCP is.
//!
//! All programs of a host come from the same address. So that one user
//! cannot take what another needs, the kernel is asked whose socket is at
//! the other end (`NETLINK_SOCK_DIAG`), once a connection; it takes some
//! microseconds. Where it does not tell, all of the address are one.
//! For `serve`; places, rates and memory are counted by what it gives.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{connect, recv, send, socket_with};

use crate::source::Source;

/// A question about one socket: `nlmsghdr`, `inet_diag_req_v2`.
const QUESTION_BYTES: usize = 72;
/// `SOCK_DIAG_BY_FAMILY`, the type of question and answer.
const BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
/// `NLMSG_ERROR`, with `-ENOENT`: the socket is gone, its connection was
/// reset.
const ERROR: u16 = 2;
const NO_SUCH: u32 = -2_i32 as u32;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
/// `TCP_ESTABLISHED`. One that was closed has no owner any more, and is told
/// as root's.
const ESTABLISHED: u8 = 1;
/// `TCP_FIN_WAIT1`, `TCP_FIN_WAIT2`, `TCP_TIME_WAIT`, `TCP_CLOSE_WAIT`,
/// `TCP_LAST_ACK`, `TCP_CLOSING`.
const CLOSING: [u8; 6] = [4, 5, 6, 8, 9, 11];

/// Asks whose sockets are.
#[derive(Debug)]
pub struct Users {
    /// `None`: this system does not tell.
    kernel: Option<OwnedFd>,
}

impl Users {
    /// From now on.
    pub fn new() -> Self {
        let kernel = open();
        if let Err(error) = &kernel {
            tracing::warn!("users of this host share their places in HTTP: {error}");
        }
        let kernel = kernel.ok();
        Self { kernel }
    }

    /// Whose client it is that came from an address to one of ours; `None`:
    /// nobody's any more, its program has closed it and takes no answer. One
    /// that only sends no more is somebody's.
    pub fn source(&self, from: SocketAddr, to: Option<SocketAddr>) -> Option<Source> {
        let of_host = from.ip().is_loopback() || to.is_some_and(|to| to.ip() == from.ip());
        let known = (self.kernel.as_ref().zip(to)).filter(|_| of_host);
        match known.map(|(kernel, to)| ask(kernel, from, to)) {
            Some(Ok(Owner::User(user))) => Some(Source::User(user)),
            Some(Ok(Owner::Nobody)) => None,
            _ => Some(Source::of(from.ip())),
        }
    }
}

/// Whose a socket of this host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    User(u32),
    /// It was closed, and is there until its last words are taken.
    Nobody,
    Unknown,
}

fn open() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let kind = SocketType::RAW;
    let socket = socket_with(AddressFamily::NETLINK, kind, flags, Some(SOCK_DIAG))?;
    // Connected to the kernel it takes nothing that others send.
    connect(&socket, &SocketAddrNetlink::new(0, 0))?;
    Ok(socket)
}

/// The kernel answers before the question is sent.
fn ask(kernel: &OwnedFd, from: SocketAddr, to: SocketAddr) -> io::Result<Owner> {
    send(kernel, &question(from, to), SendFlags::DONTWAIT)?;
    let mut answer = [0; 1024];
    let (len, _) = recv(kernel, &mut answer, RecvFlags::DONTWAIT)?;
    Ok(owner(answer.get(..len).unwrap_or_default()))
}

fn question(from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let mut message = Vec::with_capacity(QUESTION_BYTES);
    message.extend_from_slice(&(QUESTION_BYTES as u32).to_ne_bytes());
    message.extend_from_slice(&BY_FAMILY.to_ne_bytes());
    message.extend_from_slice(&REQUEST.to_ne_bytes());
    message.extend_from_slice(&[0; 8]);
    let family = if from.is_ipv4() { AF_INET } else { AF_INET6 };
    message.extend_from_slice(&[family, IPPROTO_TCP, 0, 0]);
    message.extend_from_slice(&u32::MAX.to_ne_bytes());
    message.extend_from_slice(&from.port().to_be_bytes());
    message.extend_from_slice(&to.port().to_be_bytes());
    for address in [from.ip(), to.ip()] {
        match address {
            IpAddr::V4(v4) => {
                message.extend_from_slice(&v4.octets());
                message.extend_from_slice(&[0; 12]);
            }
            IpAddr::V6(v6) => message.extend_from_slice(&v6.octets()),
        }
    }
    // No link, and whatever cookie (`INET_DIAG_NOCOOKIE`).
    message.extend_from_slice(&[0, 0, 0, 0]);
    message.extend_from_slice(&[0xff; 8]);
    message
}

/// The owner of the socket that an answer is about (`inet_diag_msg`).
fn owner(answer: &[u8]) -> Owner {
    read_owner(answer).unwrap_or(Owner::Unknown)
}

fn read_owner(answer: &[u8]) -> Option<Owner> {
    let word = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    if kind == ERROR && word(16)? == NO_SUCH {
        return Some(Owner::Nobody);
    }
    let (state, uid, inode) = (*answer.get(17)?, word(80)?, word(84)?);
    let is_closing = CLOSING.contains(&state);
    match inode {
        _ if kind != BY_FAMILY => None,
        0 if is_closing => Some(Owner::Nobody),
        0 => None,
        // One that is closing only sends no more.
        _ if is_closing || state == ESTABLISHED => Some(Owner::User(uid)),
        // Of its address there is another socket: one that listens.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_client_of_this_host_is_its_user_s_until_it_is_closed() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, from) = listener.accept().unwrap();
            let to = accepted.local_addr().ok();
            let users = Users::new();
            if users.kernel.is_none() {
                lab::skip::skip("this system does not tell whose sockets are");
                return;
            }
            let own = rustix::process::getuid().as_raw();
            let whose = || users.source(from, to);
            assert_eq!(whose(), Some(Source::User(own)), "{address}");
            // It sends no more, and takes an answer.
            client.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(whose(), Some(Source::User(own)), "{address}");
            drop(client);
            assert_eq!(whose(), None, "{address}");
            // One that has not taken all resets the connection.
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut accepted, from) = listener.accept().unwrap();
            std::io::Write::write_all(&mut accepted, b"untaken").unwrap();
            client.peek(&mut [0]).unwrap();
            drop(client);
            assert_eq!(users.source(from, to), None, "{address}");
        }
    }

    #[test]
    fn an_answer_that_is_cut_or_an_error_names_nobody() {
        let mut answer = vec![0; 88];
        answer[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        answer[17] = ESTABLISHED;
        answer[80..84].copy_from_slice(&7_u32.to_ne_bytes());
        assert_eq!(owner(&answer), Owner::Unknown, "nobody holds it");
        answer[84] = 1;
        assert_eq!(owner(&answer), Owner::User(7));
        assert_eq!(owner(&answer[..87]), Owner::Unknown);
        for (state, inode, whose) in [
            (5, 1, Owner::User(7)),
            (5, 0, Owner::Nobody),
            (6, 0, Owner::Nobody),
            (10, 1, Owner::Unknown),
            (10, 0, Owner::Unknown),
            (2, 0, Owner::Unknown),
        ] {
            (answer[17], answer[84]) = (state, inode);
            assert_eq!(owner(&answer), whose, "{state} {inode}");
        }
        (answer[17], answer[84]) = (ESTABLISHED, 1);
        answer[4] = 2;
        assert_eq!(owner(&answer), Owner::Unknown);
        answer[16..20].copy_from_slice(&NO_SUCH.to_ne_bytes());
        assert_eq!(owner(&answer), Owner::Nobody);
    }
}
