//! v3: levels, digests, encryption, the time window, reports and contexts.

use super::*;
use crate::agent::seal::{Engine, Envelope, seal};
use crate::config::User;
use crate::message::{AUTH, PRIV, REPORTABLE, ScopedPdu, UsmParameters, V3Message};
use crate::usm::{
    self, AuthKey, AuthProtocol, LAST_BOOTS, PrivacyKey, PrivacyProtocol, SecurityLevel,
};
use crate::view::View;
use fixture::{ENGINE_BOOTS, ENGINE_ID};

const DESCR: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 1, 0];
const GET: Ask<'_> = Ask {
    kind: PduKind::Get,
    first: 0,
    second: 0,
    names: &[DESCR],
};

const AUTH_PROTOCOLS: [AuthProtocol; 6] = [
    AuthProtocol::Md5,
    AuthProtocol::Sha1,
    AuthProtocol::Sha224,
    AuthProtocol::Sha256,
    AuthProtocol::Sha384,
    AuthProtocol::Sha512,
];
const PRIVACY_PROTOCOLS: [PrivacyProtocol; 6] = [
    PrivacyProtocol::Des,
    PrivacyProtocol::Aes128,
    PrivacyProtocol::Aes192,
    PrivacyProtocol::Aes256,
    PrivacyProtocol::Aes192Cisco,
    PrivacyProtocol::Aes256Cisco,
];

fn user(auth: AuthProtocol, privacy: PrivacyProtocol, seed: u8) -> User {
    let bytes: Vec<u8> = (0..64).map(|at| at ^ seed).collect();
    let auth = AuthKey::from_localised(auth, &bytes[..auth.key_len()]);
    let privacy = PrivacyKey::from_localised(privacy, &bytes[..privacy.key_len()]);
    User {
        name: b"ann".to_vec(),
        auth: Some(auth.expect("a key")),
        privacy: Some(privacy.expect("a key")),
        minimum_level: SecurityLevel::NoAuthNoPriv,
        view: View::all(),
        contexts: Some(vec![b"".to_vec(), b"red".to_vec()]),
    }
}

fn bench(user: User) -> Bench<Objects> {
    let mut config = fixture::config();
    config.users.push(user);
    Bench::over(fixture::objects(), config)
}

/// What a message of v3 says of itself.
#[derive(Clone)]
struct Sender {
    user: User,
    level: SecurityLevel,
    flags: u8,
    engine_id: Vec<u8>,
    context_engine: Vec<u8>,
    context: Vec<u8>,
    boots: u32,
    time_secs: u32,
    max_size: usize,
}

impl Sender {
    fn new(user: &User, level: SecurityLevel) -> Self {
        Self {
            user: user.clone(),
            level,
            flags: REPORTABLE,
            engine_id: ENGINE_ID.into(),
            context_engine: ENGINE_ID.into(),
            context: Vec::new(),
            boots: ENGINE_BOOTS,
            time_secs: (NOW_MILLIS / 1_000) as u32,
            max_size: 65_507,
        }
    }

    fn datagram(&self, ask: &Ask<'_>) -> Vec<u8> {
        let engine = Engine {
            id: &self.engine_id,
            boots: self.boots,
            time_secs: self.time_secs,
            max_size: self.max_size,
        };
        let envelope = Envelope {
            id: 4_711,
            level: self.level,
            flags: self.flags,
            name: &self.user.name,
            user: Some(&self.user),
            context_engine: &self.context_engine,
            context: &self.context,
        };
        let mut buffer = vec![0; ANSWER_BUFFER_BYTES];
        let mut out = Writer::new(&mut buffer);
        let mut salts = Salts::new(99);
        seal(&engine, &mut salts, &envelope, &mut out, |out| {
            ask.write(out)
        })
        .expect("room");
        out.written().to_vec()
    }

