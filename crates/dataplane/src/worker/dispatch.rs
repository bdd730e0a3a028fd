//! From a port through the forwarder to the ports that packets leave by.

use memory::quiescent::Section;

use super::{Mesh, Place};
use crate::forward::{Forwarder, GONE, HOST, MAX_BATCH, Reason, worker_of};
use crate::{Batch, Buffer};

/// Takes a batch through the nodes. Gives the port by which all leave, where
/// that is one: mostly; else each buffer is marked with its own.
#[inline]
pub fn forward(
    forwarder: &mut Forwarder,
    section: &Section<'_>,
    number: u16,
    batch: &mut Batch,
    now_millis: u64,
) -> Option<u16> {
    forwarder.forward(section, number, batch.packets_mut(), now_millis);
    egress(forwarder, batch)
}

/// The same for packets that another worker has handed over.
#[inline]
pub fn take_over(
    forwarder: &mut Forwarder,
    section: &Section<'_>,
    batch: &mut Batch,
    now_millis: u64,
) -> Option<u16> {
    forwarder.take_over(section, batch.packets_mut(), now_millis);
    egress(forwarder, batch)
}

/// By which port all of a batch leave, where that is one; else each buffer is
/// marked with its own.
#[inline(always)]
fn egress(forwarder: &Forwarder, batch: &mut Batch) -> Option<u16> {
    let (egress, _) = forwarder.egress().split_at(batch.len().min(MAX_BATCH));
    let one = egress.first().copied().unwrap_or(GONE);
    if egress.iter().fold(0, |other, port| other | (port ^ one)) == 0 {
        return Some(one);
    }
    for (buffer, &port) in batch.packets_mut().iter_mut().zip(egress) {
        buffer.set_mark(port);
    }
    None
}

/// Where packets leave a worker.
pub(super) struct Ways<'a> {
    pub places: &'a mut [Place],
    /// Other workers, where there are some that packets go to.
    pub mesh: Option<&'a mut Mesh>,
}

/// Sends the packets of a batch, and those that were made, by the ports they
/// leave by: all by this one, or each by the one that it is marked with. The
/// batch is empty behind it.
pub(super) fn send(
    forwarder: &mut Forwarder,
    batch: &mut Batch,
    leaving: &mut Batch,
    ways: &mut Ways<'_>,
    one: Option<u16>,
) {
    if let Some(one) = one {
        deliver(forwarder, batch, one, ways);
    }
    while let Some(first) = batch.packets().first().map(Buffer::mark) {
        batch.move_to(leaving, |buffer| buffer.mark() == first);
        deliver(forwarder, leaving, first, ways);
    }
    forwarder.cache().clear(batch);
    send_originated(forwarder, leaving, ways);
}

/// Sends the packets that were made, those for one port together.
fn send_originated(forwarder: &mut Forwarder, leaving: &mut Batch, ways: &mut Ways<'_>) {
    let mut last = GONE;
    while let Some((port, buffer)) = forwarder.next_originated() {
        if (port != last || leaving.room() == 0) && !leaving.is_empty() {
            deliver(forwarder, leaving, last, ways);
        }
        last = port;
        if let Err(buffer) = leaving.push(buffer) {
            forwarder.cache().give(buffer);
        }
    }
    if !leaving.is_empty() {
        deliver(forwarder, leaving, last, ways);
    }
}

/// Sends a batch by a port; where there is none, it is counted and dropped.
fn deliver(forwarder: &mut Forwarder, batch: &mut Batch, port: u16, ways: &mut Ways<'_>) {
    if port == GONE {
        forwarder.cache().clear(batch);
        return;
    }
    if let Some(worker) = worker_of(port) {
        if let Some(mesh) = &mut ways.mesh {
            mesh.hand_over(worker, batch);
        }
        forwarder.count(Reason::HandoffFull, batch.len());
        forwarder.cache().clear(batch);
        return;
    }
    let places = &mut *ways.places;
    let device = forwarder.ports().device(port);
    let by_number = places.iter().position(|place| Some(place.number) == device);
    let at = by_number.or_else(|| {
        places
            .iter()
            .position(|place| place.takes_all && port != HOST)
    });
    let place = at.and_then(|at| places.get_mut(at));
    match place.filter(|place| place.failure.is_none()) {
        Some(place) => match place.port.send(forwarder.cache(), batch) {
            Ok(_) if batch.is_empty() => {}
            Ok(_) => forwarder.count(Reason::PortFull, batch.len()),
            Err(error) => {
                place.fail(error);
                forwarder.count(Reason::NoPort, batch.len());
            }
        },
        None => {
            let reason = match port {
                HOST => Reason::NoHost,
                _ => Reason::NoPort,
            };
            forwarder.count(reason, batch.len());
        }
    }
    forwarder.cache().clear(batch);
}
