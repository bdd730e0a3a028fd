//! Established flows that the program at XDP translates in the engine's place.
//! The engine lends them, hears when they were used last, and takes them back
//! when it ends them or when a segment may. Called by `tun`.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use dataplane::Batch;
use dataplane::xdp::{Flow, Forwarding, Place, note};
use nat::{Direction, Nat, Offloaded, Recall};
use packet::{Ipv4, icmp, protocol, unfinished};

/// How often all flows are asked when they were used last: well within the
/// least timeout of what is offloaded.
const ROUND_MILLIS: u64 = 5_000;
/// How often a piece of them is read in a round.
const PIECE_MILLIS: u64 = 20;
/// How often the program is told that the engine answers, and for how long.
const BEAT_MILLIS: u64 = 200;
const ANSWERS: Duration = Duration::from_secs(1);
/// Timeouts of flows that are offloaded are at least three rounds.
pub const LEAST_TIMEOUT_SECS: u32 = 3 * (ROUND_MILLIS / 1_000) as u32;

/// See the module.
pub struct Offloading {
    forwarding: Arc<Forwarding>,
    /// Flows that the program knows, as told.
    count: Arc<AtomicU64>,
    /// When the engine's thread was here last, for who watches it.
    beat: Arc<AtomicU64>,
    place: Place,
    /// When the round began, and when its last piece was read; no round:
    /// when the last one ended.
    began: u64,
    read: u64,
    is_in_round: bool,
}

impl Offloading {
    /// By what forwards.
    pub fn new(forwarding: Arc<Forwarding>, count: Arc<AtomicU64>, beat: Arc<AtomicU64>) -> Self {
        Self {
            forwarding,
            count,
            beat,
            place: Place::default(),
            began: 0,
            read: 0,
            is_in_round: false,
        }
    }

    /// Before packets are translated: what the program noted of them.
    pub fn before(
        &mut self,
        nat: &mut Nat,
        direction: Direction,
        batch: &mut Batch,
    ) -> anyhow::Result<()> {
        for buffer in batch.packets_mut() {
            let notes = buffer.mark();
            buffer.set_mark(0);
            if notes & note::UNFINISHED != 0 {
                // What cannot be finished is as wrong as it came.
                let _ = unfinished::finish(buffer.packet_mut());
            }
            if notes & note::TAKE_BACK != 0
                && let Some(flow) = nat.take_back(direction, buffer.packet())
            {
                self.leave(&flow_of(&flow))?;
            }
        }
        Ok(())
    }

    /// Behind it: flows that may be translated elsewhere from now on. What
    /// the engine refuses, because it has not seen what this host sent, is the
    /// host's.
    pub fn behind(
        &mut self,
        nat: &mut Nat,
        direction: Direction,
        batch: &mut Batch,
    ) -> anyhow::Result<()> {
        for buffer in batch.packets_mut() {
            if buffer.is_discarded() {
                let is_hosts = direction == Direction::In && is_for_host(buffer.packet());
                buffer.set_discarded(!is_hosts);
                continue;
            }
            if let Some(flow) = nat.offload(direction, buffer.packet()) {
                // One that there is no room for is the engine's.
                let is_entered = self.forwarding.enter(&flow_of(&flow))?;
                self.count.fetch_add(u64::from(is_entered), Relaxed);
            }
        }
        Ok(())
    }

    /// Has the program forget what the engine has ended.
    pub fn recall(&mut self, nat: &mut Nat) -> anyhow::Result<()> {
        while let Some(recall) = nat.next_recalled() {
            match recall {
                Recall::Flow(flow) => self.leave(&flow_of(&flow))?,
                Recall::All => {
                    self.forwarding.leave_all()?;
                    self.count.store(0, Relaxed);
                }
            }
        }
        Ok(())
    }

    /// To be called again and again: tells the program that the engine
    /// answers, and the engine which flows were used.
    pub fn tend(&mut self, nat: &mut Nat, now_millis: u64) -> anyhow::Result<()> {
        if now_millis.saturating_sub(self.beat.load(Relaxed)) >= BEAT_MILLIS {
            self.forwarding.answers_for(ANSWERS)?;
            self.beat.store(now_millis, Relaxed);
        }
        if !self.is_in_round {
            if now_millis.saturating_sub(self.began) < ROUND_MILLIS {
                return Ok(());
            }
            self.began = now_millis;
            self.is_in_round = true;
        }
        if now_millis.saturating_sub(self.read) < PIECE_MILLIS {
            return Ok(());
        }
        self.read = now_millis;
        let mut unknown = Vec::new();
        let counts_inbound = nat.config().inbound_refresh;
        let is_end = self.forwarding.used_flows(&mut self.place, |used| {
            if used.comes_in && !counts_inbound {
                return;
            }
            let idle = u64::try_from(used.idle.as_millis()).unwrap_or(u64::MAX);
            if !nat.touch_offloaded(&offloaded(&used.flow), idle, now_millis) {
                unknown.push(used.flow);
            }
        })?;
        for flow in unknown {
            self.leave(&flow)?;
        }
        self.is_in_round = !is_end;
        Ok(())
    }

    /// Nothing is handed to the engine any more.
    pub fn end(&self) -> anyhow::Result<()> {
        Ok(self.forwarding.answers_for(Duration::ZERO)?)
    }

    fn leave(&self, flow: &Flow) -> anyhow::Result<()> {
        let was_there = self.forwarding.leave(flow)?;
        self.count.fetch_sub(u64::from(was_there), Relaxed);
        Ok(())
    }
}

/// Whether a packet is an echo, its answer or an error of ICMP, for an address
/// of this host. (Sockets of TCP and UDP are looked up by the program itself.)
fn is_for_host(packet: &[u8]) -> bool {
    const KINDS: [u8; 5] = [
        icmp::ECHO,
        icmp::ECHO_REPLY,
        icmp::UNREACHABLE,
        icmp::TIME_EXCEEDED,
        icmp::PARAMETER_PROBLEM,
    ];
    let Ok(ip) = Ipv4::new(packet) else {
        return false;
    };
    let is_icmp = ip.protocol() == protocol::ICMP
        && ip
            .payload()
            .first()
            .is_some_and(|kind| KINDS.contains(kind));
    // An alias need not be ours: what is routed here for others would go in
    // circles.
    is_icmp && UdpSocket::bind((ip.destination(), 0)).is_ok()
}

fn flow_of(flow: &Offloaded) -> Flow {
    Flow {
        protocol: flow.protocol,
        inside: (flow.inside, flow.inside_port),
        alias: (flow.alias, flow.alias_port),
        remote: (flow.remote, flow.remote_port),
    }
}

/// A flow of the program's, in the engine's words.
pub fn offloaded(flow: &Flow) -> Offloaded {
    Offloaded {
        protocol: flow.protocol,
        inside: flow.inside.0,
        inside_port: flow.inside.1,
        remote: flow.remote.0,
        remote_port: flow.remote.1,
        alias: flow.alias.0,
        alias_port: flow.alias.1,
    }
}