    /// Reads an answer as the asker does: digest, then encryption.
    fn read(&self, answer: &[u8]) -> (SecurityLevel, Response) {
        let Ok(Message::V3(message)) = Message::read(answer) else {
            panic!("no message of v3: {answer:02x?}");
        };
        assert_eq!(message.id, 4_711);
        let parameters = UsmParameters::read(message.security).expect("parameters");
        assert_eq!(parameters.engine_id, ENGINE_ID);
        assert_eq!(parameters.user, self.user.name);
        let mut level = SecurityLevel::NoAuthNoPriv;
        if message.flags & AUTH != 0 {
            let behind = message.data.rest().len() + parameters.behind_auth;
            let at = answer.len() - behind - parameters.auth.len();
            let key = self.user.auth.as_ref().expect("a key");
            assert_eq!(parameters.auth.len(), key.protocol().digest_len());
            assert!(usm::verify(key, answer, at), "a wrong digest");
            level = SecurityLevel::AuthNoPriv;
        }
        let mut data = message.data;
        if message.flags & PRIV == 0 {
            return (level, read_scoped(data));
        }
        let mut text = data.octets().expect("an encrypted text").to_vec();
        let key = self.user.privacy.as_ref().expect("a key");
        let (boots, time_secs) = (parameters.boots, parameters.time_secs);
        assert!(usm::decrypt(
            key,
            parameters.privacy,
            boots,
            time_secs,
            &mut text
        ));
        (SecurityLevel::AuthPriv, read_scoped(Reader::new(&text)))
    }
}

fn read_scoped(mut data: Reader<'_>) -> Response {
    let scoped = ScopedPdu::read(&mut data).expect("a scoped PDU");
    assert_eq!(scoped.engine_id, ENGINE_ID);
    Response::read(&mut { scoped.pdu })
}

/// The answer's level and its response, a report with its last sub-ids.
fn exchange(bench: &mut Bench<Objects>, sender: &Sender) -> (SecurityLevel, Response) {
    let datagram = sender.datagram(&GET);
    let answer = bench.send(&datagram, ALLOWED).expect("an answer");
    sender.read(&answer)
}

fn reported(response: &Response) -> &[u32] {
    assert_eq!(response.kind, PduKind::Report);
    let [(name, Owned::Number(tag::COUNTER32, 1))] = &response.bindings[..] else {
        panic!("{response:?}");
    };
    &name[5..]
}

#[test]
fn every_pair_of_protocols_at_every_level() {
    for auth in AUTH_PROTOCOLS {
        for privacy in PRIVACY_PROTOCOLS {
            let user = user(auth, privacy, 0);
            let mut bench = bench(user.clone());
            for level in [
                SecurityLevel::NoAuthNoPriv,
                SecurityLevel::AuthNoPriv,
                SecurityLevel::AuthPriv,
            ] {
                let (found, response) = exchange(&mut bench, &Sender::new(&user, level));
                assert_eq!(found, level, "{auth:?} {privacy:?}");
                assert_eq!(
                    (response.kind, response.request_id),
                    (PduKind::Response, -77)
                );
                assert_eq!(response.names(), [DESCR]);
            }
        }
    }
}

#[test]
fn salts_do_not_come_again() {
    for privacy in [PrivacyProtocol::Des, PrivacyProtocol::Aes256] {
        let user = user(AuthProtocol::Sha1, privacy, 0);
        let mut bench = bench(user.clone());
        let datagram = Sender::new(&user, SecurityLevel::AuthPriv).datagram(&GET);
        let mut salts = std::collections::HashSet::new();
        for _ in 0..100 {
            let answer = bench.send(&datagram, ALLOWED).expect("an answer");
            let Ok(Message::V3(message)) = Message::read(&answer) else {
                panic!("no message of v3");
            };
            let parameters = UsmParameters::read(message.security).expect("parameters");
            assert!(salts.insert(parameters.privacy.to_vec()));
        }
    }
}

