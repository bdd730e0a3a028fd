//! Changes of rows on their way to the kernel, in packs. Lines of a batch
//! are read on one thread while those before them are sent by another, so
//! that reading costs no time where the kernel takes longer. Called by
//! [`super::session`].

use std::io;
use std::sync::mpsc::{Receiver, Sender as Outgoing, SyncSender, channel, sync_channel};
use std::thread;

use change::rows::{Asked, message};
use linux::Namespace;
use linux::bulk::{self, Bulk, Heard, PACK_REQUESTS};
use linux::step::Step;
use netlink::decode::Item;

use super::stop::Stop;

/// What is said of a change whose answer did not come.
const LOST: &str = "the kernel's answer was lost; look whether the change was made";
/// Packs that have been read and wait for the one that is being sent.
const AHEAD: usize = 4;

/// What writes the request of a change. What does not fit a message is told
/// as a request that the kernel does not take.
pub fn request(asked: &Asked, now_millis: u64) -> impl FnOnce(u32, &mut Vec<u8>) {
    move |sequence, out| {
        let _ = message(asked, sequence, now_millis, out);
    }
}

/// How the changes of a pack follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Each is known to be done before the next is sent; none is behind one
    /// that was refused, and so is no later pack.
    #[default]
    OneByOne,
    /// All are sent, whatever becomes of each.
    Together,
}

/// Changes that are sent one after the other, with the lines they are of.
#[derive(Default)]
pub struct Pack {
    order: Order,
    changes: Vec<(Asked, u64)>,
}

impl Pack {
    /// Whether a change of this order can go with those that are in it.
    pub fn takes(&self, order: Order) -> bool {
        self.changes.is_empty() || self.order == order
    }

    /// Puts a change behind the others, which have the same order.
    pub fn put(&mut self, order: Order, asked: Asked, line: u64) {
        self.order = order;
        self.changes.push((asked, line));
    }

    /// Changes in it.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether it is worth sending by itself.
    pub fn is_full(&self) -> bool {
        self.changes.len() >= PACK_REQUESTS
    }
}

/// A line that the kernel refused.
#[derive(Debug)]
pub struct Failed {
    /// Its number.
    pub line: u64,
    /// What is said of it.
    pub text: String,
    /// `ip` leaves at once where the kernel refuses a neighbour.
    pub leaves: bool,
}

/// What became of a pack.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Lines that were refused, in order.
    pub failed: Vec<Failed>,
    /// Nothing more is sent.
    pub has_ended: bool,
}

/// A way to the kernel.
pub struct Sender {
    namespace: Namespace,
    step: Step,
    bulk: Option<Bulk<'static>>,
}

impl Sender {
    /// Opens one in a namespace.
    pub fn open(namespace: &Namespace) -> Result<Self, linux::Error> {
        Ok(Self {
            namespace: namespace.clone(),
            step: Step::open(namespace)?,
            bulk: None,
        })
    }

    /// For a change by itself.
    pub fn step(&mut self) -> &mut Step {
        &mut self.step
    }

    /// Sends a pack.
    pub fn send(&mut self, pack: &Pack) -> Result<Outcome, linux::Error> {
        match pack.order {
            Order::OneByOne => self.one_by_one(pack),
            Order::Together => self.together(pack),
        }
    }

    fn one_by_one(&mut self, pack: &Pack) -> Result<Outcome, linux::Error> {
        let now = linux::mirror::now_millis();
        for (asked, line) in &pack.changes {
            let answered = self.step.apply(request(asked, now))?;
            if let Err(refusal) = answered {
                let failed = Failed {
                    line: *line,
                    text: Stop::words_of(&refusal),
                    leaves: matches!(asked.item, Item::Neighbour(_)),
                };
                return Ok(Outcome {
                    failed: vec![failed],
                    has_ended: true,
                });
            }
        }
        Ok(Outcome::default())
    }

    fn together(&mut self, pack: &Pack) -> Result<Outcome, linux::Error> {
        let bulk = match &mut self.bulk {
            Some(bulk) => bulk,
            None => {
                let options = bulk::Options::default();
                self.bulk.insert(Bulk::open(&self.namespace, options)?)
            }
        };
        let now = linux::mirror::now_millis();
        let changes = pack.changes.iter().map(|(asked, _)| request(asked, now));
        let mut outcome = Outcome::default();
        let mut failed = |place: usize, text: String| {
            outcome.failed.push(Failed {
                line: pack.changes.get(place).map_or(0, |(_, line)| *line),
                text,
                leaves: false,
            });
        };
        bulk.run(changes, &mut |heard| match heard {
            Heard::Refused(place, refusal) => failed(place, Stop::words_of(&refusal)),
            Heard::Lost(place) => failed(place, LOST.to_owned()),
            Heard::Done(_) | Heard::Echo(..) | Heard::Sent(_) => {}
        })?;
        Ok(outcome)
    }
}

/// What a thread that sends says of each pack.
type Told = Result<Outcome, linux::Error>;

/// A thread that sends packs in order. It ends when this is dropped, when a
/// pack has ended the batch, or when the kernel cannot be reached.
pub struct Beside {
    packs: SyncSender<Pack>,
    told: Receiver<Told>,
    under_way: usize,
}

impl Beside {
    /// Starts one.
    pub fn start(namespace: &Namespace) -> io::Result<Self> {
        let (packs, incoming) = sync_channel(AHEAD);
        let (outgoing, told) = channel();
        let namespace = namespace.clone();
        let sends = move || send_all(&namespace, &incoming, &outgoing);
        thread::Builder::new().name("sender".into()).spawn(sends)?;
        Ok(Self {
            packs,
            told,
            under_way: 0,
        })
    }

    /// Hands a pack over; waits while too many are under way.
    pub fn hand(&mut self, pack: Pack) {
        // A thread that has ended has said why, which is heard next.
        let _ = self.packs.send(pack);
        self.under_way += 1;
    }

    /// What became of the next pack, if that is known by now.
    pub fn heard(&mut self) -> Option<Told> {
        let told = self.told.try_recv().ok()?;
        self.under_way = self.under_way.saturating_sub(1);
        Some(told)
    }

    /// What became of the next pack, once it is known; `None`: none is under
    /// way.
    pub fn wait(&mut self) -> Option<Told> {
        self.under_way = self.under_way.checked_sub(1)?;
        Some(self.told.recv().unwrap_or_else(|_| {
            Err(linux::Error::System {
                what: "send changes on a thread of their own",
                source: io::Error::other("it ended; look which changes were made"),
            })
        }))
    }
}

fn send_all(namespace: &Namespace, packs: &Receiver<Pack>, told: &Outgoing<Told>) {
    let mut sender = None;
    for pack in packs {
        let sent = match &mut sender {
            Some(sender) => Sender::send(sender, &pack),
            None => Sender::open(namespace).and_then(|new| sender.insert(new).send(&pack)),
        };
        let has_ended = !matches!(&sent, Ok(outcome) if !outcome.has_ended);
        if told.send(sent).is_err() || has_ended {
            return;
        }
    }
}
