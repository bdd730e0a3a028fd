//! The engine: what its callers call. Each call parses, finds or makes a
//! flow, and rewrites; the parts are in the modules beside this one.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use crate::event::{Event, Events};
use crate::{
    Behaviour, Config, Cursor, Direction, Error, FlowView, Hairpin, Mode, Packet, PortChoice,
    Statistics, Timeouts, Verdict,
};

/// An engine. One thread uses it at a time; it shares nothing with another.
#[derive(Debug)]
pub struct Nat {
    config: Config,
    events: Events,
    statistics: Statistics,
}

impl Nat {
    /// An engine without flows. Reserves address space for
    /// `limits.max_flows`, and makes memory ready for `initial_flows`.
    pub fn new(config: Config) -> Result<Self, Error> {
        let events = Events::new(config.limits.events);
        Ok(Self {
            config,
            events,
            statistics: Statistics::default(),
        })
    }

    /// Translates an outgoing packet. `bytes` is an IPv4 packet from its
    /// first byte, with room behind it for helpers that lengthen it.
    /// `now_millis` is any clock of milliseconds; it may step.
    ///
    /// O(1); allocates nothing.
    pub fn translate_out(&mut self, bytes: &mut [u8], now_millis: u64) -> Verdict {
        let _ = (bytes, now_millis);
        Verdict::Unsupported
    }

    /// Translates an incoming packet; as [`Nat::translate_out`].
    pub fn translate_in(&mut self, bytes: &mut [u8], now_millis: u64) -> Verdict {
        let _ = (bytes, now_millis);
        Verdict::Unsupported
    }

    /// Translates a batch of outgoing packets, in order, and writes their
    /// verdicts. Best with 32 to 64 packets; any number is right.
    pub fn translate_out_batch(&mut self, packets: &mut [Packet<'_>], now_millis: u64) {
        for packet in packets {
            packet.verdict = self.translate_out(packet.bytes, now_millis);
        }
    }

    /// Translates a batch of incoming packets; as
    /// [`Nat::translate_out_batch`].
    pub fn translate_in_batch(&mut self, packets: &mut [Packet<'_>], now_millis: u64) {
        for packet in packets {
            packet.verdict = self.translate_in(packet.bytes, now_millis);
        }
    }

    /// Undoes [`Nat::translate_out`]: a packet as it left (source: one of
    /// the alias addresses) gets its inside source back. For a router's
    /// ICMP errors about packets that were translated already.
    pub fn untranslate_out(&mut self, bytes: &mut [u8], now_millis: u64) -> Verdict {
        let _ = (bytes, now_millis);
        Verdict::Unsupported
    }

    /// Sweeps and prepares memory while there is nothing else to do: looks
    /// at `budget` flows at most, about 5 ns each. An engine that is never
    /// maintained sweeps by its packets alone. Returns the flows ended.
    pub fn maintain(&mut self, now_millis: u64, budget: usize) -> usize {
        let _ = (now_millis, budget);
        0
    }

    /// What was counted. O(1).
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The next event. O(1).
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// The flow of an outgoing (its source and destination) or incoming
    /// packet, ports in host order. O(1); does not touch the flow.
    pub fn lookup(
        &self,
        direction: Direction,
        protocol: u8,
        source: (Ipv4Addr, u16),
        destination: (Ipv4Addr, u16),
    ) -> Option<FlowView> {
        let _ = (direction, protocol, source, destination);
        None
    }

    /// Hands some flows to `sink`: looks at `budget` places from `from` on
    /// and returns where to go on, `None` at the end. O(`budget`).
    pub fn flows(
        &self,
        from: Cursor,
        budget: usize,
        sink: &mut dyn FnMut(&FlowView),
    ) -> Option<Cursor> {
        let _ = (from, budget, sink);
        None
    }

    /// Ends the flow of an outgoing or incoming packet. Returns whether
    /// there was one.
    pub fn remove(
        &mut self,
        direction: Direction,
        protocol: u8,
        source: (Ipv4Addr, u16),
        destination: (Ipv4Addr, u16),
    ) -> bool {
        let _ = (direction, protocol, source, destination);
        false
    }

    /// Forgets all flows. O(1): they are dead at once, and the sweep takes
    /// their memory back.
    pub fn forget_flows(&mut self) {}

    /// The settings as they are.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Sets the alias addresses. Flows of former addresses stay, unless
    /// `reset_on_address_change` is set and the addresses differ.
    pub fn set_addresses(&mut self, addresses: &[Ipv4Addr]) -> Result<(), Error> {
        if addresses.len() > Config::MAX_ADDRESSES {
            return Err(Error::Addresses {
                asked: addresses.len(),
                most: Config::MAX_ADDRESSES,
            });
        }
        self.config.addresses = addresses.to_vec();
        Ok(())
    }

    /// Sets the range of alias ports; flows keep theirs.
    pub fn set_ports(&mut self, ports: RangeInclusive<u16>) -> Result<(), Error> {
        let (first, last) = (*ports.start(), *ports.end());
        if first == 0 || first > last {
            return Err(Error::Ports { first, last });
        }
        self.config.ports = ports;
        Ok(())
    }

    /// Sets the modes; flows keep their translation.
    pub fn set_mode(&mut self, mode: Mode) {
        self.config.mode = mode;
    }

    /// Sets where unknown incoming packets go ([`Config::target`]).
    pub fn set_target(&mut self, target: Option<Ipv4Addr>) {
        self.config.target = target;
    }

    /// Sets how UDP is mapped and filtered; flows keep theirs.
    pub fn set_udp(&mut self, behaviour: Behaviour) {
        self.config.udp = behaviour;
    }

    /// Sets how TCP is mapped and filtered; flows keep theirs.
    pub fn set_tcp(&mut self, behaviour: Behaviour) {
        self.config.tcp = behaviour;
    }

    /// Sets which port a new flow gets.
    pub fn set_port_choice(&mut self, choice: PortChoice) {
        self.config.port_choice = choice;
    }

    /// Sets what is done with packets from inside to an alias address.
    pub fn set_hairpin(&mut self, hairpin: Hairpin) {
        self.config.hairpin = hairpin;
    }

    /// Sets the timeouts; they count for flows that live as well.
    pub fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.config.timeouts = timeouts;
    }
}