#[test]
fn discovery_and_clock() {
    let user = user(AuthProtocol::Sha256, PrivacyProtocol::Aes128, 0);
    let mut bench = bench(user.clone());
    let mut sender = Sender::new(&user, SecurityLevel::NoAuthNoPriv);
    sender.engine_id.clear();
    let (level, response) = exchange(&mut bench, &sender);
    assert_eq!(level, SecurityLevel::NoAuthNoPriv);
    assert_eq!(reported(&response), [3, 15, 1, 1, 4, 0]);
    assert_eq!(response.request_id, -77);
    // A clock that was never set: the report that says so is signed.
    let mut sender = Sender::new(&user, SecurityLevel::AuthPriv);
    (sender.boots, sender.time_secs) = (0, 0);
    let (level, response) = exchange(&mut bench, &sender);
    assert_eq!(level, SecurityLevel::AuthNoPriv);
    assert_eq!(reported(&response), [3, 15, 1, 1, 2, 0]);
    assert_eq!(response.request_id, 0);
}

#[test]
fn edges_of_the_time_window() {
    let user = user(AuthProtocol::Sha1, PrivacyProtocol::Aes128, 0);
    let mut bench = bench(user.clone());
    let now_secs = (NOW_MILLIS / 1_000) as u32;
    for (boots, time_secs, right) in [
        (ENGINE_BOOTS, now_secs - 150, true),
        (ENGINE_BOOTS, now_secs + 150, true),
        (ENGINE_BOOTS, now_secs - 151, false),
        (ENGINE_BOOTS, now_secs + 151, false),
        (ENGINE_BOOTS - 1, now_secs, false),
        (ENGINE_BOOTS + 1, now_secs, false),
        (ENGINE_BOOTS, i32::MAX as u32, false),
    ] {
        let mut sender = Sender::new(&user, SecurityLevel::AuthNoPriv);
        (sender.boots, sender.time_secs) = (boots, time_secs);
        let (_, response) = exchange(&mut bench, &sender);
        let kind = if right {
            PduKind::Response
        } else {
            PduKind::Report
        };
        assert_eq!(response.kind, kind, "{boots} {time_secs}");
    }
    assert_eq!(bench.agent.counters().usm.not_in_time_windows, 5);
    // A message sent again later.
    let datagram = Sender::new(&user, SecurityLevel::AuthPriv).datagram(&GET);
    assert!(bench.send(&datagram, ALLOWED).is_ok());
    bench.now_millis += 150_999;
    assert!(bench.send(&datagram, ALLOWED).is_ok());
    assert_eq!(bench.agent.counters().usm.not_in_time_windows, 5);
    bench.now_millis += 1;
    assert!(bench.send(&datagram, ALLOWED).is_ok());
    assert_eq!(bench.agent.counters().usm.not_in_time_windows, 6);
    // An engine at its last start takes nothing any more.
    bench.agent.config.engine_boots = LAST_BOOTS;
    bench.now_millis = NOW_MILLIS;
    let mut sender = Sender::new(&user, SecurityLevel::AuthNoPriv);
    sender.boots = LAST_BOOTS;
    assert_eq!(exchange(&mut bench, &sender).1.kind, PduKind::Report);
}

#[test]
fn a_forged_bit_anywhere() {
    let user = user(AuthProtocol::Md5, PrivacyProtocol::Des, 0);
    let mut bench = bench(user.clone());
    let sound = Sender::new(&user, SecurityLevel::AuthPriv).datagram(&GET);
    let (_, expected) = exchange(&mut bench, &Sender::new(&user, SecurityLevel::AuthPriv));
    for at in 0..sound.len() {
        for bit in 0..8 {
            let mut forged = sound.clone();
            forged[at] ^= 1 << bit;
            let Ok(answer) = bench.send(&forged, ALLOWED) else {
                continue;
            };
            let Ok(Message::V3(message)) = Message::read(&answer) else {
                panic!("byte {at} bit {bit}: not v3");
            };
            assert_eq!(message.flags & PRIV, 0, "byte {at} bit {bit} was believed");
        }
    }
    assert!(bench.agent.counters().usm.wrong_digests > 500);
    let after = exchange(&mut bench, &Sender::new(&user, SecurityLevel::AuthPriv));
    assert_eq!(after.1, expected);
}

