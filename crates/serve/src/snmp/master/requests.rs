//! Requests that wait for what subagents answer. Called by [`super`].

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use snmp::agentx::{Answer, Dispatch, Known, Master, Question};
use table::Fresh;

use super::super::fair::source;
use super::super::samples::Manner;
use super::super::socket::{Socket, Way};

/// Requests that wait at most, and of one source ([`source`]).
pub const MAX_REQUESTS: usize = 256;
const MAX_OF_SOURCE: usize = 64;
/// Bytes that subagents answered for all of them, beyond which no more are
/// taken.
const MAX_BYTES: usize = 64 << 20;
/// Questions that one request may have to wait for one after the other.
const MAX_ROUNDS: u32 = 64;
/// Milliseconds after which a request is answered with what there is: who
/// asked has long given up.
const LONGEST_MILLIS: u64 = 15_000;

/// A request that waits.
#[derive(Debug)]
pub struct Request {
    /// It, as it came.
    pub datagram: Box<[u8]>,
    /// Whence, and to which of our addresses.
    pub way: Way,
    /// Where it came in, and its answer goes out.
    pub socket: Arc<Socket>,
    /// When it came, by the engine's clock.
    pub arrived_millis: u64,
    /// What is known for it from an answer before.
    pub known: Known,
}

/// What became of a request.
#[derive(Debug)]
pub enum Answered {
    /// It is done with.
    Done,
    /// These are to be asked first.
    Missing(Vec<Question>),
    /// Samples of ours are too old. They are waited for no longer than this,
    /// and whoever gave a waker is woken as long as they are held.
    Waits(Vec<Fresh>, Duration),
}

/// Who can answer requests anew. Never waits.
pub trait Answers: Send + Sync {
    /// Answers a request from our objects and what is known of subagents',
    /// and sends the answer, into `out` first; or gives what it needs
    /// before. The last time it is answered whatever is missing.
    fn answer(
        &self,
        request: &Request,
        dispatch: &Dispatch,
        known: &Known,
        is_last: bool,
        manner: Manner,
        out: &mut [u8],
    ) -> Answered;
}

/// A request and what is known for it.
#[derive(Debug)]
struct Pending {
    request: Request,
    known: Known,
    /// Questions that are not answered.
    open: usize,
    since_millis: u64,
    /// What it waits for of our own, and until when it does.
    waits: Vec<Fresh>,
    until_millis: Option<u64>,
}

/// All that wait.
#[derive(Debug, Default)]
pub struct Requests {
    pending: BTreeMap<u64, Pending>,
    /// Whose each question is.
    asked: BTreeMap<u64, (u64, Question)>,
    last: u64,
    refused: u64,
}

impl Requests {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Bytes that subagents answered for all of them.
    fn len_bytes(&self) -> usize {
        let pending = self.pending.values();
        pending.map(|one| one.known.len_bytes()).sum()
    }

    /// How many were dropped: too many waited.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Takes one in, and asks what is missing for it. One that waits
    /// already was sent again.
    pub fn put(
        &mut self,
        request: Request,
        missing: Vec<Question>,
        master: &mut Master,
        now_millis: u64,
    ) {
        let mut others = self.pending.values().map(|one| &one.request);
        let again =
            |one: &Request| one.way.from == request.way.from && one.datagram == request.datagram;
        if others.any(again) {
            return;
        }
        let others = self.pending.values().map(|one| &one.request);
        let from = source(request.way.from);
        let of_source = others.filter(|one| source(one.way.from) == from).count();
        let is_full = self.len() >= MAX_REQUESTS || self.len_bytes() >= MAX_BYTES;
        if is_full || of_source >= MAX_OF_SOURCE {
            self.refused += 1;
            return;
        }
        self.last += 1;
        let id = self.last;
        let mut request = request;
        let pending = Pending {
            known: std::mem::take(&mut request.known),
            request,
            open: 0,
            since_millis: now_millis,
            waits: Vec::new(),
            until_millis: None,
        };
        self.pending.insert(id, pending);
        self.ask(id, missing, master, now_millis);
    }

    fn ask(&mut self, id: u64, missing: Vec<Question>, master: &mut Master, now_millis: u64) {
        let Some(pending) = self.pending.get_mut(&id) else {
            return;
        };
        pending.known.next_round();
        pending.open = missing.len();
        for question in missing {
            self.last += 1;
            self.asked.insert(self.last, (id, question.clone()));
            master.ask(self.last, question, now_millis);
        }
    }

    /// Takes the answer to a question; gives the request that waits for no
    /// other.
    pub fn answered(&mut self, token: u64, answer: Answer, now_millis: u64) -> Option<u64> {
        let (id, question) = self.asked.remove(&token)?;
        let answer = match self.len_bytes() >= MAX_BYTES {
            // There is no room for it.
            true => Answer::Failed,
            false => answer,
        };
        let pending = self.pending.get_mut(&id)?;
        pending.known.add(&question, answer, now_millis);
        pending.open -= 1;
        (pending.open == 0).then_some(id)
    }

