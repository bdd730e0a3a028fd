//! What a request is answered (RFC 3416 §4.2, RFC 1157 §4.1), whatever
//! message it came in.

use std::ops::{ControlFlow, Range};

use super::run::{End, MOST_WORK, Patience, SEEK, Scope};
use crate::agent::ANSWER_BUFFER_BYTES;
use crate::ber::{Full, Malformed, Writer};
use crate::counters::{SnmpCounters, count};
use crate::mib::{Mib, Value};
use crate::pdu::{Bindings, ErrorStatus, OpenPdu, Pdu, PduKind};
use crate::view::View;

/// Names that a [`Mib`] is asked for at once.
const GET_BATCH: usize = 32;

/// Names of a request at most: a seek and a value each are what it may cost.
const MOST_NAMES: usize = (MOST_WORK / (2 * SEEK)) as usize;

/// A request that may be answered.
pub(super) struct Request<'a> {
    /// Answered as v1 has it: no exceptions, no `Counter64`.
    pub(super) v1: bool,
    pub(super) pdu: Pdu<'a>,
    pub(super) view: &'a View,
    pub(super) mib: &'a dyn Mib,
    pub(super) patience: Patience,
}

/// Why a request is answered by an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The answer does not fit.
    TooBig,
    /// Something is wrong with the binding of this place, from 0 on.
    At(ErrorStatus, usize),
}

impl From<Full> for Failure {
    fn from(_: Full) -> Self {
        Self::TooBig
    }
}

/// Names of a request, one behind the other.
#[derive(Default)]
pub(super) struct Names {
    sub_ids: Vec<u32>,
    ends: Vec<usize>,
}

impl Names {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, at: usize) -> &[u32] {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.sub_ids[begin..self.ends[at]]
    }
}

/// Working memory of an agent: kept from request to request for its room.
#[derive(Default)]
pub(super) struct Work {
    pub(super) names: Names,
    /// Bindings that are not yet in the order of the answer.
    pub(super) scratch: Vec<u8>,
    /// Where bindings end in `scratch`.
    pub(super) ends: Vec<usize>,
    /// What is repeated by a bulk request.
    pub(super) repeaters: Vec<super::bulk::Repeater>,
}

impl Work {
    /// Takes the names of a request's bindings, in place of those of the
    /// request before.
    pub(super) fn read_names(&mut self, bindings: Bindings<'_>) -> Result<(), Malformed> {
        let names = &mut self.names;
        names.sub_ids.clear();
        names.ends.clear();
        bindings.for_each(|name, _| {
            names.sub_ids.extend_from_slice(name);
            names.ends.push(names.sub_ids.len());
        })
    }

    /// Writes the answer to a request whose names were read, or the error
    /// that says why there is none. Errors if not even that fits.
    pub(super) fn respond(
        &mut self,
        request: &Request<'_>,
        counters: &mut SnmpCounters,
        out: &mut Writer<'_>,
    ) -> Result<(), Full> {
        match request.pdu.kind {
            PduKind::Get => count(&mut counters.in_get_requests),
            PduKind::Set => count(&mut counters.in_set_requests),
            _ => count(&mut counters.in_get_nexts),
        }
        let begin = out.len();
        match self.answer(request, out) {
            Ok(bindings) => {
                let total = &mut counters.in_total_req_vars;
                *total = total.wrapping_add(bindings as u32);
            }
            Err(failure) => {
                out.truncate(begin);
                self.refuse(request, failure, counters, out)?;
            }
        }
        count(&mut counters.out_get_responses);
        Ok(())
    }

    /// Writes a response without error; the return counts its bindings.
    fn answer(&mut self, request: &Request<'_>, out: &mut Writer<'_>) -> Result<usize, Failure> {
        if self.names.len() > MOST_NAMES && request.pdu.kind != PduKind::Set {
            return Err(Failure::TooBig);
        }
        let id = request.pdu.request_id;
        let open = OpenPdu::begin(out, PduKind::Response, id, 0, 0)?;
        let bindings = match request.pdu.kind {
            PduKind::Get => self.get(request, out)?,
            PduKind::GetBulk => self.bulk(request, out)?,
            PduKind::Set => self.set(request)?,
            _ => self.next(request, 0..self.names.len(), out)?,
        };
        open.end(out);
        Ok(bindings)
    }

    /// Writes a response that says what is wrong, as v1 or v2 names it
    /// (RFC 3584 §4.4).
    fn refuse(
        &self,
        request: &Request<'_>,
        failure: Failure,
        counters: &mut SnmpCounters,
        out: &mut Writer<'_>,
    ) -> Result<(), Full> {
        let (status, index) = match failure {
            Failure::TooBig => (ErrorStatus::TooBig, 0),
            Failure::At(status, at) => (status, at + 1),
        };
        let status = match status {
            ErrorStatus::NoAccess | ErrorStatus::NotWritable if request.v1 => {
                ErrorStatus::NoSuchName
            }
            status => status,
        };
        match status {
            ErrorStatus::TooBig => count(&mut counters.out_too_bigs),
            ErrorStatus::NoSuchName => count(&mut counters.out_no_such_names),
            ErrorStatus::GenErr => count(&mut counters.out_gen_errs),
            _ => {}
        }
        // v1 wants the names back in each case, v2 not when it is too much.
        let echoed = request.v1 || status != ErrorStatus::TooBig;
        error(&request.pdu, status, index, echoed, out)
    }

