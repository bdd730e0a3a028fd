//! An engine's part of a saved state, written: see [`crate::saved`].

use std::io;

use sha2::{Digest, Sha256};

use super::Nat;
use super::tracked::Tracked;
use crate::Config;
use crate::blocks::Blocks;
use crate::flow::{Flow, flag};
use crate::mapping::Mapping;
use crate::rules::{Encoding, Redirect, Tuple};
use crate::saved::{Chunks, Record, tag};

impl Nat {
    /// Writes all that there is, as of a time: flows, mappings, subscribers
    /// and blocks with the times that they have, what helpers and proxies
    /// remember, ports that rest, redirects that are waited for, what hosts
    /// have asked for by PCP. Fragments that wait for others are not written,
    /// nor what was counted. Rules and settings come from elsewhere.
    /// O(places).
    pub fn save(&mut self, now_millis: u64, out: &mut Chunks<'_>) -> io::Result<()> {
        self.begin(now_millis);
        self.catch_up_calls();
        self.save_engine(out)?;
        if let Some(tracked) = &self.tracked {
            tracked.save(out)?;
        }
        self.save_mappings(out)?;
        for (tuple, proxied) in self.proxied.all() {
            let (meant, meant_port) = proxied.meant;
            let (server, server_port) = proxied.server;
            let record = put_tuple(tuple, Record::default());
            let record = record.with(meant.octets()).u16(meant_port);
            let record = record.with(server.octets()).u16(server_port);
            let record = record.u8(number_of(proxied.encoding));
            out.record(tag::PROXIED, record.bytes())?;
        }
        self.helpers.save(now_millis, out)?;
        self.save_flows(out)?;
        out.names(tag::FREE_MAPPING, self.mappings.free_places())?;
        out.names(tag::STRANGER, self.strangers.names())?;
        for (at, alias, since) in self.held_ports.all(self.clock.now()) {
            let record = Record::default().u32(at);
            let record = record.with(alias.to_ne_bytes()).u32(since);
            out.record(tag::HELD_PORT, record.bytes())?;
        }
        for (redirect, until_millis) in self.rules.expected() {
            let left = until_millis.saturating_sub(now_millis);
            let record = put_redirect(redirect, Record::default().u64(left));
            out.record(tag::EXPECTED, record.bytes())?;
        }
        self.save_leases(now_millis, out)?;
        out.record(tag::END, &[0])
    }

    fn save_engine(&self, out: &mut Chunks<'_>) -> io::Result<()> {
        let (places, hand) = match &self.tracked {
            Some(tracked) => (tracked.subscribers.places(), tracked.subscribers.hand()),
            None => (0, 0),
        };
        let (parts, number) = self.part();
        let record = Record::default().u64(self.clock.run_millis());
        let record = record.u64(self.random.rest()).u32(self.hand as u32);
        let record = record.u8(self.calls).u8(u8::from(self.one_made));
        let record = record.u32(self.table.places() as u32);
        let record = record.u32(self.mappings.places() as u32);
        let record = record.u32(places as u32).u32(hand as u32);
        let record = record.u16(parts).u16(number);
        let record = record.u8(self.subscriber_bits()).with(print(&self.config));
        let record = self.barren.saved(record);
        out.record(tag::ENGINE, record.bytes())
    }

    /// Of how many parts it is one, and which.
    pub(super) fn part(&self) -> (u16, u16) {
        self.shard
            .as_ref()
            .map_or((1, 0), |part| (part.shards.parts(), part.number))
    }

    /// Bits of an address that tell a subscriber; 0: there are none.
    pub(super) fn subscriber_bits(&self) -> u8 {
        match self.tracked {
            Some(_) => self.config.subscribers.bits,
            None => 0,
        }
    }

    fn save_mappings(&self, out: &mut Chunks<'_>) -> io::Result<()> {
        let mut record = Record::default();
        for name in 0..self.mappings.places() as u32 {
            let mapping = self.mappings.get(name).filter(|mapping| mapping.flows > 0);
            // Those of another epoch have no flow of this one.
            let Some(mapping) = mapping.filter(|mapping| mapping.epoch == self.epoch) else {
                continue;
            };
            let Mapping {
                inside,
                alias,
                remote,
                inside_port,
                alias_port,
                protocol,
                kind,
                marks,
                dies,
                ..
            } = *mapping;
            record = record.again().u32(name);
            for address in [inside, alias, remote] {
                record = record.with(address.to_ne_bytes());
            }
            for port in [inside_port, alias_port] {
                record = record.with(port.to_ne_bytes());
            }
            record = record.u8(protocol).u8(kind as u8).u8(marks).u32(dies);
            out.record(tag::MAPPING, record.bytes())?;
        }
        Ok(())
    }

