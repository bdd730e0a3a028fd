//! A feed by FPM.

use std::sync::Arc;

use lab::Random;
use table::{Feeder, Limits, Tables, Writer};

use super::peer::zebra::Zebra;
use super::peer::{by_id, framed, new};
use super::{Kind, Memory, Played, is_same, newest_part, owners};
use crate::fpm::{Frames, Now, Session};
use crate::recording::Taping;

/// A zebra's, with what `server::line` does between the two.
pub struct Life {
    pub first: Writer,
    random: Random,
    zebra: Zebra,
    session: Session,
    taping: Taping,
    tape: Arc<Memory>,
    frames: Option<Frames>,
    recorded: u32,
    now: Now,
    /// Ticks until the state that is being told is whole; 0: it is.
    told_after: usize,
}

impl Life {
    pub fn new(seed: u64, tape: Arc<Memory>) -> Self {
        let first = Writer::default();
        let feeder: Feeder = first.feeders().join("frr", Limits::default()).unwrap();
        Self {
            first,
            random: Random::new(seed),
            zebra: Zebra::default(),
            session: Session::new(feeder, "127.0.0.1:1".into()),
            taping: Taping::new(Some(Arc::clone(&tape) as _)),
            tape,
            frames: None,
            recorded: 0,
            now: Now::default(),
            told_after: 0,
        }
    }

    fn connect(&mut self) {
        let peer = "127.0.0.1:9";
        self.recorded = self.taping.connected(peer, &[], self.now);
        self.session.connected(peer, self.now);
        self.frames = Some(Frames::default());
    }

    fn lose(&mut self) {
        self.frames = None;
        self.taping.closed(self.recorded, "cut", false, self.now);
        self.session.lost("cut", false, self.now);
    }

    /// A frame, in two pieces: what comes between finds it half there.
    fn tell(&mut self, messages: &[Vec<u8>]) {
        if messages.is_empty() {
            return;
        }
        let bytes = framed(&messages.concat());
        let cut = self.random.below(bytes.len());
        let (first, second) = bytes.split_at(cut);
        self.hear(first);
        if self.random.below(8) == 0 {
            self.tick();
        }
        self.hear(second);
    }

    fn hear(&mut self, bytes: &[u8]) {
        let frames = self.frames.as_mut().unwrap();
        frames.push(bytes);
        self.taping.said(self.recorded, bytes, self.now);
        self.session.received(frames, self.now).unwrap();
        self.session.publish();
    }

    /// A second passes; now and then the recording begins another part.
    fn tick(&mut self) {
        self.now.monotonic += std::time::Duration::from_secs(1);
        self.now.millis += 1_000;
        self.told_after = match self.told_after {
            1 => {
                self.tape.whole();
                0
            }
            left => left.saturating_sub(1),
        };
        if self.random.below(3) == 0 {
            self.tape.next_part();
        }
        if self.taping.wants_state(self.now) {
            let state = self.session.state(self.recorded);
            let live = self.frames.iter();
            let pending = live.map(|frames| (self.recorded, frames.unread()));
            self.tape.fill();
            self.taping.tell(state, pending, self.now);
            self.told_after = 1 + self.random.below(4);
        }
        if self.session.tick(self.now).is_some() {
            self.taping.settled("", self.now);
        }
        self.session.publish();
    }

    fn rest(&mut self, most: usize) {
        for _ in 0..self.random.below(most) {
            self.tick();
        }
    }

    fn change(&mut self) {
        let told = self.zebra.change(&mut self.random);
        self.tell(&told);
    }

    /// Connects, changes, is cut, comes again as it was or as another.
    pub fn lives(&mut self) {
        self.tick();
        for _ in 0..1 + self.random.below(4) {
            self.connect();
            for item in self.zebra.objects.clone().values() {
                self.tell(&[new(item)]);
            }
            for (prefix, (metric, id)) in self.zebra.routes.clone() {
                self.tell(&[new(&by_id(&prefix, metric, id))]);
                if self.random.below(4) == 0 {
                    self.rest(3);
                }
            }
            for _ in 0..self.random.below(30) {
                self.change();
            }
            self.rest(60);
            if self.random.below(3) > 0 {
                self.lose();
                self.rest(4);
                if self.random.below(2) == 0 {
                    self.zebra = Zebra::default();
                }
            }
        }
        self.session.publish();
    }
}

/// Rows but for the ids that are our own, which are counted down anew.
fn rows(tables: &Tables) -> Vec<String> {
    let own = |id: u32| if id > u32::MAX / 2 { u32::MAX } else { id };
    let routes = tables.routes.iter().map(|route| {
        let mut body = (**route.body).clone();
        body.nexthop_id = body.nexthop_id.map(own);
        format!("{:?}", route.with_body(body))
    });
    let objects = tables.nexthops.iter().map(|object| {
        let mut object = (**object).clone();
        object.id = own(object.id);
        object.group.iter_mut().for_each(|one| one.id = own(one.id));
        format!("{object:?}")
    });
    let mut all: Vec<String> = routes.chain(objects).collect();
    all.sort();
    all
}

#[test]
fn a_replay_has_what_the_feed_had_also_of_the_newest_part_alone() {
    let (mut unconfirmed, mut parts) = (0, 0);
    for seed in 0..120 {
        let tape = Arc::new(Memory::default());
        let mut life = Life::new(seed, Arc::clone(&tape));
        life.lives();
        let records = tape.whole();
        let live = owners(&life.first);
        let newest = newest_part(&records);
        parts += usize::from(newest.len() < records.len());
        for (of, records) in [("all", &records[..]), ("the newest part", newest)] {
            let played = Played::of(Kind::Fpm, "frr", records).owners();
            let at = format!("seed {seed}, {of}");
            assert_eq!(rows(&played[0].1), rows(&live[0].1), "{at}");
            assert_eq!(played[0].3, live[0].3, "{at}");
            assert!(is_same(&played[0].2, &live[0].2), "{at}");
        }
        unconfirmed += usize::from(live[0].3 > 0);
    }
    assert!(unconfirmed > 10 && parts > 60, "{unconfirmed} {parts}");
}