#[test]
fn wrong_keys_users_levels_and_contexts() {
    let user = user(AuthProtocol::Sha256, PrivacyProtocol::Aes256, 0);
    let other = self::user(AuthProtocol::Sha256, PrivacyProtocol::Aes256, 1);
    let priv_ = SecurityLevel::AuthPriv;
    let mut cases: Vec<(&str, Sender, &[u32])> = Vec::new();
    let mut add = |what, sender: Sender, report| cases.push((what, sender, report));

    add(
        "wrong key",
        Sender::new(&other, priv_),
        &[3, 15, 1, 1, 5, 0],
    );
    let mut half = user.clone();
    half.privacy = other.privacy;
    add(
        "wrong privacy",
        Sender::new(&half, priv_),
        &[3, 15, 1, 1, 6, 0],
    );
    let mut unknown = user.clone();
    unknown.name = b"anne".to_vec();
    add(
        "unknown",
        Sender::new(&unknown, priv_),
        &[3, 15, 1, 1, 3, 0],
    );
    let mut signed = user.clone();
    signed.name = b"signed".to_vec();
    add("no key", Sender::new(&signed, priv_), &[3, 15, 1, 1, 1, 0]);
    let mut sender = Sender::new(&user, priv_);
    sender.context = b"blue".to_vec();
    add("no context", sender, &[3, 12, 1, 5, 0]);
    let mut sender = Sender::new(&user, priv_);
    sender.context_engine = b"\x80\x00\x00\x00\x01".to_vec();
    add("no proxy", sender, &[3, 11, 2, 1, 3, 0]);

    for (what, sender, report) in cases {
        let mut bench = bench(user.clone());
        let datagram = sender.datagram(&GET);
        let answer = bench.send(&datagram, ALLOWED).expect("a report");
        // Read with the user's own keys: reports about the message come in
        // clear, those about its content as it came.
        let reader = Sender {
            user: User {
                name: sender.user.name.clone(),
                ..user.clone()
            },
            ..sender.clone()
        };
        let (_, response) = reader.read(&answer);
        assert_eq!(reported(&response), report, "{what}");
        let mut quiet = sender.clone();
        quiet.flags = 0;
        let dropped = bench.send(&quiet.datagram(&GET), ALLOWED);
        let reason = matches!(dropped, Err(Reason::Security | Reason::Context));
        assert!(reason, "{what}: {dropped:?}");
    }
}

#[test]
fn less_than_the_level_or_context_allowed() {
    let mut user = user(AuthProtocol::Sha512, PrivacyProtocol::Aes192, 0);
    user.minimum_level = SecurityLevel::AuthPriv;
    let mut bench = bench(user.clone());
    let status = ErrorStatus::AuthorizationError as i32;
    for level in [SecurityLevel::NoAuthNoPriv, SecurityLevel::AuthNoPriv] {
        let (_, response) = exchange(&mut bench, &Sender::new(&user, level));
        assert_eq!((response.status, response.index), (status, 0));
        assert_eq!(response.names(), [DESCR]);
    }
    let sender = Sender::new(&user, SecurityLevel::AuthPriv);
    assert_eq!(exchange(&mut bench, &sender).1.status, 0);
    // A context that is there and not for this user.
    bench.agent.config.users.iter_mut().for_each(|user| {
        user.contexts = Some(vec![b"red".to_vec()]);
    });
    assert_eq!(exchange(&mut bench, &sender).1.status, status);
}

