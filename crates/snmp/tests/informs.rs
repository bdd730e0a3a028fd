//! Informs of v3: an engine is found out, its time is learned, and nothing
//! is believed that it did not sign. It is played by an agent of ours, whose
//! checks of incoming messages net-snmp's tools test; net-snmp's receiver is
//! told by the program's own tests.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by it")]
#![allow(dead_code, reason = "the fixture has more than one user")]

use std::net::IpAddr;

use fingerpost_snmp::agent::{ANSWER_BUFFER_BYTES, Agent, Outcome, Reason};
use fingerpost_snmp::config::{Config, RemoteUser};
use fingerpost_snmp::mib::DefaultContext;
use fingerpost_snmp::notification::{Notification, NotificationError, Receiver};
use fingerpost_snmp::pdu::PduKind;
use fingerpost_snmp::remote::{Heard, Refusal, Remote};
use fingerpost_snmp::usm::SecurityLevel;

#[path = "../../../fuzz/src/snmp.rs"]
mod fixture;

const OWN: &[u8] = b"\x80\x00\x1f\x88\x04sender";
const COLD_START: &[u32] = &[1, 3, 6, 1, 6, 3, 1, 1, 5, 1];

/// Who tells, and who is told.
struct Pair {
    sender: Agent,
    receiver: Agent,
    remote: Remote,
}

impl Pair {
    /// The sender has the keys of each of the receiver's users.
    fn new() -> Self {
        let config = fixture::config();
        let users = config.users.iter().cloned();
        let remote_users = users.map(|user| RemoteUser {
            engine_id: fixture::ENGINE_ID.to_vec(),
            user,
        });
        let sender = Config {
            engine_id: OWN.to_vec(),
            remote_users: remote_users.collect(),
            users: Vec::new(),
            ..fixture::config()
        };
        Self {
            sender: Agent::new(sender).expect("a sound configuration"),
            receiver: Agent::new(config).expect("a sound configuration"),
            remote: Remote::default(),
        }
    }

    fn discovery(&mut self) -> Vec<u8> {
        let mut out = vec![0; ANSWER_BUFFER_BYTES];
        let len = self.sender.discover(1, &mut out).expect("a question");
        out[..len].to_vec()
    }

    fn inform(&mut self, user: &[u8], now_millis: u64) -> Result<Vec<u8>, NotificationError> {
        let mut out = vec![0; ANSWER_BUFFER_BYTES];
        let told = Notification {
            name: COLD_START,
            up_time: 1,
            bindings: &[],
        };
        let receiver = Receiver::InformV3 {
            remote: &self.remote,
            user,
            context: b"",
        };
        let len = self
            .sender
            .notify(&receiver, &told, 7, now_millis, &mut out)?;
        Ok(out[..len].to_vec())
    }

    /// What the receiver says to a message.
    fn said(&mut self, message: &[u8], now_millis: u64) -> Result<Vec<u8>, Reason> {
        let objects = fixture::objects();
        let contexts = DefaultContext(&objects);
        let mut out = vec![0; ANSWER_BUFFER_BYTES];
        let from: IpAddr = fixture::ALLOWED;
        match self
            .receiver
            .answer(message, from, now_millis, &contexts, &mut out)
        {
            Outcome::Answered(len) => Ok(out[..len].to_vec()),
            Outcome::Dropped(reason) => Err(reason),
            Outcome::PutOff => panic!("it waits for nothing"),
        }
    }

    fn hear(&mut self, user: &[u8], said: &[u8], now_millis: u64) -> Heard {
        self.sender.hear(&mut self.remote, user, said, now_millis)
    }

    /// Finds the receiver and its time out, as of `now_millis` of both.
    fn meet(&mut self, user: &[u8], now_millis: u64) -> Vec<u8> {
        let question = self.discovery();
        let said = self.said(&question, now_millis).expect("a report");
        assert_eq!(self.hear(user, &said, now_millis), Heard::Learned);
        let inform = self.inform(user, now_millis).expect("an inform");
        let said = self.said(&inform, now_millis).expect("a report");
        assert_eq!(self.hear(user, &said, now_millis), Heard::Learned);
        said
    }
}

/// An agent takes no informs: it says so of one whose security is right.
const TAKEN: Result<Vec<u8>, Reason> = Err(Reason::Handler(PduKind::Inform));

