//! What is done with the bytes of the SNMP targets: a message is read, and
//! written again if it can be; a datagram goes through a whole agent over a
//! few objects, from a source that is allowed everything and from one that
//! is not.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::{Bound, ControlFlow};
use std::sync::LazyLock;

use fingerpost_snmp::agent::{ANSWER_BUFFER_BYTES, Agent, Outcome};
use fingerpost_snmp::ber::{Reader, Writer, tag};
use fingerpost_snmp::config::{Community, Config, User};
use fingerpost_snmp::message::{Message, ScopedPdu, UsmParameters};
use fingerpost_snmp::mib::{DefaultContext, Mib, Value, WalkSink};
use fingerpost_snmp::pdu::{OpenPdu, Pdu};
use fingerpost_snmp::usm::{AuthKey, AuthProtocol, PrivacyKey, PrivacyProtocol, SecurityLevel};
use fingerpost_snmp::view::{Family, View};

/// The engine of the corpus.
pub const ENGINE_ID: &[u8] = b"\x80\x00\x1f\x88\x04fingerpost";
/// Its starts.
pub const ENGINE_BOOTS: u32 = 3;
/// The moment of the corpus, in the engine's time.
pub const NOW_MILLIS: u64 = 1_000_000;
/// A source that is answered at full length.
pub const ALLOWED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
/// A source that is not.
pub const STRANGER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 7));
/// How many times as long as its request an answer to a stranger may be.
pub const AMPLIFICATION: usize = 4;

