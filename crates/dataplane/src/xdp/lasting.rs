//! A program that stays on a link when the process that attached it is gone,
//! until another takes its place or it is taken off: by rtnetlink
//! (`IFLA_XDP`). Called within `xdp` only.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

use super::sys::{self, Loaded};

/// `RTM_NEWLINK`, `RTM_GETLINK`, `RTM_SETLINK`, `NLMSG_ERROR`.
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const SET_LINK: u16 = 19;
const ERROR: u16 = 2;
/// `NLM_F_REQUEST | NLM_F_ACK`.
const REQUEST: u16 = 1 | 4;
/// `IFLA_XDP` and what stands in it.
const XDP: u16 = 43;
const NESTED: u16 = 1 << 15;
const FD: u16 = 1;
const FLAGS: u16 = 3;
const PROGRAM_ID: u16 = 4;
/// `XDP_FLAGS_UPDATE_IF_NOEXIST`, `XDP_FLAGS_DRV_MODE`.
const ONLY_NEW: u32 = 1;
const IN_DRIVER: u32 = 1 << 2;

/// Bytes of the headers of a message and of what is about a link.
const HEADER: usize = 16;
const LINK: usize = 16;

/// Attaches it. Another of ours has its place taken; that of a stranger is
/// refused (`EBUSY`).
pub fn attach(program: &OwnedFd, device: u32) -> io::Result<()> {
    match set(device, program.as_raw_fd(), IN_DRIVER | ONLY_NEW) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) && ours(device)?.is_some() => {
            set(device, program.as_raw_fd(), IN_DRIVER)
        }
        done => done,
    }
}

/// Takes one of ours off; whether there was one.
pub fn detach(device: u32) -> io::Result<bool> {
    if ours(device)?.is_none() {
        return Ok(false);
    }
    set(device, -1, IN_DRIVER).map(|()| true)
}

/// The program of ours that is on a link.
pub fn ours(device: u32) -> io::Result<Option<Loaded>> {
    let answer = asked(&message(GET_LINK, device, &[]))?;
    let Some(number) = program_of(&answer) else {
        return Ok(None);
    };
    let loaded = Loaded::of(number)?;
    Ok((loaded.name == sys::PROGRAM).then_some(loaded))
}

fn set(device: u32, program: i32, flags: u32) -> io::Result<()> {
    let mut inner = attribute(FD, &program.to_ne_bytes());
    inner.extend(attribute(FLAGS, &flags.to_ne_bytes()));
    asked(&message(SET_LINK, device, &attribute(XDP | NESTED, &inner))).map(drop)
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = (value.len() + 4) as u16;
    let mut bytes = [len.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn message(kind: u16, device: u32, attributes: &[u8]) -> Vec<u8> {
    let len = (HEADER + LINK + attributes.len()) as u32;
    let mut bytes = Vec::with_capacity(len as usize);
    bytes.extend_from_slice(&len.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&REQUEST.to_ne_bytes());
    bytes.extend_from_slice(&[0; 12]);
    bytes.extend_from_slice(&device.to_ne_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(attributes);
    bytes
}

/// What the kernel answers to a request: a link, or nothing; its error.
fn asked(request: &[u8]) -> io::Result<Vec<u8>> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    // NETLINK_ROUTE is protocol 0.
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&socket, request, SendFlags::empty(), &kernel)?;
    let mut link = Vec::new();
    loop {
        let mut bytes = vec![0_u8; 1 << 16];
        let (len, _) = recv(&socket, bytes.as_mut_slice(), RecvFlags::empty())?;
        bytes.truncate(len);
        let kind = bytes.get(4..6).and_then(|kind| kind.try_into().ok());
        let told = bytes.get(HEADER..HEADER + 4);
        let told = told.and_then(|told| told.try_into().ok());
        match (kind.map(u16::from_ne_bytes), told.map(i32::from_ne_bytes)) {
            (Some(ERROR), Some(0)) => return Ok(link),
            (Some(ERROR), Some(error)) => return Err(io::Error::from_raw_os_error(-error)),
            (Some(NEW_LINK), _) => link = bytes.split_off((HEADER + LINK).min(bytes.len())),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// The number of the program among a link's attributes.
fn program_of(attributes: &[u8]) -> Option<u32> {
    let xdp = found(attributes, XDP)?;
    let number = found(xdp, PROGRAM_ID)?;
    Some(u32::from_ne_bytes(*number.first_chunk()?)).filter(|number| *number != 0)
}

fn found(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    while let Some((head, rest)) = attributes.split_first_chunk::<4>() {
        let [l0, l1, k0, k1] = *head;
        let len = usize::from(u16::from_ne_bytes([l0, l1]));
        let kind = u16::from_ne_bytes([k0, k1]) & !NESTED;
        let value = rest.get(..len.checked_sub(4)?)?;
        if kind == wanted {
            return Some(value);
        }
        attributes = attributes.get(len.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_program_is_found_among_attributes() {
        let inner = [
            attribute(2, &[2]),
            attribute(PROGRAM_ID, &7_u32.to_ne_bytes()),
        ]
        .concat();
        let link = [attribute(3, b"eth0\0"), attribute(XDP | NESTED, &inner)].concat();
        assert_eq!(program_of(&link), Some(7));
        assert_eq!(program_of(&attribute(XDP, &attribute(2, &[0]))), None);
        // Lengths that lie.
        assert_eq!(program_of(&[2, 0, 43, 0]), None);
        assert_eq!(program_of(&[200, 0, 43, 0, 1]), None);
    }
}
