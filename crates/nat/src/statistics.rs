//! What an engine counted. For its callers.

use packet::protocol;

use crate::{Direction, Packet, Verdict};

/// What an engine counted since it was made, and its sizes now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Outgoing packets by [`Verdict::index`].
    pub out: [u64; Verdict::ALL.len()],
    /// Incoming packets by [`Verdict::index`].
    pub incoming: [u64; Verdict::ALL.len()],
    /// Flows made.
    pub flows_made: u64,
    /// Flows ended by their timeout.
    pub flows_expired: u64,
    /// Flows ended to make room: at the cap, or for their alias port.
    pub flows_evicted: u64,
    /// Flows ended by the caller: removed, forgotten, or their rule deleted.
    pub flows_removed: u64,
    /// Flows that the sweep looked at.
    pub flows_inspected: u64,
    /// Alias ports tried that were taken.
    pub ports_retried: u64,
    /// Events that found the ring full.
    pub events_lost: u64,
    /// The same of subscribers and blocks.
    pub block_events_lost: u64,
    /// Packets from inside that began nothing because their subscriber could
    /// have no alias address; told as ports that are exhausted as well.
    pub addresses_exhausted: u64,
    /// Later fragments that were given up: there was no room to hold them, or
    /// their first one did not come in time.
    pub fragments_dropped: u64,
    /// Those of them that came from inside and found no room; told as a table
    /// that is full as well.
    pub fragments_refused: u64,
    /// Subscribers now, those that have had something a moment ago included.
    pub subscribers: usize,
    /// Subscribers entered, one that was none for a while once more.
    pub subscribers_made: u64,
    /// How often there was no room for a further one.
    pub subscribers_refused: u64,
    /// Blocks that subscribers have now.
    pub blocks: usize,
    /// Flows now, those that expired but were not swept yet included.
    pub flows: usize,
    /// Those of them that someone outside made, and that the inside has not
    /// made its own by an answer.
    pub strangers: usize,
    /// Ports that inside hosts have asked for by PCP and NAT-PMP: leases now.
    pub leases: usize,
    /// Mappings now that are shared by flows (endpoint or address dependent
    /// mapping; without it each flow is its own mapping).
    pub mappings: usize,
    /// Bytes of memory in use by tables.
    pub memory_bytes: usize,
    /// By protocol: TCP, UDP, ICMP, and all others; [`Protocol::ALL`].
    pub protocols: [ProtocolStatistics; Protocol::ALL.len()],
}

/// A protocol that is counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP: queries have mappings, errors are translated.
    Icmp,
    /// GRE and all others.
    Other,
}

impl Protocol {
    /// All, in the order that they are counted in.
    pub const ALL: [Self; 4] = [Self::Tcp, Self::Udp, Self::Icmp, Self::Other];

    /// That of a protocol's number.
    pub fn of(number: u8) -> Self {
        match number {
            protocol::TCP => Self::Tcp,
            protocol::UDP => Self::Udp,
            protocol::ICMP => Self::Icmp,
            _ => Self::Other,
        }
    }
}

/// What was counted of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProtocolStatistics {
    /// Packets translated, both ways; of hairpinned ones each once.
    pub translated: u64,
    /// Packets from inside that began nothing for want of a port, of room or
    /// of quota.
    pub refused: u64,
    /// Mappings made: a flow's own, or one that flows share.
    pub mappings_made: u64,
    /// Mappings now, those that expired but were not swept yet included.
    pub mappings: usize,
}

impl Statistics {
    /// Adds those of another engine.
    pub fn add(&mut self, other: &Self) {
        let counted = self.out.iter_mut().zip(other.out);
        for (sum, more) in counted.chain(self.incoming.iter_mut().zip(other.incoming)) {
            *sum += more;
        }
        self.flows_made += other.flows_made;
        self.flows_expired += other.flows_expired;
        self.flows_evicted += other.flows_evicted;
        self.flows_removed += other.flows_removed;
        self.flows_inspected += other.flows_inspected;
        self.ports_retried += other.ports_retried;
        self.events_lost += other.events_lost;
        self.block_events_lost += other.block_events_lost;
        self.addresses_exhausted += other.addresses_exhausted;
        self.fragments_dropped += other.fragments_dropped;
        self.fragments_refused += other.fragments_refused;
        self.subscribers += other.subscribers;
        self.subscribers_made += other.subscribers_made;
        self.subscribers_refused += other.subscribers_refused;
        self.blocks += other.blocks;
        self.flows += other.flows;
        self.strangers += other.strangers;
        self.leases += other.leases;
        self.mappings += other.mappings;
        self.memory_bytes += other.memory_bytes;
        for (sum, more) in self.protocols.iter_mut().zip(other.protocols) {
            sum.translated += more.translated;
            sum.refused += more.refused;
            sum.mappings_made += more.mappings_made;
            sum.mappings += more.mappings;
        }
    }