    /// Requests that have waited for too long.
    pub fn overdue(&self, now_millis: u64) -> Vec<u64> {
        let is_due = |one: &Pending| now_millis.saturating_sub(one.since_millis) >= LONGEST_MILLIS;
        let due = self.pending.iter().filter(|(_, one)| is_due(one));
        due.map(|(id, _)| *id).collect()
    }

    /// When the first has waited for too long.
    pub fn deadline(&self) -> Option<u64> {
        let ends = |one: &Pending| {
            let samples = one.until_millis.filter(|_| !one.waits.is_empty());
            let all = one.since_millis + LONGEST_MILLIS;
            samples.map_or(all, |samples| samples.min(all))
        };
        self.pending.values().map(ends).min()
    }

    /// Requests that wait for samples of ours: all, where some came; else
    /// those that have waited for long enough.
    pub fn sampled(&self, some_came: bool, now_millis: u64) -> Vec<u64> {
        let is_due = |one: &Pending| {
            let is_over = one.until_millis.is_some_and(|until| until <= now_millis);
            !one.waits.is_empty() && (some_came || is_over)
        };
        let due = self.pending.iter().filter(|(_, one)| is_due(one));
        due.map(|(id, _)| *id).collect()
    }

    /// Answers a request by [`Answers::answer`], or asks what is still
    /// missing for it; who was answered, with what was known for it. `answer` is told what is known, whether it is the
    /// last time, and whether samples may be waited for.
    pub fn answer(
        &mut self,
        id: u64,
        is_last: bool,
        master: &mut Master,
        now_millis: u64,
        mut answer: impl FnMut(&Request, &Known, bool, bool) -> Answered,
    ) -> Option<(SocketAddr, Known)> {
        let pending = self.pending.get_mut(&id)?;
        let is_last = is_last || pending.known.rounds() >= MAX_ROUNDS;
        let is_over = pending.until_millis.is_some_and(|at| at <= now_millis);
        let may_wait = !is_last && !is_over;
        pending.waits.clear();
        match answer(&pending.request, &pending.known, is_last, may_wait) {
            Answered::Done => {
                if is_last {
                    self.asked.retain(|_, (of, _)| *of != id);
                }
                let done = self.pending.remove(&id);
                return done.map(|done| (done.request.way.from, done.known));
            }
            Answered::Missing(missing) => self.ask(id, missing, master, now_millis),
            Answered::Waits(waits, patience) => {
                pending.waits = waits;
                // All its waits together are no longer than the first may be.
                let until = now_millis + patience.as_millis() as u64;
                pending.until_millis.get_or_insert(until);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use snmp::agentx::{MasterConfig, OwnedValue, Row, What};
    use table::{Sampled, Samples};

    use super::*;

    fn question(session: u32) -> Question {
        Question {
            session,
            context: Vec::new(),
            timeout_millis: 1_000,
            what: What::Get([1, 3].into()),
        }
    }

    /// A world of requests, without a subagent: each question fails.
    struct Bench {
        requests: Requests,
        master: Master,
        socket: Arc<Socket>,
    }

    impl Bench {
        fn new() -> Self {
            let address = "127.0.0.1:0".parse().unwrap();
            Self {
                requests: Requests::default(),
                master: Master::new(MasterConfig {
                    timeout_millis: 1_000,
                    own: Vec::new(),
                }),
                socket: Arc::new(Socket::bind(address, Duration::from_secs(1)).unwrap()),
            }
        }

        fn put(&mut self, datagram: &[u8], from: &str) {
            let request = Request {
                datagram: datagram.into(),
                way: Way::of(from.parse().unwrap()),
                socket: Arc::clone(&self.socket),
                arrived_millis: 0,
                known: Known::default(),
            };
            let missing = vec![question(1), question(2)];
            self.requests.put(request, missing, &mut self.master, 0);
        }

        /// Takes what became of questions; gives the requests that wait for
        /// no other.
        fn answered(&mut self) -> Vec<u64> {
            let mut ready = Vec::new();
            for event in self.master.events() {
                if let snmp::agentx::Event::Answered { token, answer } = event {
                    ready.extend(self.requests.answered(token, answer, 0));
                }
            }
            ready
        }

        /// Answers a request; `missing` are the questions that it still has.
        fn answer(&mut self, id: u64, is_last: bool, missing: usize) -> bool {
            let mut was_last = false;
            self.requests
                .answer(id, is_last, &mut self.master, 0, |_, _, is_last, _| {
                    was_last = is_last;
                    match is_last || missing == 0 {
                        true => Answered::Done,
                        false => Answered::Missing((0..missing).map(|_| question(1)).collect()),
                    }
                });
            was_last
        }

        /// Answers a request that waits for a sample for 100 ms as long as
        /// it may; whether it might.
        fn wait(&mut self, id: u64, now_millis: u64) -> bool {
            let mut might = false;
            self.requests
                .answer(id, false, &mut self.master, now_millis, |_, _, _, may| {
                    might = may;
                    let waits = || Samples::new(|| {}).fresh(Sampled::Links, Instant::now());
                    match may {
                        true => Answered::Waits(vec![waits()], Duration::from_millis(100)),
                        false => Answered::Done,
                    }
                });
            might
        }
    }

    #[test]
    fn a_request_goes_on_when_all_its_questions_have_an_end() {
        let mut bench = Bench::new();
        bench.put(b"one", "192.0.2.1:1");
        let ready = bench.answered();
        assert_eq!((ready.len(), bench.requests.len()), (1, 1));
        assert!(!bench.answer(ready[0], false, 3));
        let again = bench.answered();
        assert_eq!(again, ready);
        assert!(!bench.answer(ready[0], false, 0));
        assert_eq!(bench.requests.len(), 0);
        assert!(bench.requests.asked.is_empty() && bench.requests.deadline().is_none());
    }

    #[test]
    fn one_that_never_has_enough_is_answered_in_the_end() {
        let mut bench = Bench::new();
        bench.put(b"one", "192.0.2.1:1");
        let rounds = (0..).find(|_| {
            let ready = bench.answered();
            bench.answer(ready[0], false, 1)
        });
        assert_eq!(rounds, Some(MAX_ROUNDS as usize - 1));
        assert_eq!(bench.requests.len(), 0);
        // And so is one that has waited for too long; what comes later is
        // nobody's.
        bench.put(b"two", "192.0.2.1:1");
        assert_eq!(bench.requests.deadline(), Some(LONGEST_MILLIS));
        assert!(bench.requests.overdue(LONGEST_MILLIS - 1).is_empty());
        let overdue = bench.requests.overdue(LONGEST_MILLIS);
        assert!(bench.answer(overdue[0], true, 1));
        assert!(bench.answered().is_empty() && bench.requests.asked.is_empty());
    }

    #[test]
    fn what_subagents_answer_for_all_is_bounded() {
        let mut bench = Bench::new();
        for number in 0..MAX_REQUESTS as u32 {
            let host = number / MAX_OF_SOURCE as u32 + 1;
            bench.put(&number.to_be_bytes(), &format!("192.0.2.{host}:1"));
        }
        let tokens: Vec<u64> = bench.requests.asked.keys().copied().collect();
        assert_eq!(tokens.len(), 2 * MAX_REQUESTS);
        for token in tokens {
            let row = Row {
                name: [1, 3].into(),
                value: OwnedValue::OctetString(vec![0; 1 << 20].into()),
            };
            let rows = vec![row];
            let answer = Answer::Rows { rows, ended: true };
            bench.requests.answered(token, answer, 0);
            assert!(bench.requests.len_bytes() < MAX_BYTES + (2 << 20));
        }
        assert!(bench.requests.len_bytes() >= MAX_BYTES);
        // No further one is taken in until one is answered.
        bench.answer(1, true, 0);
        bench.put(b"late", "192.0.2.77:1");
        assert_eq!(bench.requests.len(), MAX_REQUESTS);
    }

    #[test]
    fn one_that_waits_for_our_own_goes_on_when_it_came_or_at_the_end() {
        let mut bench = Bench::new();
        bench.put(b"one", "192.0.2.1:1");
        let id = bench.answered()[0];
        assert!(bench.requests.sampled(true, 0).is_empty());
        assert!(bench.wait(id, 10));
        assert_eq!(bench.requests.deadline(), Some(110));
        assert!(bench.requests.sampled(false, 109).is_empty());
        assert_eq!(bench.requests.sampled(true, 50), [id]);
        // What came was not enough: it waits on, to the same end.
        assert!(bench.wait(id, 50));
        assert_eq!(bench.requests.deadline(), Some(110));
        assert_eq!(bench.requests.sampled(false, 110), [id]);
        assert!(!bench.wait(id, 110));
        assert_eq!(bench.requests.len(), 0);
    }

    #[test]
    fn places_are_shared_and_what_is_sent_again_takes_none() {
        let mut bench = Bench::new();
        for _ in 0..3 {
            bench.put(b"again", "192.0.2.1:1");
        }
        assert_eq!((bench.requests.len(), bench.requests.refused()), (1, 0));
        for number in 0..MAX_OF_SOURCE {
            bench.put(&number.to_be_bytes(), "192.0.2.1:1");
        }
        assert_eq!(bench.requests.len(), MAX_OF_SOURCE);
        assert_eq!(bench.requests.refused(), 1);
        for host in 2..=9 {
            for number in 0..MAX_OF_SOURCE {
                bench.put(&number.to_be_bytes(), &format!("192.0.2.{host}:1"));
            }
        }
        assert_eq!(bench.requests.len(), MAX_REQUESTS);
        // A network of IPv6 is one source, whatever addresses it uses.
        let mut bench_v6 = Bench::new();
        for number in 0..=MAX_OF_SOURCE {
            bench_v6.put(b"v6", &format!("[2001:db8::{number:x}]:1"));
        }
        assert_eq!(bench_v6.requests.len(), MAX_OF_SOURCE);
        // One that is answered makes room for another.
        let ready = bench.answered();
        bench.answer(ready[0], false, 0);
        bench.put(b"late", "192.0.2.77:1");
        assert_eq!(bench.requests.len(), MAX_REQUESTS);
    }
}