    fn save_flows(&self, out: &mut Chunks<'_>) -> io::Result<()> {
        let mut record = Record::default();
        for name in 0..self.table.places() as u32 {
            let flow = self.table.get(name).filter(|flow| flow.has(flag::LIVE));
            if let Some(flow) = flow.filter(|flow| flow.epoch() == self.epoch) {
                record = put_flow(name, flow, record.again());
                out.record(tag::FLOW, record.bytes())?;
            }
        }
        out.names(tag::FREE_FLOW, self.table.free_places())
    }
}

impl Tracked {
    fn save(&self, out: &mut Chunks<'_>) -> io::Result<()> {
        if let Some(pool) = &self.pool {
            pool.save(out)?;
        }
        let mut record = Record::default();
        let all = 0..self.subscribers.places() as u32;
        for name in all.clone() {
            if let Some(entry) = self.subscribers.get(name) {
                record = entry.saved(name, record.again());
                out.record(tag::SUBSCRIBER, record.bytes())?;
            }
        }
        out.names(tag::FREE_SUBSCRIBER, self.subscribers.free_places())?;
        let Some(pool) = &self.pool else {
            return Ok(());
        };
        let mut blocks = Vec::new();
        for name in all {
            let Some(entry) = self.subscribers.get(name) else {
                continue;
            };
            blocks.clear();
            let mut at = entry.block;
            while let Some(block) = at.checked_sub(1) {
                blocks.push(block);
                at = pool.get(block).map_or(0, |block| block.next);
            }
            // The last one first, so that each is put before the others.
            for block in blocks.iter().rev() {
                record = pool.save_block(*block, record, out)?;
            }
        }
        Ok(())
    }
}

fn put_flow(name: u32, flow: &Flow, record: Record) -> Record {
    let mut record = record.u32(name);
    for address in flow.addresses {
        record = record.with(address.to_ne_bytes());
    }
    for port in flow.ports {
        record = record.with(port.to_ne_bytes());
    }
    record = record.u8(flow.protocol).u8(flow.class);
    record = record.u32(flow.last_used).u32(flow.flags);
    for side in flow.sides {
        record = record.u32(side.end).u32(side.acked).u32(side.limit);
    }
    record.u32(flow.mapping).u32(flow.permit)
}

fn put_tuple(tuple: &Tuple, record: Record) -> Record {
    let record = record.u8(tuple.protocol);
    let record = record.with(tuple.own.octets()).u16(tuple.own_port);
    record.with(tuple.remote.octets()).u16(tuple.remote_port)
}

fn put_redirect(redirect: &Redirect, record: Record) -> Record {
    let record = record.u8(redirect.protocol.unwrap_or(0));
    let addresses = [redirect.inside, redirect.alias, redirect.remote];
    let record = addresses.iter().fold(record, |record, address| {
        // Nobody's address is 0.
        record.with(address.map_or([0; 4], |address| address.octets()))
    });
    let record = record.u16(redirect.inside_port).u16(redirect.alias_port);
    record
        .u16(redirect.ports)
        .u16(redirect.remote_port.unwrap_or(0))
}

/// The number of a proxy's way to be told, which never changes.
fn number_of(encoding: Encoding) -> u8 {
    match encoding {
        Encoding::None => 0,
        Encoding::IpHeader => 1,
        Encoding::TcpStream => 2,
    }
}

/// What settings say of which ports each block has, as a sum: with another
/// one no block is what it was. Zeros: there are no blocks.
pub(super) fn print(config: &Config) -> [u8; 16] {
    let Some(blocks) = &config.blocks else {
        return [0; 16];
    };
    let Blocks {
        size,
        reserved,
        deterministic,
        ..
    } = blocks;
    let (first, last) = (*config.ports.start(), *config.ports.end());
    let mut record = Record::default().u16(*size).u16(first).u16(last);
    for (first, last) in reserved {
        record = record.u16(*first).u16(*last);
    }
    if let Some(deterministic) = deterministic {
        record = record.u32(deterministic.ratio).u32(deterministic.dynamic);
        record = record.with(deterministic.key.map_or([0; 16], |key| key.0));
        for range in &config.subscribers.inside {
            record = record.with(range.first.octets()).with(range.last.octets());
        }
        for address in &config.addresses {
            record = record.with(address.octets());
        }
    }
    let sum = Sha256::digest(record.bytes());
    let mut print = [0; 16];
    for (place, byte) in print.iter_mut().zip(sum) {
        *place = byte;
    }
    print
}