#[test]
fn what_is_told_by_name_only_is_for_users_who_are_configured_for_it() {
    let mut user = user(AuthProtocol::Sha512, PrivacyProtocol::Aes192, 0);
    let mut bench = bench(user.clone());
    bench.by_name = true;
    let sender = Sender::new(&user, SecurityLevel::AuthPriv);
    assert_eq!(exchange(&mut bench, &sender).1.status, 0);
    // For all contexts, and for none by name.
    user.contexts = None;
    bench.agent.config.users = vec![user];
    let status = ErrorStatus::AuthorizationError as i32;
    assert_eq!(exchange(&mut bench, &sender).1.status, status);
    bench.by_name = false;
    assert_eq!(exchange(&mut bench, &sender).1.status, 0);
}

#[test]
fn flags_models_and_sizes() {
    let user = user(AuthProtocol::Sha1, PrivacyProtocol::Aes128, 0);
    let mut bench = bench(user.clone());
    let mut sender = Sender::new(&user, SecurityLevel::NoAuthNoPriv);
    sender.flags = PRIV | REPORTABLE;
    let datagram = sender.datagram(&GET);
    assert_eq!(bench.send(&datagram, ALLOWED), Err(Reason::Flags(6)));
    assert_eq!(bench.agent.counters().mpd.invalid_msgs, 1);
    sender.flags = REPORTABLE;
    let mut datagram = sender.datagram(&GET);
    let Ok(Message::V3(V3Message { security, .. })) = Message::read(&datagram) else {
        panic!("no message of v3");
    };
    // The model is the byte before the parameters' header.
    let at = security.as_ptr().addr() - datagram.as_ptr().addr() - 3;
    datagram[at] = 2;
    assert_eq!(
        bench.send(&datagram, ALLOWED),
        Err(Reason::SecurityModel(2))
    );
    assert_eq!(bench.agent.counters().mpd.unknown_security_models, 1);
    sender.max_size = 483;
    let dropped = bench.send(&sender.datagram(&GET), ALLOWED);
    assert_eq!(dropped, Err(Reason::Malformed(Malformed::Range)));
    // What the asker takes is the limit, what fills up blocks included.
    let table: &[u32] = &[1, 3, 6, 1, 2, 1, 1, 10];
    let names = [table];
    let bulk = Ask::bulk(0, 1_000, &names);
    for level in [SecurityLevel::NoAuthNoPriv, SecurityLevel::AuthPriv] {
        for max_size in 484..600 {
            let mut sender = Sender::new(&user, level);
            sender.max_size = max_size;
            let answer = bench.send(&sender.datagram(&bulk), ALLOWED);
            let answer = answer.expect("an answer");
            assert!((max_size - 60..=max_size).contains(&answer.len()));
            assert!(sender.read(&answer).1.bindings.len() > 5);
        }
    }
}

#[test]
fn a_stranger_is_not_told_more_than_he_sent() {
    let user = user(AuthProtocol::Sha1, PrivacyProtocol::Aes128, 0);
    let mut bench = bench(user.clone());
    let mut sender = Sender::new(&user, SecurityLevel::NoAuthNoPriv);
    sender.engine_id.clear();
    sender.context_engine.clear();
    sender.user.name.clear();
    let discovery = sender.datagram(&Ask::of(PduKind::Get, &[]));
    bench.agent.config.amplification = 2;
    let answer = bench.send(&discovery, STRANGER).expect("a report");
    assert!(answer.len() <= 2 * discovery.len());
    bench.agent.config.amplification = 1;
    assert_eq!(bench.send(&discovery, STRANGER), Err(Reason::TooBig));
    assert_eq!(bench.agent.counters().snmp.silent_drops, 1);
}

