//! A station.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use lab::Random;
use lab::bmp::{Peer, flag, initiation, open, reach_v6};
use lab::mrt::Attributes;
use table::{Limits, Tables, Writer};

use super::{Kind, Memory, Played, is_same, newest_part, owners};
use crate::bmp::{Heard, Messages, Now, RouterId, Station, StationLimits};
use crate::recording::Taping;

/// Routers' lives, with what `server::routers` does between.
struct Life {
    first: Writer,
    random: Random,
    station: Station,
    taping: Taping,
    tape: Arc<Memory>,
    connected: BTreeMap<usize, Connected>,
    now: Now,
    /// Ticks until the state that is being told is whole; 0: it is.
    told_after: usize,
}

struct Connected {
    id: RouterId,
    recorded: u32,
    messages: Messages,
}

/// Of two of a name at one address the second is `edge_2`.
const ROUTERS: [&str; 3] = ["edge", "edge", "core"];

fn peer(at: usize) -> Peer {
    match at {
        0 => Peer::new([192, 0, 2, 1].into(), 65_001),
        1 => Peer::new("2001:db8::2".parse().unwrap(), 70_000),
        2 => Peer {
            kind: 1,
            distinguisher: [0, 0, 0xfd, 0xe8, 0, 0, 0, 7],
            ..Peer::new([192, 0, 2, 3].into(), 65_003)
        },
        _ => Peer::loc_rib(65_000),
    }
}

impl Life {
    fn new(seed: u64, tape: Arc<Memory>) -> Self {
        let first = Writer::default();
        let own = first.feeders().join("bmp", Limits::default()).unwrap();
        let limits = StationLimits::default();
        Self {
            station: Station::new(own, first.feeders(), "127.0.0.1:1".into(), limits),
            first,
            random: Random::new(seed),
            taping: Taping::new(Some(Arc::clone(&tape) as _)),
            tape,
            connected: BTreeMap::new(),
            now: Now::default(),
            told_after: 0,
        }
    }

    fn connect(&mut self, at: usize) {
        let from = SocketAddr::from(([127, 0, 0, 1], 1_000 + at as u16));
        let bytes = initiation(ROUTERS[at]);
        let mut messages = Messages::default();
        messages.push(&bytes);
        let recorded = self.taping.connected(&from.to_string(), &bytes, self.now);
        let id = self.station.connected(from, &mut messages, self.now);
        let one = Connected {
            id: id.unwrap(),
            recorded,
            messages,
        };
        self.connected.insert(at, one);
    }

    fn lose(&mut self, at: usize) {
        let one = self.connected.remove(&at).unwrap();
        self.taping.closed(one.recorded, "cut", false, self.now);
        self.station.lost(one.id, "cut", false, self.now);
    }

    fn tell(&mut self, at: usize, bytes: &[u8]) {
        let cut = self.random.below(bytes.len());
        let (first, second) = bytes.split_at(cut);
        self.hear(at, first);
        if self.random.below(12) == 0 {
            self.tick();
        }
        self.hear(at, second);
    }

    fn hear(&mut self, at: usize, bytes: &[u8]) {
        let one = self.connected.get_mut(&at).unwrap();
        one.messages.push(bytes);
        self.taping.said(one.recorded, bytes, self.now);
        let heard = self.station.received(one.id, &mut one.messages, self.now);
        assert_eq!(heard.unwrap(), Heard::On);
        self.station.publish();
    }

    fn tick(&mut self) {
        self.now.monotonic += Duration::from_secs(1);
        self.now.millis += 1_000;
        self.told_after = match self.told_after {
            1 => {
                self.tape.whole();
                0
            }
            left => left.saturating_sub(1),
        };
        if self.random.below(10) == 0 {
            self.tape.next_part();
        }
        if self.taping.wants_state(self.now) {
            let (connected, taping) = (&self.connected, &mut self.taping);
            let state = self.station.state(|id| {
                let of_router = connected.values().find(|one| one.id == id);
                of_router.map_or_else(|| taping.next_connection(), |one| one.recorded)
            });
            let all = connected.values();
            let pending = all.map(|one| (one.recorded, one.messages.unread()));
            self.tape.fill();
            taping.tell(state, pending, self.now);
            self.told_after = 1 + self.random.below(4);
        }
        let (taping, now) = (&mut self.taping, self.now);
        let settled = &mut |table: &str| taping.settled(table, now);
        self.station.tick(now, settled);
        self.station.publish();
    }

