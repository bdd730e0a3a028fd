//! What hosts asked for by PCP, in a saved state and out of it. Where all of
//! it is there again nobody has to ask anew, and the epoch goes on (RFC 6887
//! §8.5); where anything is not, it begins anew, and is announced.

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;

use packet::protocol;

use super::counts::NO_BLOCK;
use super::lease::Place;
use super::{Nat, word};
use crate::pcp::leases::Key;
use crate::pcp::options::Filter;
use crate::saved::{Chunk, Chunks, Fields, Record, tag};

/// What was saved of all leases.
#[derive(Default)]
pub(super) struct SavedLeases {
    /// How long what was granted was known, milliseconds.
    epoch: Option<u64>,
    leases: Vec<SavedLease>,
    /// By the place of the lease among them.
    filters: HashMap<u32, Vec<SavedFilter>>,
}

/// As [`Filter::saved`] has it.
type SavedFilter = (u32, u8, u16);

#[derive(Clone, Copy)]
struct SavedLease {
    key: Key,
    nonce: [u8; 12],
    ports: u16,
    alias: Ipv4Addr,
    alias_port: u16,
    left_millis: u64,
}

impl SavedLeases {
    /// Reads a chunk of theirs.
    pub fn take(&mut self, chunk: &Chunk) {
        for mut fields in chunk.records() {
            match chunk.tag {
                tag::EPOCH => self.epoch = Some(fields.u64()),
                tag::LEASE => self.leases.push(SavedLease::read(&mut fields)),
                _ => {
                    let number = fields.u32();
                    let filter = (fields.u32(), fields.u8(), fields.u16());
                    self.filters.entry(number).or_default().push(filter);
                }
            }
        }
    }

    /// The filters of a lease, O(its own); `None`: one makes no sense.
    fn filters_of(&self, number: usize) -> Option<Vec<Filter>> {
        let of = self.filters.get(&u32::try_from(number).ok()?);
        let of = of.into_iter().flatten();
        of.map(|filter| Filter::restored(*filter)).collect()
    }
}

impl SavedLease {
    fn read(fields: &mut Fields<'_>) -> Self {
        let address = |fields: &mut Fields<'_>| Ipv4Addr::from(fields.bytes::<4>());
        let inside = address(fields);
        let (protocol, port) = (fields.u8(), fields.u16());
        let has_remote = fields.u8() != 0;
        let remote = (address(fields), fields.u16());
        Self {
            key: Key {
                inside,
                protocol,
                port,
                remote: has_remote.then_some(remote),
            },
            nonce: fields.bytes(),
            ports: fields.u16(),
            alias: address(fields),
            alias_port: fields.u16(),
            left_millis: fields.u64(),
        }
    }

    /// Whether it is one that could have been granted.
    fn is_sound(&self) -> bool {
        let has_ports = |first: u16| first > 0 && first.checked_add(self.ports - 1).is_some();
        matches!(self.key.protocol, protocol::TCP | protocol::UDP)
            && self.ports > 0
            && has_ports(self.key.port)
            && has_ports(self.alias_port)
            && (self.key.remote.is_none() || self.ports == 1)
    }
}

impl Nat {
    /// Writes them. O(leases).
    pub(super) fn save_leases(&self, now_millis: u64, out: &mut Chunks<'_>) -> io::Result<()> {
        let Some(leases) = &self.leases else {
            return Ok(());
        };
        let epoch = leases.epoch_millis(self.clock.run_millis());
        out.record(tag::EPOCH, Record::default().u64(epoch).bytes())?;
        for (key, lease) in leases.all() {
            let (remote, remote_port) = key.remote.unwrap_or((Ipv4Addr::UNSPECIFIED, 0));
            let record = Record::default().with(key.inside.octets());
            let record = record.u8(key.protocol).u16(key.port);
            let record = record.u8(key.remote.is_some().into());
            let record = record.with(remote.octets()).u16(remote_port);
            let record = record.with(lease.nonce).u16(lease.ports);
            let record = record.with(lease.alias.octets()).u16(lease.alias_port);
            let record = record.u64(lease.until_millis.saturating_sub(now_millis));
            out.record(tag::LEASE, record.bytes())?;
        }
        for (number, (key, lease)) in leases.all().enumerate() {
            // A peer's are what its key says.
            if key.remote.is_some() {
                continue;
            }
            for filter in self.rules.filters(lease.handle) {
                let (address, bits, port) = filter.saved();
                let record = Record::default().u32(number as u32);
                let record = record.u32(address).u8(bits).u16(port);
                out.record(tag::LEASE_FILTER, record.bytes())?;
            }
        }
        Ok(())
    }

