//! Sockets of TCP and UDP of a namespace: four dumps of `sock_diag`. Called
//! by the mirror's worker only.

use netlink::socket_diag::{LISTEN, TCP, UDP, dump_sockets, socket};
use table::{AF_INET, AF_INET6, Sockets};
use tracing::{debug, warn};

use super::now_millis;
use super::sampling::{Meanwhile, ask_meanwhile};
use crate::dump::SEQUENCE;
use crate::error::Error;
use crate::namespace::Namespace;
use crate::socket::Socket;

/// Sockets that are kept: 20 MB, or so.
const MOST: usize = 250_000;

/// What a listing has brought so far.
#[derive(Default)]
struct Listed {
    connections: Vec<table::Socket>,
    listeners: Vec<table::Socket>,
    udp: Vec<table::Socket>,
    left_out: usize,
}

/// All sockets, some 150 bytes and half a microsecond each; beyond 250,000
/// of them the others are left out and counted. `meanwhile` is called now
/// and then, so that events do not pile up.
pub(super) fn read(namespace: &Namespace, meanwhile: &mut Meanwhile<'_>) -> Result<Sockets, Error> {
    let taken_at_millis = now_millis();
    let mut listed = Listed::default();
    for protocol in [TCP, UDP] {
        for family in [AF_INET, AF_INET6] {
            match list(namespace, family, protocol, &mut listed, meanwhile) {
                Ok(()) => {}
                // A kernel without IPv6.
                Err(refused @ Error::Refused { .. }) if family == AF_INET6 => {
                    debug!(protocol, "no sockets of IPv6: {refused}");
                }
                Err(error) => return Err(error),
            }
        }
    }
    if listed.left_out > 0 {
        let left_out = listed.left_out;
        warn!(
            left_out,
            "more sockets than are kept: SNMP's tables lack them"
        );
    }
    let Listed {
        connections,
        listeners,
        udp,
        left_out,
    } = listed;
    let mut sockets = Sockets::new(taken_at_millis, connections, listeners, udp);
    sockets.left_out = left_out;
    Ok(sockets)
}

fn list(
    namespace: &Namespace,
    family: u8,
    protocol: u8,
    listed: &mut Listed,
    meanwhile: &mut Meanwhile<'_>,
) -> Result<(), Error> {
    let to_kernel = Socket::open_diag(namespace)?;
    let mut request = Vec::with_capacity(128);
    dump_sockets(family, protocol, SEQUENCE, &mut request);
    ask_meanwhile(
        &to_kernel,
        &request,
        &mut |message| {
            // What cannot be read is no socket; the others are.
            if let Ok(one) = socket(message.payload) {
                listed.take(one, protocol);
            }
        },
        meanwhile,
    )
}

impl Listed {
    fn take(&mut self, one: table::Socket, protocol: u8) {
        if self.connections.len() + self.listeners.len() + self.udp.len() >= MOST {
            self.left_out += 1;
            return;
        }
        let kind = match protocol {
            UDP => &mut self.udp,
            _ if one.state == LISTEN => &mut self.listeners,
            _ => &mut self.connections,
        };
        kind.push(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use table::{Endpoint, Reach};

    #[test]
    fn at_the_limit_sockets_are_kept_and_beyond_it_counted() {
        let end = Endpoint {
            reach: Reach::Any,
            address: [0, 0, 0, 0].into(),
            zone: 0,
            port: 0,
        };
        let one = table::Socket {
            local: end,
            remote: end,
            inode: 1,
            state: LISTEN,
        };
        let mut listed = Listed::default();
        for _ in 0..MOST {
            listed.take(one, UDP);
        }
        assert_eq!((listed.udp.len(), listed.left_out), (MOST, 0));
        listed.take(one, TCP);
        listed.take(one, UDP);
        assert_eq!((listed.udp.len(), listed.left_out), (MOST, 2));
        assert!(listed.listeners.is_empty());
    }
}
