use std::ops::ControlFlow;

use super::*;
use crate::mib::{DefaultContext, Mib, Value};
use crate::pdu::ErrorStatus;
use crate::pdu::OpenPdu;

#[allow(dead_code, reason = "the fixture has more than one user")]
#[path = "../../../../fuzz/src/snmp.rs"]
mod fixture;

mod answers;
mod bulk;
mod security;
mod work;

use fixture::{ALLOWED, NOW_MILLIS, Objects, STRANGER};

/// A value that owns what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owned {
    Bytes(u8, Vec<u8>),
    Name(Vec<u32>),
    Number(u8, i128),
    Nothing(u8),
}

impl Owned {
    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Integer(value) => Self::Number(tag::INTEGER, value.into()),
            Value::Counter32(value) => Self::Number(tag::COUNTER32, value.into()),
            Value::Gauge32(value) => Self::Number(tag::GAUGE32, value.into()),
            Value::TimeTicks(value) => Self::Number(tag::TIME_TICKS, value.into()),
            Value::Counter64(value) => Self::Number(tag::COUNTER64, value.into()),
            Value::OctetString(bytes) => Self::Bytes(tag::OCTET_STRING, bytes.into()),
            Value::Opaque(bytes) => Self::Bytes(tag::OPAQUE, bytes.into()),
            Value::IpAddress(bytes) => Self::Bytes(tag::IP_ADDRESS, bytes.into()),
            Value::ObjectIdentifier(name) => Self::Name(name.into()),
            Value::Null => Self::Nothing(tag::NULL),
            Value::NoSuchObject => Self::Nothing(tag::NO_SUCH_OBJECT),
            Value::NoSuchInstance => Self::Nothing(tag::NO_SUCH_INSTANCE),
            Value::EndOfMibView => Self::Nothing(tag::END_OF_MIB_VIEW),
        }
    }
}

/// A response, read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Response {
    kind: PduKind,
    request_id: i32,
    status: i32,
    index: i32,
    bindings: Vec<(Vec<u32>, Owned)>,
}

impl Response {
    fn read(reader: &mut Reader<'_>) -> Self {
        let pdu = Pdu::read(reader).expect("a sound PDU");
        let mut bindings = Vec::new();
        pdu.bindings
            .for_each(|name, value| bindings.push((name.to_vec(), Owned::of(value))))
            .expect("sound bindings");
        Self {
            kind: pdu.kind,
            request_id: pdu.request_id,
            status: pdu.error_status,
            index: pdu.error_index,
            bindings,
        }
    }

    fn names(&self) -> Vec<&[u32]> {
        self.bindings.iter().map(|(name, _)| &name[..]).collect()
    }
}

/// A request's PDU: kind, the two numbers of its head, names.
#[derive(Clone, Debug)]
struct Ask<'a> {
    kind: PduKind,
    first: i32,
    second: i32,
    names: &'a [&'a [u32]],
}

impl<'a> Ask<'a> {
    fn of(kind: PduKind, names: &'a [&'a [u32]]) -> Self {
        Self {
            kind,
            first: 0,
            second: 0,
            names,
        }
    }

    fn bulk(non_repeaters: i32, repetitions: i32, names: &'a [&'a [u32]]) -> Self {
        Self {
            kind: PduKind::GetBulk,
            first: non_repeaters,
            second: repetitions,
            names,
        }
    }

    fn write(&self, out: &mut Writer<'_>) -> Result<(), Full> {
        let open = OpenPdu::begin(out, self.kind, -77, self.first, self.second)?;
        for name in self.names {
            out.binding(name, &Value::Null)?;
        }
        open.end(out);
        Ok(())
    }

    /// A datagram of v1 or v2c.
    fn datagram(&self, version: i32, community: &[u8]) -> Vec<u8> {
        let mut buffer = vec![0; ANSWER_BUFFER_BYTES];
        let mut out = Writer::new(&mut buffer);
        let message = CommunityMessage {
            version,
            community,
            pdu: Reader::new(&[]),
        };
        wrap_community(&mut out, &message, |out| self.write(out)).expect("room");
        out.written().to_vec()
    }
}

/// An agent over objects, its buffer and the time.
struct Bench<M> {
    agent: Agent,
    mib: M,
    out: Vec<u8>,
    now_millis: u64,
    /// The default context is only for those who are configured for it.
    by_name: bool,
}

/// The default context, for everybody or not.
struct Told<'a, M> {
    context: DefaultContext<'a, M>,
    by_name: bool,
}

impl<M: Mib> Contexts for Told<'_, M> {
    fn context(&self, name: &[u8]) -> Option<&dyn Mib> {
        self.context.context(name)
    }

    fn is_by_name_only(&self, _: &[u8]) -> bool {
        self.by_name
    }
}

impl Bench<Objects> {
    fn new() -> Self {
        Self::over(fixture::objects(), fixture::config())
    }
}

impl<M: Mib> Bench<M> {
    fn over(mib: M, config: Config) -> Self {
        Self {
            agent: Agent::new(config).expect("a sound configuration"),
            mib,
            out: vec![0; ANSWER_BUFFER_BYTES],
            now_millis: NOW_MILLIS,
            by_name: false,
        }
    }

    fn send(&mut self, datagram: &[u8], from: IpAddr) -> Result<Vec<u8>, Reason> {
        let contexts = Told {
            context: DefaultContext(&self.mib),
            by_name: self.by_name,
        };
        let now = self.now_millis;
        let agent = &mut self.agent;
        match agent.answer(datagram, from, now, &contexts, &mut self.out) {
            Outcome::Answered(len) => Ok(self.out[..len].to_vec()),
            Outcome::Dropped(reason) => Err(reason),
            Outcome::PutOff => panic!("these objects are there"),
        }
    }

    /// Asks with a community, from a source that is allowed.
    fn ask(&mut self, version: i32, ask: &Ask<'_>) -> Response {
        let datagram = ask.datagram(version, b"public");
        let answer = self.send(&datagram, ALLOWED).expect("an answer");
        let Ok(Message::Community(mut message)) = Message::read(&answer) else {
            panic!("no message of v1 or v2c: {answer:02x?}");
        };
        assert_eq!(
            (message.version, message.community),
            (version, &b"public"[..])
        );
        let response = Response::read(&mut message.pdu);
        assert_eq!(
            (response.kind, response.request_id),
            (PduKind::Response, -77)
        );
        response
    }
}

/// What a walk gives, from a name on: the oracle of all runs.
fn successor(mib: &dyn Mib, after: &[u32]) -> Option<(Vec<u32>, Owned)> {
    let mut found = None;
    mib.walk(after, &mut |name, value| {
        found = Some((name.to_vec(), Owned::of(value)));
        ControlFlow::Break(())
    });
    found
}