#[test]
fn who_it_is_and_its_time_are_learned_and_then_it_takes_what_it_is_told() {
    for user in [&b"sealed"[..], b"signed"] {
        let mut pair = Pair::new();
        let now = fixture::NOW_MILLIS;
        let question = pair.discovery();
        let said = pair.said(&question, now).expect("a report");
        assert_eq!(pair.hear(user, &said, now), Heard::Learned);
        assert_eq!(pair.remote.engine_id(), Some(fixture::ENGINE_ID));
        // The same again is no news.
        assert_eq!(pair.hear(user, &said, now), Heard::Nothing);
        pair.meet_time(user, now);
        // Its time goes on with ours.
        for later in [now, now + 140_000, now + 1_000_000] {
            let inform = pair.inform(user, later).expect("an inform");
            assert_eq!(pair.said(&inform, later), TAKEN);
        }
        // It has started again, and says so.
        let boots = fixture::ENGINE_BOOTS + 1;
        let again = Config {
            engine_boots: boots,
            ..fixture::config()
        };
        pair.receiver = Agent::new(again).expect("a sound configuration");
        pair.meet_time(user, 5_000);
        let inform = pair.inform(user, 6_000).expect("an inform");
        assert_eq!(pair.said(&inform, 6_000), TAKEN);
    }
}

impl Pair {
    fn meet_time(&mut self, user: &[u8], now_millis: u64) {
        let inform = self.inform(user, now_millis).expect("an inform");
        let said = self.said(&inform, now_millis).expect("a report");
        assert_eq!(self.hear(user, &said, now_millis), Heard::Learned);
    }
}

#[test]
fn nothing_is_believed_that_is_not_signed_or_is_of_another_time() {
    let mut pair = Pair::new();
    let now = fixture::NOW_MILLIS;
    let report = pair.meet(b"sealed", now);
    // Changed anywhere, it says nothing.
    let mut fresh = Pair::new();
    let question = fresh.discovery();
    let said = fresh.said(&question, now).expect("a report");
    fresh.hear(b"sealed", &said, now);
    for at in 0..report.len() {
        let mut changed = report.clone();
        changed[at] ^= 1;
        let heard = fresh.hear(b"sealed", &changed, now);
        assert_eq!(heard, Heard::Nothing, "byte {at}");
    }
    // Said again when that time is over, it is old.
    assert_eq!(pair.hear(b"sealed", &report, now + 151_000), Heard::Nothing);
    // An acknowledgement in clear is one only of a user without keys.
    let mut forged = pair.discovery();
    let pdu = forged.iter().rposition(|&byte| byte == 0xa0);
    forged[pdu.expect("a request")] = 0xa2;
    assert_eq!(pair.hear(b"sealed", &forged, now), Heard::Nothing);
    assert_eq!(pair.hear(b"clear", &forged, now), Heard::Acknowledged(1));
    assert_eq!(pair.hear(b"nobody", &forged, now), Heard::Nothing);
}

#[test]
fn who_has_no_keys_there_or_wrong_ones_is_told_so() {
    let mut pair = Pair::new();
    let now = fixture::NOW_MILLIS;
    pair.meet(b"sealed", now);
    assert_eq!(
        pair.inform(b"nobody", now),
        Err(NotificationError::RemoteUser)
    );
    // Of another engine there are no keys.
    pair.remote = Remote::default();
    assert_eq!(
        pair.inform(b"sealed", now),
        Err(NotificationError::RemoteUser)
    );
    pair.meet(b"sealed", now);
    let inform = pair.inform(b"sealed", now).expect("an inform");
    let said = |pair: &mut Pair, change: fn(&mut Config)| {
        let mut config = fixture::config();
        change(&mut config);
        pair.receiver = Agent::new(config).expect("a sound configuration");
        let said = pair.said(&inform, now).expect("a report");
        pair.hear(b"sealed", &said, now)
    };
    let refused = said(&mut pair, |config| config.users.clear());
    assert_eq!(refused, Heard::Refused(Refusal::User));
    let refused = said(&mut pair, |config| {
        let signed = config.users[1].auth.clone();
        let sealed = &mut config.users[2];
        (sealed.auth, sealed.privacy) = (signed, None);
        sealed.minimum_level = SecurityLevel::NoAuthNoPriv;
    });
    assert_eq!(refused, Heard::Refused(Refusal::Level));
    let refused = said(&mut pair, |config| {
        config.users[2].auth = config.users[1].auth.clone();
    });
    assert_eq!(refused, Heard::Refused(Refusal::AuthKey));
}
