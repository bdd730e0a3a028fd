//! A program that stays on a link when the process that attached it is gone,
//! until another takes its place or it is taken off: by rtnetlink
//! (`IFLA_XDP`). Called within `xdp` only.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use netlink::attribute::{NESTED, value};
use netlink::message::{flag, kind};

use super::sys::{self, Loaded};
use crate::rtnetlink::asked;

/// `IFLA_XDP` and what stands in it.
const XDP: u16 = 43;
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
    let link = asked(&message(kind::GETLINK, device, &[]))?;
    let attributes = link.get(LINK..).unwrap_or_default();
    let Some(number) = program_of(attributes) else {
        return Ok(None);
    };
    let loaded = Loaded::of(number)?;
    Ok((loaded.name == sys::PROGRAM).then_some(loaded))
}

fn set(device: u32, program: i32, flags: u32) -> io::Result<()> {
    let mut inner = attribute(FD, &program.to_ne_bytes());
    inner.extend(attribute(FLAGS, &flags.to_ne_bytes()));
    asked(&message(
        kind::SETLINK,
        device,
        &attribute(XDP | NESTED, &inner),
    ))
    .map(drop)
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
    bytes.extend_from_slice(&(flag::REQUEST | flag::ACK).to_ne_bytes());
    bytes.extend_from_slice(&[0; 12]);
    bytes.extend_from_slice(&device.to_ne_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(attributes);
    bytes
}

/// The number of the program among a link's attributes.
fn program_of(attributes: &[u8]) -> Option<u32> {
    let xdp = value(attributes, XDP)?;
    let number = value(xdp, PROGRAM_ID)?;
    Some(u32::from_ne_bytes(*number.first_chunk()?)).filter(|number| *number != 0)
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
