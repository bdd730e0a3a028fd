//! A dump for a sample, with a look at the events now and then, so that they
//! do not pile up. Called by what the mirror's worker samples with.

use std::ops::ControlFlow;

use netlink::message::Message;
use netlink::request::Dump;

use super::load::MESSAGES_BETWEEN_LOOKS;
use crate::dump::{SEQUENCE, ask_alone};
use crate::error::Error;
use crate::namespace::Namespace;
use crate::socket::Socket;

/// What is called between messages; an error of it ends the dump.
pub(super) type Meanwhile<'m> = dyn FnMut() -> Result<(), Error> + 'm;

/// Hands each message that answers a request to `each`.
pub(super) fn ask_meanwhile(
    socket: &Socket,
    request: &[u8],
    each: &mut dyn FnMut(&Message<'_>),
    meanwhile: &mut Meanwhile<'_>,
) -> Result<(), Error> {
    let (mut seen, mut outcome) = (0_usize, Ok(()));
    let asked = ask_alone(socket, request, &mut |message: &Message<'_>| {
        each(message);
        seen += 1;
        if seen.is_multiple_of(MESSAGES_BETWEEN_LOOKS) {
            outcome = meanwhile();
        }
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    outcome?;
    asked.map(|_| ())
}

/// The same for a table of a namespace. What a kernel without that family
/// refuses to list is empty.
pub(super) fn dump_meanwhile(
    namespace: &Namespace,
    request: &Dump,
    each: &mut dyn FnMut(&Message<'_>),
    meanwhile: &mut Meanwhile<'_>,
) -> Result<(), Error> {
    let socket = Socket::open(namespace)?;
    let mut bytes = Vec::with_capacity(128);
    request.encode(SEQUENCE, &mut bytes);
    match ask_meanwhile(&socket, &bytes, each, meanwhile) {
        Err(Error::Refused { .. }) => Ok(()),
        other => other,
    }
}
