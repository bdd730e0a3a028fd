//! Protocol data units (RFC 3416 §3; RFC 1157 §4.1.6 for the trap of v1):
//! what is asked and answered, apart from who asks.

use crate::ber::{Full, Malformed, Mark, Reader, Writer};
use crate::mib::Value;
use crate::oid::Name;

/// What a PDU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PduKind {
    /// `GetRequest-PDU`.
    Get,
    /// `GetNextRequest-PDU`.
    GetNext,
    /// `Response-PDU`, `GetResponse-PDU` of v1.
    Response,
    /// `SetRequest-PDU`.
    Set,
    /// `Trap-PDU` of v1, of another shape than all others.
    TrapV1,
    /// `GetBulkRequest-PDU`.
    GetBulk,
    /// `InformRequest-PDU`.
    Inform,
    /// `SNMPv2-Trap-PDU`.
    Trap,
    /// `Report-PDU`.
    Report,
}

/// Kinds in the order of their tags, from 0xa0 on.
const KINDS: [PduKind; 9] = [
    PduKind::Get,
    PduKind::GetNext,
    PduKind::Response,
    PduKind::Set,
    PduKind::TrapV1,
    PduKind::GetBulk,
    PduKind::Inform,
    PduKind::Trap,
    PduKind::Report,
];
const FIRST_TAG: u8 = 0xa0;

impl PduKind {
    /// The kind with this tag.
    pub fn from_tag(tag: u8) -> Option<Self> {
        let at = tag.checked_sub(FIRST_TAG)?;
        KINDS.get(usize::from(at)).copied()
    }

    /// The tag of this kind.
    pub fn tag(self) -> u8 {
        FIRST_TAG + self as u8
    }

    /// Whether an answer is due to it: the confirmed class (RFC 3411 §2.8).
    pub fn is_confirmed(self) -> bool {
        matches!(
            self,
            Self::Get | Self::GetNext | Self::GetBulk | Self::Set | Self::Inform
        )
    }
}

/// `error-status` (RFC 3416 §3), as far as an agent that cannot be written
/// to says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ErrorStatus {
    /// All went well.
    NoError = 0,
    /// The answer does not fit into a message.
    TooBig = 1,
    /// v1: no such name, or none behind it.
    NoSuchName = 2,
    /// Something else went wrong.
    GenErr = 5,
    /// The name is beyond the asker's view for writing.
    NoAccess = 6,
    /// The asker may do nothing of the kind.
    AuthorizationError = 16,
    /// The object cannot be written.
    NotWritable = 17,
}

/// A PDU of any kind but the trap of v1, borrowed from its message.
#[derive(Clone, Copy, Debug)]
pub struct Pdu<'a> {
    /// What it is.
    pub kind: PduKind,
    /// `request-id`, any number.
    pub request_id: i32,
    /// `error-status`; `non-repeaters` of a bulk request.
    pub error_status: i32,
    /// `error-index`; `max-repetitions` of a bulk request.
    pub error_index: i32,
    /// The variable bindings.
    pub bindings: Bindings<'a>,
}

impl<'a> Pdu<'a> {
    /// Takes a PDU off a reader. Its bindings are looked at when they are
    /// iterated over. Errors also on a trap of v1.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (found, content) = reader.element()?;
        let kind = PduKind::from_tag(found).filter(|kind| *kind != PduKind::TrapV1);
        let kind = kind.ok_or(Malformed::Value(found))?;
        let mut content = Reader::new(content);
        let pdu = Self {
            kind,
            request_id: content.integer()?,
            error_status: content.integer()?,
            error_index: content.integer()?,
            bindings: Bindings(content.sequence()?),
        };
        content.finish()?;
        Ok(pdu)
    }
}

/// Variable bindings of a message, not yet read.
#[derive(Clone, Copy, Debug)]
pub struct Bindings<'a>(pub(crate) Reader<'a>);

impl Bindings<'_> {
    /// Calls `sink` with the name and the value of each. Errors at the first
    /// that is malformed; `sink` saw those before it.
    pub fn for_each(self, mut sink: impl FnMut(&[u32], Value<'_>)) -> Result<(), Malformed> {
        let mut rest = self.0;
        let mut name = Name::new();
        let mut object = Name::new();
        while !rest.rest().is_empty() {
            let mut binding = rest.sequence()?;
            binding.name(&mut name)?;
            let value = binding.value(&mut object)?;
            binding.finish()?;
            sink(&name, value);
        }
        Ok(())
    }
}

/// A PDU that is being written.
#[derive(Debug)]
#[must_use = "an open PDU has no length"]
pub struct OpenPdu {
    pdu: Mark,
    bindings: Mark,
}

impl OpenPdu {
    /// Writes all before the bindings, which follow.
    pub fn begin(
        out: &mut Writer<'_>,
        kind: PduKind,
        request_id: i32,
        error_status: i32,
        error_index: i32,
    ) -> Result<Self, Full> {
        let pdu = out.open(kind.tag())?;
        out.integer(request_id)?;
        out.integer(error_status)?;
        out.integer(error_index)?;
        let bindings = out.open(crate::ber::tag::SEQUENCE)?;
        Ok(Self { pdu, bindings })
    }

    /// Closes it behind the last binding.
    pub fn end(self, out: &mut Writer<'_>) {
        out.close(self.bindings);
        out.close(self.pdu);
    }
}