    /// What was counted of a protocol.
    pub fn of(&self, protocol: Protocol) -> ProtocolStatistics {
        let all = self.protocols.get(protocol as usize);
        all.copied().unwrap_or_default()
    }

    pub(crate) fn of_mut(&mut self, number: u8) -> &mut ProtocolStatistics {
        let [tcp, udp, icmp, other] = &mut self.protocols;
        match Protocol::of(number) {
            Protocol::Tcp => tcp,
            Protocol::Udp => udp,
            Protocol::Icmp => icmp,
            Protocol::Other => other,
        }
    }

    /// A mapping was made.
    #[inline(always)]
    pub(crate) fn mapping_came(&mut self, protocol: u8) {
        let of = self.of_mut(protocol);
        of.mappings_made += 1;
        of.mappings += 1;
    }

    /// One that was saved is there again: it was counted when it was made.
    pub(crate) fn mapping_is_back(&mut self, protocol: u8) {
        self.of_mut(protocol).mappings += 1;
    }

    /// A mapping ended.
    #[inline(always)]
    pub(crate) fn mapping_went(&mut self, protocol: u8) {
        let of = self.of_mut(protocol);
        of.mappings = of.mappings.saturating_sub(1);
    }

    /// Counts a packet.
    #[inline(always)]
    pub(crate) fn count(&mut self, direction: Direction, bytes: &[u8], verdict: Verdict) {
        let counters = match direction {
            Direction::Out => &mut self.out,
            Direction::In => &mut self.incoming,
        };
        if let Some(counter) = counters.get_mut(verdict.index()) {
            *counter += 1;
        }
        match verdict {
            Verdict::Translated | Verdict::Hairpinned => {
                self.of_mut(protocol_of(bytes)).translated += 1;
            }
            _ if direction == Direction::Out && is_refusal(verdict) => {
                self.of_mut(protocol_of(bytes)).refused += 1;
            }
            _ => {}
        }
    }

    /// Counts a batch. Most packets of one are translated, and of TCP or
    /// UDP: these are added up at once, because a counter that is raised by
    /// each waits for the one before.
    #[inline(always)]
    pub(crate) fn count_all(&mut self, direction: Direction, packets: &[Packet<'_>]) {
        let (mut tcp, mut udp) = (0, 0);
        for packet in packets {
            let is = packet.verdict == Verdict::Translated;
            let of = protocol_of(packet.bytes);
            tcp += u64::from(is & (of == protocol::TCP));
            udp += u64::from(is & (of == protocol::UDP));
        }
        let counters = match direction {
            Direction::Out => &mut self.out,
            Direction::In => &mut self.incoming,
        };
        if let Some(counter) = counters.get_mut(Verdict::Translated.index()) {
            *counter += tcp + udp;
        }
        let [of_tcp, of_udp, ..] = &mut self.protocols;
        of_tcp.translated += tcp;
        of_udp.translated += udp;
        if tcp + udp < packets.len() as u64 {
            self.count_others(direction, packets);
        }
    }

    #[inline(never)]
    fn count_others(&mut self, direction: Direction, packets: &[Packet<'_>]) {
        for packet in packets {
            let of = protocol_of(packet.bytes);
            let is_counted = matches!(of, protocol::TCP | protocol::UDP);
            if packet.verdict != Verdict::Translated || !is_counted {
                self.count(direction, packet.bytes, packet.verdict);
            }
        }
    }

    /// Packets of a direction with a verdict.
    pub fn packets(&self, direction: Direction, verdict: Verdict) -> u64 {
        let counters = match direction {
            Direction::Out => &self.out,
            Direction::In => &self.incoming,
        };
        counters.get(verdict.index()).copied().unwrap_or(0)
    }
}

/// The protocol that an IPv4 header says (RFC 791 §3.1).
#[inline(always)]
fn protocol_of(bytes: &[u8]) -> u8 {
    bytes.get(9).copied().unwrap_or(0)
}

/// Whether a new flow found no place.
fn is_refusal(verdict: Verdict) -> bool {
    matches!(
        verdict,
        Verdict::TableFull | Verdict::PortsExhausted | Verdict::OverQuota
    )
}