    /// The values of all names; a name beyond the view is of no object.
    fn get(&mut self, request: &Request<'_>, out: &mut Writer<'_>) -> Result<usize, Failure> {
        self.make_scratch();
        let total = self.names.len();
        // A seek each, which are not too many.
        request.patience.take(SEEK * total as u32);
        for first in (0..total).step_by(GET_BATCH) {
            let places = first..total.min(first + GET_BATCH);
            self.get_batch(request, places, out)?;
        }
        Ok(total)
    }

    fn get_batch(
        &mut self,
        request: &Request<'_>,
        places: Range<usize>,
        out: &mut Writer<'_>,
    ) -> Result<(), Failure> {
        let names = &self.names;
        let mut asked: [&[u32]; GET_BATCH] = [&[]; GET_BATCH];
        let mut asked_at = [0; GET_BATCH];
        let mut count = 0;
        for at in places.clone() {
            if request.view.contains(names.get(at)) {
                asked[count] = names.get(at);
                asked_at[count] = at - places.start;
                count += 1;
            }
        }
        // Values come in any order and are put into theirs afterwards.
        let mut found: [Option<(usize, usize)>; GET_BATCH] = [None; GET_BATCH];
        let mut hidden = [false; GET_BATCH];
        let mut full = false;
        let mut scratch = Writer::scratch(&mut self.scratch);
        request.mib.get(&asked[..count], &mut |asked_place, value| {
            let Some(name) = asked[..count].get(asked_place) else {
                return;
            };
            let place = asked_at[asked_place];
            if found[place].is_some() {
                return;
            }
            let begin = scratch.len();
            full |= scratch.binding(name, &value).is_err();
            found[place] = Some((begin, scratch.len()));
            hidden[place] = value.is_exception() || matches!(value, Value::Counter64(_));
        });
        if full {
            return Err(Failure::TooBig);
        }
        if request.mib.fell_short() {
            let untold = found.iter().take(places.len()).position(Option::is_none);
            let at = places.start + untold.unwrap_or(0);
            return Err(Failure::At(ErrorStatus::GenErr, at));
        }
        for at in places.clone() {
            let place = at - places.start;
            let found = found[place];
            if request.v1 && (hidden[place] || found.is_none()) {
                return Err(Failure::At(ErrorStatus::NoSuchName, at));
            }
            match found {
                Some((begin, end)) => out.bytes(&scratch.written()[begin..end])?,
                None => out.binding(names.get(at), &Value::NoSuchObject)?,
            }
        }
        Ok(())
    }

    /// The successors of the names at these places; the return counts them.
    pub(super) fn next(
        &self,
        request: &Request<'_>,
        places: Range<usize>,
        out: &mut Writer<'_>,
    ) -> Result<usize, Failure> {
        let many = places.len();
        let mut untold = None;
        request.mib.expect(1);
        for at in places {
            let name = self.names.get(at);
            let mut written = Ok(());
            let end = request.scope().run(name, |name, value| {
                written = out.binding(name, &value);
                ControlFlow::Break(())
            });
            match end {
                End::Stopped => written?,
                End::OfView if request.v1 => {
                    return Err(Failure::At(ErrorStatus::NoSuchName, at));
                }
                End::OfView => out.binding(name, &Value::EndOfMibView)?,
                // The others may be untold as well, and are asked for at
                // once.
                End::GaveUp => untold = untold.or(Some(at)),
            }
        }
        match untold {
            Some(at) => Err(Failure::At(ErrorStatus::GenErr, at)),
            None => Ok(many),
        }
    }

    /// Nothing can be written (RFC 3416 §4.2.5): what is beyond the view is
    /// not accessible, all else not writable.
    fn set(&self, request: &Request<'_>) -> Result<usize, Failure> {
        if self.names.len() == 0 {
            return Ok(0);
        }
        let status = if request.view.contains(self.names.get(0)) {
            ErrorStatus::NotWritable
        } else {
            ErrorStatus::NoAccess
        };
        Err(Failure::At(status, 0))
    }

    pub(super) fn make_scratch(&mut self) {
        // Equal shares of an answer, a first row that may exceed them, and
        // the binding that is too much.
        self.scratch.resize(3 * ANSWER_BUFFER_BYTES, 0);
    }
}

impl Request<'_> {
    pub(super) fn scope(&self) -> Scope<'_> {
        Scope {
            mib: self.mib,
            view: self.view,
            v1: self.v1,
            patience: &self.patience,
        }
    }
}

/// Writes a response that says what is wrong, with the request's bindings as
/// they came if they are wanted back.
pub(super) fn error(
    pdu: &Pdu<'_>,
    status: ErrorStatus,
    index: usize,
    echoed: bool,
    out: &mut Writer<'_>,
) -> Result<(), Full> {
    let index = i32::try_from(index).unwrap_or(i32::MAX);
    let open = OpenPdu::begin(out, PduKind::Response, pdu.request_id, status as i32, index)?;
    if echoed {
        out.bytes(pdu.bindings.0.rest())?;
    }
    open.end(out);
    Ok(())
}
