//! What calls by SIP are given: alias ends for those that a message names,
//! the same ones for what is named again. For the engine, which hands over
//! the datagrams of flows with SIP's port.

use std::net::Ipv4Addr;

use arrayvec::ArrayVec;
use packet::protocol;

use super::bounded::Bounded;
use super::datagram::Datagram;
use super::edit::{Edit, MAX_EDITS};
use super::sip::{self, Place, What};
use super::{ControlKey, Give, LEAST_PORT, Refusal, Wanted};

/// How long what a call names is waited for: a phone may ring for three
/// minutes (RFC 3261 §16.6, timer C).
const RINGING_MILLIS: u64 = 180_000;
/// How long an end keeps its alias that is not named again.
const KEPT_MILLIS: u64 = 600_000;

/// An end inside that a message has named, and what it was given.
#[derive(Debug, Clone, Copy)]
struct Known {
    alias_port: u16,
    named_millis: u64,
}

impl Known {
    fn is_old(&self, now_millis: u64) -> bool {
        now_millis.saturating_sub(self.named_millis) >= KEPT_MILLIS
    }
}

/// What is remembered of calls.
#[derive(Debug, Default)]
pub struct Calling {
    ends: Bounded<(Ipv4Addr, u16), Known>,
}

/// What is being written, and for whom.
struct Writing<'a, 'b> {
    key: &'a ControlKey,
    alias: (Ipv4Addr, u16),
    give: Give<'b>,
    now_millis: u64,
}

impl Calling {
    /// Nothing remembered yet, so many ends at most.
    pub fn new(limit: usize) -> Self {
        Self {
            ends: Bounded::new(limit),
        }
    }

    /// A datagram that goes out, not translated yet, of a flow whose alias
    /// end is `alias`, in a buffer that reaches to the end of its room.
    /// O(bytes of it).
    pub fn outgoing(
        &mut self,
        key: &ControlKey,
        alias: (Ipv4Addr, u16),
        bytes: &mut [u8],
        give: Give<'_>,
        now_millis: u64,
    ) -> Result<(), Refusal> {
        let Some(datagram) = Datagram::read(bytes) else {
            return Ok(());
        };
        let places = sip::read(datagram.data(bytes), key.inside, true)?;
        let mut writing = Writing {
            key,
            alias,
            give,
            now_millis,
        };
        let mut edits: ArrayVec<Edit, MAX_EDITS> = ArrayVec::new();
        for place in &places {
            if let Some(text) = self.text(place, &mut writing)? {
                edits.push(Edit {
                    start: place.start,
                    end: place.end,
                    text,
                });
            }
        }
        settle_length(&places, &mut edits);
        if edits.is_empty() {
            return Ok(());
        }
        datagram.rewrite(bytes, &edits)
    }

    /// What is written at a place; `None`: it stays, or is not known yet.
    fn text(
        &mut self,
        place: &Place,
        writing: &mut Writing<'_, '_>,
    ) -> Result<Option<super::Text>, Refusal> {
        let (address, own_port) = writing.alias;
        let port = |port: u16| sip::number_text(usize::from(port));
        Ok(match place.what {
            What::End(named) => {
                let wanted = named.unwrap_or(sip::PORT);
                let alias_port = if wanted == writing.key.inside_port {
                    Some(own_port)
                } else {
                    self.given(wanted, 1, false, writing)?
                };
                let end = alias_port.map(|port| (address, port));
                end.map(|end| sip::end_text(end, named.is_some()))
            }
            What::Address => Some(sip::address_text(address)),
            What::Media(wanted, ports) => self.given(wanted, ports, true, writing)?.map(port),
            // What is told about media is behind them, unless it says else.
            What::Control(wanted, of) if of.checked_add(1) == Some(wanted) => {
                let media = self.given(of, 2, true, writing)?;
                media.map(|first| port(first.wrapping_add(1)))
            }
            What::Control(wanted, _) => self.given(wanted, 1, true, writing)?.map(port),
            What::Length(_) => None,
        })
    }

    /// The alias port of an inside port; `None`: it is not opened.
    fn given(
        &mut self,
        inside_port: u16,
        ports: u16,
        from_anybody: bool,
        writing: &mut Writing<'_, '_>,
    ) -> Result<Option<u16>, Refusal> {
        if inside_port < LEAST_PORT {
            return Ok(None);
        }
        let (end, now) = ((writing.key.inside, inside_port), writing.now_millis);
        let known = self.ends.get(&end).filter(|known| !known.is_old(now));
        let wanted = Wanted {
            inside: writing.key.inside,
            protocol: protocol::UDP,
            inside_port,
            ports,
            from_anybody,
            again: known.map(|known| known.alias_port),
            wait_millis: RINGING_MILLIS,
        };
        let (_, alias_port) = (writing.give)(wanted).ok_or(Refusal::NoPort)?;
        let known = Known {
            alias_port,
            named_millis: now,
        };
        // Without room it is given another port the next time.
        self.ends.insert(end, known, |known| known.is_old(now));
        Ok(Some(alias_port))
    }
}

/// How long the body is now, where it says so.
fn settle_length(places: &[Place], edits: &mut ArrayVec<Edit, MAX_EDITS>) {
    let length = places.iter().find_map(|place| match place.what {
        What::Length(length) => Some((place, length)),
        _ => None,
    });
    let Some((place, length)) = length else {
        return;
    };
    // Ends stand in the headers only, all else in the body.
    let is_of_body = |edit: &Edit| {
        let of = places.iter().find(|place| place.start == edit.start);
        of.is_some_and(|place| !matches!(place.what, What::End(_)))
    };
    let grown = edits.iter().filter(|edit| is_of_body(edit));
    let grown: i64 = grown
        .map(|edit| edit.text.len() as i64 - (edit.end - edit.start) as i64)
        .sum();
    if grown == 0 || edits.is_full() {
        return;
    }
    let text = sip::number_text(length.saturating_add_signed(grown as isize));
    let at = edits.partition_point(|edit| edit.start < place.start);
    edits.insert(
        at,
        Edit {
            start: place.start,
            end: place.end,
            text,
        },
    );
}

/// A datagram that comes in, not translated yet: where it names the alias end
/// of its flow, the inside's own is written. O(bytes of it).
pub fn incoming(key: &ControlKey, alias: (Ipv4Addr, u16), bytes: &mut [u8]) -> Result<(), Refusal> {
    let Some(datagram) = Datagram::read(bytes) else {
        return Ok(());
    };
    let places = sip::read(datagram.data(bytes), alias.0, false)?;
    let mut edits: ArrayVec<Edit, MAX_EDITS> = ArrayVec::new();
    for place in &places {
        let What::End(port) = place.what else {
            continue;
        };
        if port.unwrap_or(sip::PORT) == alias.1 {
            edits.push(Edit {
                start: place.start,
                end: place.end,
                text: sip::end_text((key.inside, key.inside_port), port.is_some()),
            });
        }
    }
    if edits.is_empty() {
        return Ok(());
    }
    datagram.rewrite(bytes, &edits)
}
