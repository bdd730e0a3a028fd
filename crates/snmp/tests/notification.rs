//! Notifications, read by `rasn-snmp`: traps of v1 as RFC 3584 translates
//! them, traps and informs of v2c.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by it")]
#![allow(dead_code, reason = "the fixture has more than one user")]

use fingerpost_snmp::agent::{ANSWER_BUFFER_BYTES, Agent};
use fingerpost_snmp::mib::Value;
use fingerpost_snmp::notification::{Notification, NotificationError, Receiver, answers_inform};
use fingerpost_snmp::usm::SecurityLevel;
use rasn_snmp::v2::{Pdu, Pdus};
use rasn_snmp::{v1, v2c};

#[path = "../../../fuzz/src/snmp.rs"]
mod fixture;

const LINK_DOWN: &[u32] = &[1, 3, 6, 1, 6, 3, 1, 1, 5, 3];
const IF_INDEX: &[u32] = &[1, 3, 6, 1, 2, 1, 2, 2, 1, 1, 4];
const ENTERPRISE: &[u32] = &[1, 3, 6, 1, 4, 1, 8072];

fn send(
    receiver: &Receiver<'_>,
    name: &[u32],
    value: Value<'_>,
) -> Result<Vec<u8>, NotificationError> {
    let mut agent = Agent::new(fixture::config()).expect("a sound configuration");
    let notification = Notification {
        name,
        up_time: 123_456,
        bindings: &[(IF_INDEX, value)],
    };
    let mut out = vec![0; ANSWER_BUFFER_BYTES];
    let len = agent.notify(receiver, &notification, -5, fixture::NOW_MILLIS, &mut out)?;
    assert_eq!(agent.counters().snmp.out_traps, 1);
    out.truncate(len);
    Ok(out)
}

fn check_bindings(pdu: &Pdu) {
    assert_eq!(pdu.request_id, -5);
    let names: Vec<&[u32]> = pdu
        .variable_bindings
        .iter()
        .map(|one| one.name.as_ref())
        .collect();
    let up_time: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 3, 0];
    let trap: &[u32] = &[1, 3, 6, 1, 6, 3, 1, 1, 4, 1, 0];
    assert_eq!(names, [up_time, trap, IF_INDEX]);
    let value = format!("{:?}", pdu.variable_bindings[0].value);
    assert!(
        value.contains("Ticks") && value.contains("123456"),
        "{value}"
    );
}

#[test]
fn v2c() {
    let trap = Receiver::TrapV2c { community: b"ops" };
    let bytes = send(&trap, LINK_DOWN, Value::Integer(4)).expect("a trap");
    let message: v2c::Message<Pdus> = rasn::ber::decode(&bytes).expect("a message");
    assert_eq!(message.community.as_ref(), b"ops");
    let Pdus::Trap(trap) = message.data else {
        panic!("no trap");
    };
    check_bindings(&trap.0);

    let inform = Receiver::InformV2c { community: b"ops" };
    let bytes = send(&inform, LINK_DOWN, Value::Integer(4)).expect("an inform");
    let mut message: v2c::Message<Pdus> = rasn::ber::decode(&bytes).expect("a message");
    let Pdus::InformRequest(inform) = message.data.clone() else {
        panic!("no inform");
    };
    check_bindings(&inform.0);
    assert_eq!(answers_inform(&bytes, b"ops"), None);
    message.data = Pdus::Response(rasn_snmp::v2::Response(inform.0));
    let answer = rasn::ber::encode(&message).expect("an answer");
    assert_eq!(answers_inform(&answer, b"ops"), Some(-5));
    assert_eq!(answers_inform(&answer, b"others"), None);
}

#[test]
fn v1_generic_and_specific() {
    let receiver = Receiver::TrapV1 {
        community: b"ops",
        enterprise: ENTERPRISE,
        agent: [192, 0, 2, 1],
    };
    let read = |name: &[u32]| {
        let bytes = send(&receiver, name, Value::Integer(4)).expect("a trap");
        let message: v1::Message<v1::Pdus> = rasn::ber::decode(&bytes).expect("a message");
        let v1::Pdus::Trap(trap) = message.data else {
            panic!("no trap");
        };
        let enterprise: &[u32] = trap.enterprise.as_ref();
        assert_eq!(trap.variable_bindings.len(), 1);
        let number = |number: &rasn::types::Integer| number.to_string();
        (
            enterprise.to_vec(),
            number(&trap.generic_trap),
            number(&trap.specific_trap),
        )
    };
    let (two, six) = ("2".to_owned(), "6".to_owned());
    assert_eq!(read(LINK_DOWN), (ENTERPRISE.to_vec(), two, "0".into()));
    let own = [ENTERPRISE, &[0, 17]].concat();
    assert_eq!(read(&own), (ENTERPRISE.to_vec(), six.clone(), "17".into()));
    let own = [ENTERPRISE, &[9]].concat();
    assert_eq!(read(&own), (ENTERPRISE.to_vec(), six, "9".into()));
    let wide = send(&receiver, LINK_DOWN, Value::Counter64(1));
    assert_eq!(wide, Err(NotificationError::Counter64));
}

#[test]
fn what_cannot_be_sent() {
    let receiver = |user, level| Receiver::TrapV3 {
        user,
        level,
        context: b"",
    };
    let unknown = receiver(&b"eve"[..], SecurityLevel::NoAuthNoPriv);
    let beyond = receiver(&b"signed"[..], SecurityLevel::AuthPriv);
    for receiver in [unknown, beyond] {
        let sent = send(&receiver, LINK_DOWN, Value::Integer(4));
        assert_eq!(sent, Err(NotificationError::User));
    }
    let long = [7; 2_000];
    let trap = Receiver::TrapV2c { community: b"ops" };
    let sent = send(&trap, LINK_DOWN, Value::OctetString(&long));
    assert!(matches!(sent, Err(NotificationError::TooBig(_))));
}
