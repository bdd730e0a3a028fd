//! What workers ask for, carried to the kernel: that a neighbour be resolved,
//! or be known to be in use.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use dataplane::forward::Request;
use linux::Namespace;
use linux::socket::Socket;
use netlink::decode::Operation;
use netlink::encode::{self, Request as Message};
use netlink::message::flag as message_flag;
use table::row::neighbour::{flag, state};
use table::{LinkLayerAddress, Neighbour};

/// Requests that wait to be carried at most.
const RING: usize = 1_024;

/// The ends of the ring: the workers', the carrier's.
pub fn rings() -> (SyncSender<Request>, Receiver<Request>) {
    sync_channel(RING)
}

/// Carries requests to the kernel of a namespace.
pub struct Carrier {
    socket: Socket,
    message: Vec<u8>,
}

impl Carrier {
    /// One for a namespace. Making neighbours takes `CAP_NET_ADMIN`.
    pub fn open(namespace: &Namespace) -> Result<Self, linux::Error> {
        Ok(Self {
            socket: Socket::open(namespace)?,
            message: Vec::new(),
        })
    }

    /// Has the kernel use the neighbour (`ip neigh add … use`): it asks for
    /// the address if it does not know it, and again if it is stale. False
    /// where the request could not be sent; the packet that caused it will
    /// cause another one.
    pub fn carry(&mut self, request: &Request) -> bool {
        let row = Neighbour {
            link: request.link,
            address: request.key.ip(),
            proxy: false,
            lladdr: LinkLayerAddress::NONE,
            state: state::NONE,
            flags: flag::USE,
            protocol: 0,
            kind: 0,
        };
        let message = Message {
            operation: Operation::New,
            flags: message_flag::CREATE,
            sequence: 0,
            now_millis: 0,
        };
        self.message.clear();
        encode::neighbour(&mut self.message, &message, &row).is_ok()
            && self.socket.send(&self.message).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dataplane::neighbour::Key;
    use lab::{Netns, skip, wait_until};

    use super::*;

    #[test]
    fn the_kernel_resolves_what_is_asked_for() {
        let Some((here, there)) = skip::unless(Netns::new("ask").and_then(|here| {
            let there = Netns::new("answer")?;
            Ok((here, there))
        })) else {
            return;
        };
        let peer = format!(
            "link add em1 type veth peer name em1 netns {}\n",
            there.name()
        );
        here.ip_batch(&peer).unwrap();
        for (netns, own) in [(&here, 1), (&there, 2)] {
            let up = format!(
                "addr add 10.3.0.{own}/24 dev em1\naddr add 2001:db8::{own}/64 dev em1 nodad\n\
                 link set em1 up\n"
            );
            netns.ip_batch(&up).unwrap();
        }
        let namespace = Namespace::open(here.name()).unwrap();
        let mut carrier = Carrier::open(&namespace).unwrap();
        let link = here.inside(|| nix::net::if_::if_nametoindex("em1"));
        let link = link.unwrap().unwrap();
        for (key, address) in [
            (Key::v4(0, 0x0a03_0002), "10.3.0.2"),
            (Key::v6(0, 0x2001_0db8 << 96 | 2), "2001:db8::2"),
        ] {
            let request = Request { link, key };
            // The first may come before the carrier is up on both sides.
            wait_until(
                Duration::from_secs(60),
                "the neighbour is reachable",
                || {
                    assert!(carrier.carry(&request));
                    let rows = here.ip(&["neigh", "show", address]).unwrap();
                    rows.contains("lladdr").then_some(())
                },
            )
            .unwrap();
        }
    }
}