#[test]
fn who_is_authentic_is_told_more_wherever_he_asks_from() {
    let user = user(AuthProtocol::Sha256, PrivacyProtocol::Aes128, 0);
    let mut bench = bench(user.clone());
    bench.agent.config.amplification = 2;
    bench.agent.config.authentic_amplification = 8;
    let bulk = Ask::bulk(0, 1_000, &[&[1, 3]]);
    let mut told = Vec::new();
    for level in [SecurityLevel::NoAuthNoPriv, SecurityLevel::AuthPriv] {
        let datagram = Sender::new(&user, level).datagram(&bulk);
        let answer = bench.send(&datagram, STRANGER).expect("an answer");
        let factor = if level == SecurityLevel::AuthPriv {
            8
        } else {
            2
        };
        assert!(answer.len() <= factor * datagram.len());
        assert!(
            answer.len() * 10 > factor * datagram.len() * 8,
            "{}",
            answer.len()
        );
        told.extend(bench.agent.take_limited());
        // Once is enough.
        bench.send(&datagram, STRANGER).expect("an answer");
        told.extend(bench.agent.take_limited());
    }
    assert_eq!(told, [("ann".to_owned(), STRANGER)]);
    // One that is old is not timely: it may be anybody's.
    let mut old = Sender::new(&user, SecurityLevel::AuthNoPriv);
    old.time_secs -= 151;
    let datagram = old.datagram(&bulk);
    let answer = bench.send(&datagram, STRANGER).expect("a report");
    assert!(answer.len() <= 2 * datagram.len());
    // From where he may ask, at full length.
    let datagram = Sender::new(&user, SecurityLevel::AuthPriv).datagram(&bulk);
    assert!(bench.send(&datagram, ALLOWED).expect("an answer").len() > 8 * datagram.len());
}

/// Two engines that report to each other's reports would never end
/// (RFC 3412 §6.4).
#[test]
fn nothing_is_reported_about_what_wants_no_answer() {
    let user = user(AuthProtocol::Sha1, PrivacyProtocol::Aes128, 0);
    let mut bench = bench(user.clone());
    let mut sender = Sender::new(&user, SecurityLevel::NoAuthNoPriv);
    sender.engine_id.clear();
    for (kind, is_reported) in [
        (PduKind::Get, true),
        (PduKind::GetBulk, true),
        (PduKind::Inform, true),
        (PduKind::Response, false),
        (PduKind::Report, false),
        (PduKind::Trap, false),
    ] {
        let datagram = sender.datagram(&Ask::of(kind, &[DESCR]));
        let answered = bench.send(&datagram, ALLOWED).is_ok();
        assert_eq!(answered, is_reported, "{kind:?}");
    }
}

#[test]
fn debug_shows_no_keys() {
    let agent = Agent::new(fixture::config()).expect("a sound configuration");
    let shown = format!("{agent:?}");
    // The keys' bytes, in both ways that Debug has; and a community.
    for secret in ["90, 90", "5a5a", "public", "112, 117, 98"] {
        assert!(!shown.contains(secret), "{secret}");
    }
}

#[test]
fn a_trap_of_v3_at_every_level() {
    use crate::notification::{Notification, Receiver};
    let user = user(AuthProtocol::Sha384, PrivacyProtocol::Des, 0);
    let mut bench = bench(user.clone());
    for level in [
        SecurityLevel::NoAuthNoPriv,
        SecurityLevel::AuthNoPriv,
        SecurityLevel::AuthPriv,
    ] {
        let receiver = Receiver::TrapV3 {
            user: b"ann",
            level,
            context: b"red",
        };
        let notification = Notification {
            name: &[1, 3, 6, 1, 6, 3, 1, 1, 5, 4],
            up_time: 9,
            bindings: &[(DESCR, Value::OctetString(b"up"))],
        };
        let agent = &mut bench.agent;
        let sent = agent.notify(&receiver, &notification, 4_711, NOW_MILLIS, &mut bench.out);
        let len = sent.expect("a trap");
        let (found, trap) = Sender::new(&user, level).read(&bench.out[..len]);
        assert_eq!(
            (found, trap.kind, trap.request_id),
            (level, PduKind::Trap, 4_711)
        );
        assert_eq!(trap.names()[2], DESCR);
    }
}
