//! TUN and TAP devices that stay: the one kind of link that `RTM_NEWLINK`
//! does not make. They are made through `/dev/net/tun` (`TUNSETIFF`,
//! `TUNSETPERSIST`), one after the other; `RTM_DELLINK` deletes them like
//! any link. For whoever makes links.

use std::io;

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use tun_rs::{DeviceBuilder, Layer};

use crate::error::Error;
use crate::namespace::Namespace;

/// Bytes of a link's name at most (`IFNAMSIZ` less its NUL).
const MAX_NAME: usize = 15;

/// What a device carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TunKind {
    /// IP packets: `tun`.
    Tun,
    /// Ethernet frames: `tap`.
    Tap,
}

/// Makes devices with these names, down and persistent; `made` hears of
/// each by its place. A failure does not stop the rest. About four system
/// calls each.
pub fn new_tuns<'a>(
    namespace: &Namespace,
    kind: TunKind,
    names: impl IntoIterator<Item = &'a str> + Send,
    made: &mut (dyn FnMut(usize, io::Result<()>) + Send),
) -> Result<(), Error> {
    namespace.run(|| {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)
            .map_err(Error::errno("open a socket to look up links"))?;
        for (place, name) in names.into_iter().enumerate() {
            // Without this the device of that name would be joined.
            let result = if name.is_empty() || name.len() > MAX_NAME {
                Err(io::Error::other(format!(
                    "a link's name has 1 to {MAX_NAME} octets"
                )))
            } else if name_to_index(&socket, name).is_ok() {
                Err(io::ErrorKind::AlreadyExists.into())
            } else {
                make(kind, name)
            };
            made(place, result);
        }
        Ok(())
    })?
}

fn make(kind: TunKind, name: &str) -> io::Result<()> {
    let layer = match kind {
        TunKind::Tun => Layer::L3,
        TunKind::Tap => Layer::L2,
    };
    DeviceBuilder::new()
        .name(name)
        .layer(layer)
        .enable(false)
        .build_sync()?
        .persist()
}
