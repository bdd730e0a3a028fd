//! What the model makes of the engine's verdicts: each is the model's, and what
//! gave way was what may give way.

use super::*;

impl World {
    /// Whether a few packets may take the last room or the last ports.
    pub(super) fn may_evict(&self) -> bool {
        const MOST: usize = 40;
        let model = &self.model;
        let limits = model.config.limits.max_flows;
        let full = model.flows.len() + MOST >= limits || (model.strangers() + MOST) * 4 >= limits;
        full || model.config.blocks.is_some()
            || model.config.ports.len() <= model.flows.len() + MOST
    }

    /// Takes out of the model what the engine ended for others.
    pub(super) fn note_evicted(&mut self, asked: &Tuple, packets: usize) {
        let now = self.nat.statistics();
        let many = now.flows_evicted - self.before.flows_evicted;
        let before = std::mem::replace(&mut self.before, now);
        if many == 0 {
            return;
        }
        assert_eq!(packets, 1, "evicted among several");
        let nat = &self.nat;
        let end = |(address, port): End| (IpAddr::from(address), port);
        self.model.evicted(&before, many, asked, |flow| {
            let (inside, remote) = (end(flow.inside), end(flow.remote));
            let found = nat.lookup(Direction::Out, flow.protocol, inside, remote);
            found.is_some_and(|found| (ipv4(found.alias), found.alias_port) == flow.alias)
        });
    }

    /// Whether a refusal may be due to flows that have expired but were not swept: a
    /// large range or table is not looked through for every packet, and a
    /// shared mapping lives as long as the longest-lived of its flows would
    /// have.
    pub(super) fn is_early(&self, tuple: &Tuple, verdict: Verdict) -> bool {
        match verdict {
            Verdict::PortsExhausted => {
                self.model.find_out(tuple).is_some() || !self.model.is_exhausted(tuple)
            }
            Verdict::OverQuota => {
                self.model.find_out(tuple).is_some() || !self.model.is_over(tuple)
            }
            Verdict::TableFull => {
                let known = self
                    .model
                    .find_out(tuple)
                    .or_else(|| self.model.find_in(tuple));
                let room = self.model.flows.len() < self.model.config.limits.max_flows;
                known.is_none() && room
            }
            _ => false,
        }
    }

    /// The model as it would be with the flows that the engine has.
    pub(super) fn engines_own(&self) -> Model {
        let mut flows = Vec::new();
        let mut cursor = Some(Default::default());
        while let Some(from) = cursor {
            cursor = self.nat.flows(from, 100, &mut |flow| {
                let shared = self.model.behaviour(flow.protocol).mapping;
                flows.push(Flow {
                    protocol: flow.protocol,
                    inside: (ipv4(flow.inside), flow.inside_port),
                    remote: (ipv4(flow.remote), flow.remote_port),
                    alias: (ipv4(flow.alias), flow.alias_port),
                    last: self.model.now,
                    out: true,
                    incoming: true,
                    mapped: shared != Dependence::AddressAndPort,
                    permits: shared != Dependence::AddressAndPort,
                    doubt: None,
                    gone: false,
                    stranger: false,
                });
            });
        }
        let mut had = self.model.had.clone();
        had.extend(flows.iter().map(|flow| flow.alias));
        Model {
            config: self.model.config.clone(),
            flows,
            had,
            rules: self.model.rules.clone(),
            by_rule: 0,
            as_they_are: 0,
            gave_way: false,
            given: self.model.given.clone(),
            moved: self.model.moved,
            now: self.model.now,
        }
    }

    pub(super) fn translate(
        &mut self,
        direction: Direction,
        packets: &mut [Vec<u8>],
    ) -> Vec<Verdict> {
        let (nat, clock) = (&mut self.nat, self.clock);
        if self.random.chance(50) {
            let one = |packet: &mut Vec<u8>| match direction {
                Direction::Out => nat.translate_out(packet, clock),
                Direction::In => nat.translate_in(packet, clock),
            };
            return packets.iter_mut().map(one).collect();
        }
        let mut batch: Vec<_> = packets.iter_mut().map(|bytes| Packet::new(bytes)).collect();
        match direction {
            Direction::Out => nat.translate_out_batch(&mut batch, clock),
            Direction::In => nat.translate_in_batch(&mut batch, clock),
        }
        batch.iter().map(|packet| packet.verdict).collect()
    }

    pub(super) fn check(
        &mut self,
        direction: Direction,
        tuple: &Tuple,
        verdict: Verdict,
        before: &[u8],
        after: &[u8],
    ) {
        if verdict != Verdict::Translated {
            assert_eq!(before, after, "{verdict:?} changes nothing");
        }
        let (was, payload, absent) = read(before, direction);
        assert_eq!(was, *tuple);
        let (is, translated, still_absent) = read(after, direction);
        assert_eq!((payload, absent), (translated, still_absent));
        match direction {
            Direction::Out => {
                assert_eq!(is.destination, tuple.destination);
                self.model.out(tuple, verdict, is.source);
            }
            Direction::In => {
                assert_eq!(is.source, tuple.source);
                self.model.incoming(tuple, verdict, is.destination);
            }
        }
    }

    /// No two flows share an outside tuple, and all the model knows to be
    /// alive are there.
    pub(super) fn compare(&self) {
        let mut seen = Vec::new();
        let mut cursor = Some(Default::default());
        while let Some(from) = cursor {
            cursor = self.nat.flows(from, 100, &mut |flow| {
                seen.push((
                    flow.protocol,
                    ipv4(flow.remote),
                    flow.remote_port,
                    ipv4(flow.alias),
                    flow.alias_port,
                ));
            });
        }
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all, "two flows share an outside tuple");
        for flow in &self.model.flows {
            let key = (
                flow.protocol,
                flow.remote.0,
                flow.remote.1,
                flow.alias.0,
                flow.alias.1,
            );
            if self.model.is(flow) == Is::Alive {
                assert!(seen.binary_search(&key).is_ok(), "{flow:?} is lost");
            }
        }
    }
}