    /// Takes them up, once flows, blocks and rules are there.
    pub(super) fn take_leases(&mut self, saved: &SavedLeases, (now, gone): (u64, u64)) {
        let mut is_whole = saved.epoch.is_some();
        // Peers may share a port: what is asked is whether the rules leave
        // room, before any is there.
        let has_room: Vec<bool> = saved.leases.iter().map(|of| self.fits_lease(of)).collect();
        let all = saved.leases.iter().zip(has_room).enumerate();
        for (number, (lease, has_room)) in all {
            let left = lease.left_millis.saturating_sub(gone);
            // One that is over has nobody who would ask again.
            if left > 0 {
                let filters = saved.filters_of(number).filter(|_| has_room);
                let taken = filters.is_some_and(|of| self.take_lease(lease, &of, now, left));
                is_whole &= taken;
            }
        }
        let run = self.clock.run_millis();
        match (&mut self.leases, saved.epoch.filter(|_| is_whole)) {
            (Some(leases), Some(epoch)) => leases.go_on(run, epoch.saturating_add(gone)),
            _ => self.begin_leases_anew(),
        }
    }

    /// Whether it could be granted by the settings and rules as they are.
    fn fits_lease(&self, saved: &SavedLease) -> bool {
        let ports = (saved.alias_port, saved.ports);
        saved.is_sound()
            && self.is_own(word(saved.alias))
            && self.has_room_at(saved.key.protocol, saved.alias, ports)
    }

    /// Whether it is there again.
    fn take_lease(&mut self, saved: &SavedLease, filters: &[Filter], now: u64, left: u64) -> bool {
        let key = &saved.key;
        let most = match &self.leases {
            Some(leases) if !leases.is_full() && leases.get(key).is_none() => {
                u64::from(leases.config.most_secs) * 1_000
            }
            _ => return false,
        };
        let Ok(subscriber) = self.leaser(key.inside) else {
            return false;
        };
        let Some(mark) = self.mark_again(saved, subscriber) else {
            return false;
        };
        let place = Place {
            alias: word(saved.alias),
            alias_port: saved.alias_port,
            ports: saved.ports,
            mark,
        };
        let until = now.saturating_add(left.min(most));
        let opened = self.restore_lease(key, &place, saved.nonce, until);
        if let Some(lease) = opened.filter(|_| key.remote.is_none()) {
            // It was just laid down.
            let _ = self.rules.set_filters(lease.handle, filters);
        }
        opened.is_some()
    }

    /// How its ports count; `None`: they are not its subscriber's.
    fn mark_again(&self, saved: &SavedLease, subscriber: Option<u32>) -> Option<u32> {
        let ports = (0..saved.ports).map(|step| saved.alias_port + step);
        if self.config.blocks.is_none() {
            let fits = { ports }.all(|port| self.ports.has(port));
            return fits.then_some(if subscriber.is_some() { NO_BLOCK } else { 0 });
        }
        let mut marks = ports.map(|port| self.mark_at(word(saved.alias), port, subscriber));
        let first = marks.next().filter(|mark| ![0, NO_BLOCK].contains(mark))?;
        marks.all(|mark| mark == first).then_some(first)
    }
}
