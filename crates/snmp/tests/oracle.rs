//! The codec beside `rasn-snmp`: what is written here is its encoding, byte
//! for byte, and what it encodes is read here as it was meant.

#![allow(clippy::expect_used, reason = "a test fails by it")]

use fingerpost_snmp::ber::{Reader, Writer, tag};
use fingerpost_snmp::message::Message;
use fingerpost_snmp::mib::Value;
use fingerpost_snmp::pdu::{OpenPdu, Pdu, PduKind};
use proptest::prelude::*;
use rasn::types::{Integer, ObjectIdentifier};
use rasn_smi::v2::{ApplicationSyntax, Counter64, ObjectSyntax, SimpleSyntax};
use rasn_snmp::v2::{self, Pdus, VarBind, VarBindValue};

type Binding = (Vec<u32>, Value<'static>);

const BYTES: [u8; 300] = [0xa5; 300];
const NAME: [u32; 5] = [1, 3, 6, 1, u32::MAX];

fn name() -> impl Strategy<Value = Vec<u32>> {
    let sub_id = prop_oneof![
        0..3u32,
        120..140u32,
        (0..32u32).prop_map(|bits| (1 << bits) - 1),
        (0..32u32).prop_map(|bits| 1 << bits),
        any::<u32>(),
    ];
    let tail = prop::collection::vec(sub_id, 0..126);
    (0..3u32, 0..40u32, tail).prop_map(|(root, second, tail)| {
        let head = [root, second];
        [&head[..], &tail].concat()
    })
}

fn integer() -> impl Strategy<Value = i32> {
    let edge = (0..32u32, -1..2i32).prop_map(|(bits, more)| (1i32 << bits).wrapping_add(more));
    prop_oneof![any::<i32>(), edge, -300..300i32]
}

fn value() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        integer().prop_map(Value::Integer),
        integer().prop_map(|number| Value::Counter32(number as u32)),
        integer().prop_map(|number| Value::Gauge32(number as u32)),
        integer().prop_map(|number| Value::TimeTicks(number as u32)),
        (integer(), 0..64u32)
            .prop_map(|(number, by)| { Value::Counter64((number as i64 as u64).rotate_left(by)) }),
        (0..300usize).prop_map(|len| Value::OctetString(&BYTES[..len])),
        any::<[u8; 4]>().prop_map(Value::IpAddress),
        (2..5usize).prop_map(|len| Value::ObjectIdentifier(&NAME[..len])),
        Just(Value::Null),
        Just(Value::NoSuchObject),
        Just(Value::NoSuchInstance),
        Just(Value::EndOfMibView),
    ]
}

fn theirs(name: &[u32]) -> ObjectIdentifier {
    ObjectIdentifier::new(name.to_vec()).expect("a name")
}

fn their_value(value: &Value<'_>) -> VarBindValue {
    let wide = |value| VarBindValue::Value(ObjectSyntax::ApplicationWide(value));
    let simple = |value| VarBindValue::Value(ObjectSyntax::Simple(value));
    match *value {
        Value::Integer(number) => simple(SimpleSyntax::Integer(Integer::from(number))),
        Value::OctetString(bytes) => simple(SimpleSyntax::String(bytes.to_vec().into())),
        Value::ObjectIdentifier(name) => simple(SimpleSyntax::ObjectId(theirs(name))),
        Value::IpAddress(bytes) => wide(ApplicationSyntax::Address(rasn_smi::v1::IpAddress(
            bytes.into(),
        ))),
        Value::Counter32(number) => wide(ApplicationSyntax::Counter(rasn_smi::v1::Counter(number))),
        Value::Gauge32(number) => wide(ApplicationSyntax::Unsigned(rasn_smi::v1::Gauge(number))),
        Value::TimeTicks(number) => wide(ApplicationSyntax::Ticks(rasn_smi::v1::TimeTicks(number))),
        Value::Counter64(number) => wide(ApplicationSyntax::BigCounter(Counter64(number))),
        Value::NoSuchObject => VarBindValue::NoSuchObject,
        Value::NoSuchInstance => VarBindValue::NoSuchInstance,
        Value::EndOfMibView => VarBindValue::EndOfMibView,
        Value::Null | Value::Opaque(_) => VarBindValue::Unspecified,
    }
}

fn our_message(request_id: i32, bindings: &[Binding]) -> Vec<u8> {
    let mut buffer = vec![0; 1 << 16];
    let mut out = Writer::new(&mut buffer);
    let message = out.open(tag::SEQUENCE).expect("room");
    out.integer(1).expect("room");
    out.octets(b"public").expect("room");
    let pdu = OpenPdu::begin(&mut out, PduKind::Response, request_id, 17, 300).expect("room");
    for (name, value) in bindings {
        out.binding(name, value).expect("room");
    }
    pdu.end(&mut out);
    out.close(message);
    out.written().to_vec()
}

fn their_message(request_id: i32, bindings: &[Binding]) -> Vec<u8> {
    let variable_bindings = bindings.iter().map(|(name, value)| VarBind {
        name: theirs(name),
        value: their_value(value),
    });
    let pdu = v2::Pdu {
        request_id,
        error_status: 17,
        error_index: 300,
        variable_bindings: variable_bindings.collect(),
    };
    let message = rasn_snmp::v2c::Message {
        version: 1.into(),
        community: b"public".to_vec().into(),
        data: Pdus::Response(v2::Response(pdu)),
    };
    rasn::ber::encode(&message).expect("an encoding")
}

proptest! {
    #[test]
    fn written_alike_and_read_back(
        request_id in integer(),
        bindings in prop::collection::vec((name(), value()), 0..12),
    ) {
        let ours = our_message(request_id, &bindings);
        let theirs = their_message(request_id, &bindings);
        prop_assert!(ours == theirs, "ours {ours:02x?}\ntheirs {theirs:02x?}");
        let Ok(Message::Community(message)) = Message::read(&theirs) else {
            return Err(TestCaseError::fail("no message of v2c"));
        };
        let mut rest: Reader<'_> = message.pdu;
        let pdu = Pdu::read(&mut rest).expect("a PDU");
        prop_assert_eq!(pdu.request_id, request_id);
        prop_assert_eq!((pdu.error_status, pdu.error_index), (17, 300));
        let mut left = bindings.iter();
        let mut same = true;
        pdu.bindings
            .for_each(|name, value| {
                same &= left
                    .next()
                    .is_some_and(|(wanted, wants)| wanted == name && *wants == value);
            })
            .expect("sound bindings");
        prop_assert!(same && left.next().is_none());
    }
}
