//! Between a port's buffers and the forwarder's frames.

use arrayvec::ArrayVec;
use memory::quiescent::Section;

use super::{Mesh, Place};
use crate::forward::{Forwarder, Frame, GONE, HOST, MAX_BATCH, Reason, worker_of};
use crate::{Batch, Buffer, Cache, HEADROOM};

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
    through(forwarder, batch, |forwarder, frames| {
        forwarder.forward(section, number, frames, now_millis);
    })
}

/// The same for packets that another worker has handed over.
#[inline]
pub fn take_over(
    forwarder: &mut Forwarder,
    section: &Section<'_>,
    batch: &mut Batch,
    now_millis: u64,
) -> Option<u16> {
    through(forwarder, batch, |forwarder, frames| {
        forwarder.take_over(section, frames, now_millis);
    })
}

#[inline(always)]
fn through(
    forwarder: &mut Forwarder,
    batch: &mut Batch,
    pass: impl FnOnce(&mut Forwarder, &mut [Frame<'_>]),
) -> Option<u16> {
    let mut places: ArrayVec<(u32, u32), MAX_BATCH> = ArrayVec::new();
    {
        let mut frames: ArrayVec<Frame<'_>, MAX_BATCH> = ArrayVec::new();
        for buffer in batch.packets_mut().iter_mut().take(MAX_BATCH) {
            let link = buffer.link().len();
            let len = link + buffer.packet_len();
            frames.push(Frame::new(buffer.as_mut(), HEADROOM - link, len));
        }
        pass(forwarder, &mut frames);
        for frame in &frames {
            places.push((frame.start() as u32, frame.len() as u32));
        }
    }
    let (egress, _) = forwarder.egress().split_at(places.len());
    let one = egress.first().copied().unwrap_or(GONE);
    let are_one = egress.iter().fold(0, |other, port| other | (port ^ one)) == 0;
    let ports = forwarder.ports();
    let buffers = batch.packets_mut().iter_mut().zip(&places);
    if are_one {
        let link_len = ports.link_len(one);
        for (buffer, (start, len)) in buffers.filter(|_| one != GONE) {
            put_back(buffer, *start as usize, *len as usize, link_len);
        }
        return Some(one);
    }
    for ((buffer, (start, len)), &port) in buffers.zip(egress) {
        buffer.set_mark(u32::from(port));
        if port != GONE {
            put_back(buffer, *start as usize, *len as usize, ports.link_len(port));
        }
    }
    None
}

/// A buffer's packet begins at one place: a frame that ended up elsewhere
/// (an untagged packet out of a frame with an unusual header) is moved.
#[inline]
fn put_back(buffer: &mut Buffer, start: usize, len: usize, link_len: usize) {
    let wanted = HEADROOM - link_len;
    if start == wanted && buffer.link().len() == link_len && buffer.frame().len() == len {
        return;
    }
    if start != wanted {
        let bytes = buffer.as_mut();
        let end = (start + len)
            .min(bytes.len())
            .min(bytes.len() - wanted + start);
        bytes.copy_within(start..end, wanted);
    }
    buffer.link_mut(link_len);
    buffer.set_len(len.saturating_sub(link_len));
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
    cache: &mut Cache,
    batch: &mut Batch,
    leaving: &mut Batch,
    ways: &mut Ways<'_>,
    one: Option<u16>,
) {
    if let Some(one) = one {
        deliver(forwarder, cache, batch, one, ways);
    }
    while let Some(first) = batch.packets().first().map(Buffer::mark) {
        batch.move_to(leaving, |buffer| buffer.mark() == first);
        deliver(forwarder, cache, leaving, first as u16, ways);
    }
    cache.clear(batch);
    send_originated(forwarder, cache, leaving, ways);
}

/// Sends the packets that were made, those for one port together.
fn send_originated(
    forwarder: &mut Forwarder,
    cache: &mut Cache,
    leaving: &mut Batch,
    ways: &mut Ways<'_>,
) {
    let mut last = GONE;
    let mut lost = 0;
    while let Some(made) = forwarder.next_originated() {
        let port = made.port;
        let Some(mut buffer) = cache.take() else {
            lost += 1;
            continue;
        };
        if !buffer.set_frame(made.frame.bytes(), made.link_len) {
            cache.give(buffer);
            lost += 1;
            continue;
        }
        if (port != last || leaving.room() == 0) && !leaving.is_empty() {
            deliver(forwarder, cache, leaving, last, ways);
        }
        last = port;
        if let Err(buffer) = leaving.push(buffer) {
            cache.give(buffer);
        }
    }
    if !leaving.is_empty() {
        deliver(forwarder, cache, leaving, last, ways);
    }
    if lost > 0 {
        forwarder.count(Reason::NoRoom, lost);
    }
}

/// Sends a batch by a port; where there is none, it is counted and dropped.
fn deliver(
    forwarder: &mut Forwarder,
    cache: &mut Cache,
    batch: &mut Batch,
    port: u16,
    ways: &mut Ways<'_>,
) {
    if port == GONE {
        cache.clear(batch);
        return;
    }
    if let Some(worker) = worker_of(port) {
        if let Some(mesh) = &mut ways.mesh {
            mesh.hand_over(worker, batch);
        }
        forwarder.count(Reason::HandoffFull, batch.len());
        cache.clear(batch);
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
        Some(place) => match place.port.send(cache, batch) {
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
    cache.clear(batch);
}
