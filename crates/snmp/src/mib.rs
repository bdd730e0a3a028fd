//! What an agent answers from: names and values, one seek and a run.
//!
//! Implemented by the `mib` crate over the tables, called by the agent and
//! by the AgentX subagent. A name is a slice of sub-identifiers, at most
//! [`crate::oid::MAX_SUB_IDS`] of them, in the order of OIDs, which is the
//! order of slices of `u32`.

use std::ops::ControlFlow;

use crate::oid::Name;

/// A value of a variable binding (RFC 3416 §3), borrowed: none is copied or
/// allocated on its way into an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// `INTEGER`, `Integer32`.
    Integer(i32),
    /// `OCTET STRING`.
    OctetString(&'a [u8]),
    /// `OBJECT IDENTIFIER`.
    ObjectIdentifier(&'a [u32]),
    /// `IpAddress`, in network order.
    IpAddress([u8; 4]),
    /// `Counter32`.
    Counter32(u32),
    /// `Gauge32`, `Unsigned32`.
    Gauge32(u32),
    /// `TimeTicks`, hundredths of a second.
    TimeTicks(u32),
    /// `Opaque`.
    Opaque(&'a [u8]),
    /// `Counter64`; not seen by SNMPv1 (RFC 3584 §4.2.2.1).
    Counter64(u64),
    /// `unSpecified`, the value of a name in a request.
    Null,
    /// The agent has no object of this type.
    NoSuchObject,
    /// The object exists, this instance of it does not.
    NoSuchInstance,
    /// There is no name behind this one.
    EndOfMibView,
}

impl Value<'_> {
    /// Whether this is one of the three exceptions of RFC 3416 §3.
    pub fn is_exception(&self) -> bool {
        matches!(
            self,
            Self::NoSuchObject | Self::NoSuchInstance | Self::EndOfMibView
        )
    }
}

/// Takes one step of a walk: a name and its value.
pub type WalkSink<'a> = dyn FnMut(&[u32], Value<'_>) -> ControlFlow<()> + 'a;

/// The objects of one context at one moment. All calls made for one request
/// are on the same value, so that an answer is of one moment if the value
/// is (a snapshot).
pub trait Mib {
    /// The values of exactly these names: calls `sink` once for each, in any
    /// order, with the name's place in `names`. What is not there is
    /// [`Value::NoSuchObject`] or [`Value::NoSuchInstance`] (RFC 3416
    /// §4.2.1).
    fn get(&self, names: &[&[u32]], sink: &mut dyn FnMut(usize, Value<'_>));

    /// All objects behind `after` in the order of their names, until `sink`
    /// breaks or there are no more. One seek, then a run: a step costs O(1).
    ///
    /// Names given to `sink` ascend strictly, the first is greater than
    /// `after`; no value is an exception. `after` is any name at all, of
    /// no, a few or 128 sub-identifiers.
    fn walk(&self, after: &[u32], sink: &mut WalkSink<'_>);

    /// A name behind all objects of the column that `name` is of, and before
    /// what follows; `None`: it is not known. All of a column is of one type:
    /// who does not see the first need not pass over the others.
    fn column_end(&self, _name: &[u32]) -> Option<Name> {
        None
    }

    /// How many objects the next walks are for, each at most: a hint.
    fn expect(&self, _rows: usize) {}

    /// Whether the last call could not tell all: a walk that ended had more
    /// to tell, a name got no value. Then it is so no more.
    fn fell_short(&self) -> bool {
        false
    }
}

/// The contexts of an agent (RFC 3411 §3.3.1) by name.
pub trait Contexts {
    /// The objects of a context, `None` if there is no such context. The
    /// default context has the empty name. Called once for a request.
    fn context(&self, name: &[u8]) -> Option<&dyn Mib>;

    /// Whether what was asked of a context is not there yet: the request is
    /// to be put off, and asked again from the start.
    fn is_waiting(&self) -> bool {
        false
    }

    /// Whether a context is only for communities and users that are
    /// configured for it by name.
    fn is_by_name_only(&self, _name: &[u8]) -> bool {
        false
    }

    /// Whether what was told since this was last asked is too old to go out.
    /// Then it is so no more. For a subagent, whose questions are answered
    /// at once.
    fn take_too_old(&self) -> bool {
        false
    }
}

/// One [`Mib`] as the default context, and no other context.
#[derive(Clone, Copy, Debug)]
pub struct DefaultContext<'a, M>(
    /// The objects of the default context.
    pub &'a M,
);

impl<M: Mib> Contexts for DefaultContext<'_, M> {
    fn context(&self, name: &[u8]) -> Option<&dyn Mib> {
        name.is_empty().then_some(self.0 as &dyn Mib)
    }
}