    fn step(&mut self) {
        let at = self.random.below(ROUTERS.len());
        match self.random.below(16) {
            0 if self.connected.contains_key(&at) => self.lose(at),
            _ if !self.connected.contains_key(&at) => self.connect(at),
            1 => {
                for _ in 0..self.random.below(40) {
                    self.tick();
                }
            }
            2 => {
                let down = self.peer().down(4, &[]);
                self.tell(at, &down);
            }
            3 | 4 => {
                let up = self.up();
                self.tell(at, &up);
            }
            5 => {
                let is_v6 = self.random.below(2) == 0;
                let end = self.table().end_of_rib(is_v6);
                self.tell(at, &end);
            }
            _ => {
                let update = self.update();
                self.tell(at, &update);
            }
        }
    }

    fn peer(&mut self) -> Peer {
        peer(self.random.below(4))
    }

    fn table(&mut self) -> Peer {
        let peer = self.peer();
        let flags = [0, 0, flag::POST_POLICY, flag::OUT];
        match peer.kind {
            3 => peer,
            _ => peer.with(flags[self.random.below(flags.len())]),
        }
    }

    /// A Peer Up: that of 192.0.2.3 with path identifiers of IPv4, which its
    /// router does not write.
    fn up(&mut self) -> Vec<u8> {
        let peer = self.peer();
        if peer.kind != 1 {
            return peer.plain_up();
        }
        let both = [(1, &[0, 1, 0, 1][..]), (69, &[0, 1, 1, 3])];
        let open = open(peer.asn, &both);
        peer.up(&open, &open)
    }

    fn update(&mut self) -> Vec<u8> {
        let peer = self.table();
        let number = |random: &mut Random| random.below(12) as u8;
        let path = [peer.asn, 1 + self.random.below(90_000) as u32];
        let how = Attributes::default()
            .origin(0)
            .as_path(&[(2, path.to_vec())]);
        if self.random.below(3) == 0 {
            let one = [
                0x2001,
                0xdb8,
                u16::from(number(&mut self.random)),
                0,
                0,
                0,
                0,
                0,
            ];
            let prefix = IpNet::new(one.into(), 48).unwrap();
            let hop = "2001:db8::9".parse().unwrap();
            return peer.update(&[], &reach_v6(how, hop, &[prefix]), &[]);
        }
        let some: Vec<IpNet> = (0..1 + self.random.below(3))
            .map(|_| IpNet::new([10, number(&mut self.random), 0, 0].into(), 16).unwrap())
            .collect();
        match self.random.below(4) {
            0 => peer.update(&some, &Attributes::default(), &[]),
            _ => peer.update(&[], &how.next_hop([198, 51, 100, 1].into()), &some),
        }
    }
}

fn rows(tables: &Tables) -> Vec<String> {
    tables
        .routes
        .iter()
        .map(|route| format!("{route:?}"))
        .collect()
}

#[test]
fn a_replay_has_what_the_station_had_also_of_the_newest_part_alone() {
    let (mut unconfirmed, mut seen) = (0, 0);
    for seed in 0..80 {
        let tape = Arc::new(Memory::default());
        let mut life = Life::new(seed, Arc::clone(&tape));
        life.tick();
        for _ in 0..120 {
            life.step();
        }
        life.station.publish();
        let records = tape.whole();
        let live = owners(&life.first);
        for (of, records) in [
            ("all", &records[..]),
            ("the newest part", newest_part(&records)),
        ] {
            let played = Played::of(Kind::Bmp, "bmp", records).owners();
            let at = format!("seed {seed}, {of}");
            let names = |of: &[(String, _, _, _)]| of.iter().map(|one| one.0.clone()).collect();
            let (ours, theirs): (Vec<String>, Vec<String>) = (names(&played), names(&live));
            assert_eq!(ours, theirs, "{at}");
            for (ours, theirs) in played.iter().zip(&live) {
                assert_eq!(rows(&ours.1), rows(&theirs.1), "{at}, {}", ours.0);
                assert_eq!(ours.3, theirs.3, "{at}, {}", ours.0);
                assert!(
                    is_same(&ours.2, &theirs.2),
                    "{at}, {}: {:?} {:?}",
                    ours.0,
                    ours.2,
                    theirs.2
                );
            }
        }
        seen += live.iter().map(|one| one.1.routes.len()).sum::<usize>();
        unconfirmed += usize::from(live.iter().any(|one| one.3 > 0));
    }
    assert!(unconfirmed > 10 && seen > 1_000, "{unconfirmed} {seen}");
}