/// Objects in a sorted map: the obvious [`Mib`].
#[derive(Clone, Debug, Default)]
pub struct Objects(pub BTreeMap<Vec<u32>, Value<'static>>);

impl Mib for Objects {
    fn get(&self, names: &[&[u32]], sink: &mut dyn FnMut(usize, Value<'_>)) {
        // Backwards: any order will do.
        for (place, name) in names.iter().enumerate().rev() {
            let value = self.0.get(*name).copied();
            sink(place, value.unwrap_or(Value::NoSuchInstance));
        }
    }

    fn walk(&self, after: &[u32], sink: &mut WalkSink<'_>) {
        let behind = (Bound::Excluded(after), Bound::Unbounded);
        for (name, value) in self.0.range::<[u32], _>(behind) {
            if sink(name, *value) == ControlFlow::Break(()) {
                break;
            }
        }
    }
}

/// Values of all types, a table and a name as long as can be.
pub fn objects() -> Objects {
    let mut objects = BTreeMap::new();
    let system = [1, 3, 6, 1, 2, 1, 1];
    let mut add = |tail: &[u32], value| {
        objects.insert([&system[..], tail].concat(), value);
    };
    add(&[1, 0], Value::OctetString(b"a router with a full table"));
    add(&[2, 0], Value::ObjectIdentifier(&[1, 3, 6, 1, 4, 1, 8072]));
    add(&[3, 0], Value::TimeTicks(4_294_967_295));
    add(&[7, 0], Value::Integer(-129));
    add(&[8, 0], Value::IpAddress([192, 0, 2, 255]));
    add(&[9, 0], Value::Opaque(b"\x9f\x78\x04\x42\xf6\x00\x00"));
    for column in 1..=4 {
        for row in 1..=40 {
            let value = match column {
                1 => Value::Integer(row as i32),
                2 => Value::Counter32(row * 0x0100_0000),
                3 => Value::Counter64(u64::from(row) << 56),
                _ => Value::Gauge32(row * 77),
            };
            add(&[10, 1, column, row * 50], value);
        }
    }
    add(&[11; 121], Value::OctetString(&[0xab; 600]));
    Objects(objects)
}

/// A configuration with something of each kind.
pub fn config() -> Config {
    let community = |name: &[u8], sources: &[&str], view: View| Community {
        name: name.to_vec(),
        sources: sources
            .iter()
            .filter_map(|text| text.parse().ok())
            .collect(),
        view,
        context: Vec::new(),
    };
    Config {
        engine_id: ENGINE_ID.to_vec(),
        engine_boots: ENGINE_BOOTS,
        salt_seed: 7,
        communities: vec![
            community(b"public", &["127.0.0.0/8"], View::all()),
            community(b"public", &[], narrow()),
        ],
        users: vec![
            user(b"clear", None, SecurityLevel::NoAuthNoPriv),
            user(
                b"signed",
                Some((AuthProtocol::Sha1, None)),
                SecurityLevel::AuthNoPriv,
            ),
            user(
                b"sealed",
                Some((AuthProtocol::Md5, Some(PrivacyProtocol::Des))),
                SecurityLevel::AuthPriv,
            ),
        ],
        max_message_bytes: 1_400,
        allowed_sources: "127.0.0.0/8".parse().into_iter().collect(),
        amplification: AMPLIFICATION,
        authentic_amplification: 2 * AMPLIFICATION,
        remote_users: Vec::new(),
    }
}

/// Two columns of the table, less a row.
fn narrow() -> View {
    let family = |subtree: &str, mask: &[u8], included| {
        let subtree = subtree.parse().ok()?;
        Some(Family {
            subtree,
            mask: mask.to_vec(),
            included,
        })
    };
    let families = [
        family("1.3.6.1.2.1.1.10.1.2", &[], true),
        family("1.3.6.1.2.1.1.10.1.4", &[], true),
        family("1.3.6.1.2.1.1.10.1.0.500", &[0xff, 0xa0], false),
    ];
    View::new(&families.into_iter().flatten().collect::<Vec<_>>())
}

fn user(
    name: &[u8],
    keys: Option<(AuthProtocol, Option<PrivacyProtocol>)>,
    minimum_level: SecurityLevel,
) -> User {
    let (auth, privacy) = keys.map_or((None, None), |(auth, privacy)| (Some(auth), privacy));
    // Stored keys of any bytes: a passphrase would cost a megabyte of hash.
    let bytes = [0x5a; 64];
    User {
        name: name.to_vec(),
        auth: auth.and_then(|protocol| {
            AuthKey::from_localised(protocol, &bytes[..protocol.key_len()]).ok()
        }),
        privacy: privacy.and_then(|protocol| {
            PrivacyKey::from_localised(protocol, &bytes[..protocol.key_len()]).ok()
        }),
        minimum_level,
        view: View::all(),
        contexts: None,
    }
}

/// A datagram: the message decoder, and its opposite.
pub fn snmp_message(bytes: &[u8]) {
    let pdu = match Message::read(bytes) {
        Ok(Message::Community(message)) => message.pdu,
        Ok(Message::V3(message)) => {
            let _ = UsmParameters::read(message.security);
            let mut data = message.data;
            match ScopedPdu::read(&mut data) {
                Ok(scoped) => scoped.pdu,
                Err(_) => return,
            }
        }
        Ok(Message::Unknown(_)) | Err(_) => return,
    };
    let mut rest = pdu;
    let Ok(pdu) = Pdu::read(&mut rest) else {
        return;
    };
    let mut buffer = vec![0; bytes.len() * 2 + 64];
    let mut out = Writer::new(&mut buffer);
    let open = OpenPdu::begin(
        &mut out,
        pdu.kind,
        pdu.request_id,
        pdu.error_status,
        pdu.error_index,
    );
    let mut bindings = 0;
    let read = pdu.bindings.for_each(|name, value| {
        bindings += 1;
        let written = out.binding(name, &value);
        assert!(written.is_ok(), "no binding doubles its length");
    });
    assert!(bindings <= bytes.len() / 4, "more bindings than bytes");
    let (Ok(()), Ok(open)) = (read, open) else {
        return;
    };
    open.end(&mut out);
    let again = Pdu::read(&mut Reader::new(out.written()));
    let again = again.expect("what was written can be read");
    assert_eq!(again.kind, pdu.kind);
    let mut left = bindings;
    let read = again.bindings.for_each(|_, _| left -= 1);
    assert!(read.is_ok() && left == 0);
}

/// A datagram through an agent. It is answered by a sound message of the
/// length allowed, or not at all.
pub fn snmp_agent(bytes: &[u8]) {
    static OBJECTS: LazyLock<Objects> = LazyLock::new(objects);
    let objects = &*OBJECTS;
    let mut agent = Agent::new(config()).expect("a sound configuration");
    let mut out = vec![0; ANSWER_BUFFER_BYTES];
    let mut ask = |bytes: &[u8], from| {
        let contexts = DefaultContext(objects);
        let outcome = agent.answer(bytes, from, NOW_MILLIS, &contexts, &mut out);
        let Outcome::Answered(len) = outcome else {
            return;
        };
        assert!(len <= agent.config().max_message_bytes);
        if from == STRANGER {
            assert!(
                len <= bytes.len() * AMPLIFICATION,
                "{len} for {}",
                bytes.len()
            );
        }
        sound(&out[..len]);
    };
    ask(bytes, ALLOWED);
    ask(bytes, STRANGER);
    // As a PDU, too, so that not every byte has to be right ahead of it.
    let mut wrapped = vec![0; bytes.len() + 64];
    let mut wrapper = Writer::new(&mut wrapped);
    let written = wrapper.open(tag::SEQUENCE).and_then(|mark| {
        wrapper.integer(1)?;
        wrapper.octets(b"public")?;
        wrapper.bytes(bytes)?;
        wrapper.close(mark);
        Ok(())
    });
    if written.is_ok() {
        ask(wrapper.written(), ALLOWED);
    }
}

/// An answer can be read to its end, but for what is encrypted.
fn sound(answer: &[u8]) {
    let pdu = match Message::read(answer).expect("a sound answer") {
        Message::Community(message) => Some(message.pdu),
        Message::V3(message) => {
            UsmParameters::read(message.security).expect("sound parameters");
            let mut data = message.data;
            match ScopedPdu::read(&mut data) {
                Ok(scoped) => Some(scoped.pdu),
                Err(_) => return,
            }
        }
        Message::Unknown(_) => None,
    };
    let mut pdu = pdu.expect("an answer of a known version");
    let pdu = Pdu::read(&mut pdu).expect("a sound PDU");
    let read = pdu.bindings.for_each(|_, _| {});
    read.expect("sound bindings");
}
