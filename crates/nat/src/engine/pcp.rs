//! Requests of inside hosts to the translator itself, answered where they
//! come by: PCP (RFC 6887, RFC 7753) and NAT-PMP (RFC 6886).

use std::net::{Ipv4Addr, Ipv6Addr};

use packet::protocol;

use super::Nat;
use super::address;
use super::lease::{Lack, Wanted};
use crate::pcp::leases::{Key, Lease};
use crate::pcp::message::{self, Granted, Mapping, Opcode, Refusal, Request, ResultCode};
use crate::pcp::options::{MOST_FILTERS, Options};
use crate::pcp::{LeaseView, PORT, datagram, natpmp};
use crate::{Cursor, Direction, Verdict, rules};

/// Leases that are over and are ended with each request, and by each call of
/// [`Nat::maintain`].
const ENDED_A_REQUEST: usize = 8;
pub(super) const ENDED_IDLE: usize = 256;

impl From<Lack> for ResultCode {
    fn from(lack: Lack) -> Self {
        match lack {
            Lack::Right => Self::NotAuthorized,
            Lack::Quota => Self::UserExceededQuota,
            Lack::Ports => Self::NoResources,
            Lack::Suggested => Self::CannotProvideExternal,
        }
    }
}

impl Nat {
    /// Whether an address and port is one that requests are sent to. O(1).
    pub fn is_asked_at(&self, address: Ipv4Addr, port: u16) -> bool {
        let leases = self.leases.as_ref().filter(|_| port == PORT);
        leases.is_some_and(|leases| leases.config.addresses.contains(&address))
    }

    /// The same of a packet's destination.
    #[inline(always)]
    pub(super) fn asks_us(&self, key: crate::key::Key) -> bool {
        let port = u16::from_be(key.destination_port());
        let is_ours = port == PORT && key.protocol() == protocol::UDP && self.leases.is_some();
        is_ours && self.is_asked_at(address(key.destination()), port)
    }

    /// Answers a request: the packet becomes the answer.
    #[cold]
    #[inline(never)]
    pub(super) fn answer(&mut self, bytes: &mut [u8]) -> Verdict {
        let Some((asked, data)) = datagram::read(bytes) else {
            return Verdict::Malformed;
        };
        let (client, _) = asked.client;
        let is_host = !client.is_unspecified()
            && !client.is_multicast()
            && !client.is_broadcast()
            && !client.is_loopback();
        let Some(leases) = self.leases.as_mut().filter(|_| is_host) else {
            return Verdict::Denied;
        };
        let mut answer = std::mem::take(&mut leases.answer);
        answer.clear();
        self.end_leases(ENDED_A_REQUEST);
        match data.first() {
            Some(&natpmp::VERSION) => self.answer_natpmp(data, client, &mut answer),
            _ => self.answer_pcp(data, client, &mut answer),
        }
        let verdict = match (answer.is_empty(), asked) {
            (true, _) => Verdict::Denied,
            (false, asked) => match datagram::write(bytes, asked.server, asked.client, &answer) {
                Some(_) => Verdict::Answered,
                None => Verdict::HelperRefused,
            },
        };
        if let Some(leases) = &mut self.leases {
            leases.answer = answer;
        }
        verdict
    }

    /// Writes the next packet that tells all inside hosts that the translator
    /// has lost what it granted (RFC 6887 §14.1, RFC 6886 §3.2.1), if one is
    /// due: to 224.0.0.1, from the translator's first inside address. Its
    /// length. To be asked some times a second, until there is none.
    pub fn next_announcement(&mut self, room: &mut [u8], now_millis: u64) -> Option<usize> {
        self.begin(now_millis);
        let alias = match self.pool.as_slice() {
            [only] => Some(address(*only)),
            _ => None,
        };
        let run_millis = self.clock.run_millis();
        let leases = self.leases.as_mut()?;
        // The second of a pair is left out where there is no one address.
        leases
            .announce(alias, room, run_millis)
            .or_else(|| leases.announce(alias, room, run_millis))
    }

    /// Hands some leases to `sink`, as [`Nat::flows`] does flows; those that
    /// are over but not ended yet are passed over. O(`budget`).
    pub fn leases(
        &self,
        from: Cursor,
        budget: usize,
        sink: &mut dyn FnMut(&LeaseView),
    ) -> Option<Cursor> {
        let Cursor(from) = from;
        let places = self.rules.places();
        let to = (from as usize).saturating_add(budget.max(1)).min(places);
        let leases = self.leases.as_ref()?;
        let now = self.clock.said_millis();
        for place in from..to as u32 {
            let Some((handle, redirect)) = self.rules.leased_at(place) else {
                continue;
            };
            let own = leases.of_port(redirect).find(|(_, of)| of.handle == handle);
            if let Some((key, lease)) = own.filter(|(_, of)| of.until_millis > now) {
                sink(&view(key, lease, now));
            }
        }
        (to < places).then_some(Cursor(to as u32))
    }

    fn epoch_secs(&self) -> u32 {
        let run_millis = self.clock.run_millis();
        let leases = self.leases.as_ref();
        leases.map_or(0, |leases| leases.epoch_secs(run_millis))
    }

    /// How long a lease lives that is wanted for so long, seconds.
    fn lifetime_secs(&self, wanted_secs: u32) -> u32 {
        let config = &self.config.pcp;
        let most = config.most_secs.max(config.least_secs);
        wanted_secs.clamp(config.least_secs, most)
    }

    fn answer_natpmp(&mut self, data: &[u8], client: Ipv4Addr, answer: &mut Vec<u8>) {
        let epoch = self.epoch_secs();
        let granted = match natpmp::read(data) {
            Err(None) => return,
            Err(Some(code)) => Err(code),
            Ok(natpmp::Request::Address) => {
                let leaser = self.leaser(client);
                let alias = leaser.and_then(|name| self.alias_of_leaser(client, name));
                match alias {
                    Ok(alias) => return natpmp::address(answer, address(alias), epoch),
                    Err(lack) => Err(code_of(lack.into())),
                }
            }
            Ok(natpmp::Request::Map {
                protocol,
                port,
                external_port,
                lifetime_secs,
            }) => {
                let mapping = Mapping {
                    nonce: [0; 12],
                    protocol,
                    port,
                    external: Ipv6Addr::UNSPECIFIED,
                    external_port,
                    remote: None,
                };
                let granted = self.map(&mapping, lifetime_secs, &Options::default(), client);
                // It has no word for what is there for ever.
                let most = self.lifetime_secs(u32::MAX);
                let bounded = |granted: Granted| Granted {
                    lifetime_secs: granted.lifetime_secs.min(most),
                    ..granted
                };
                granted
                    .map(|granted| (port, bounded(granted)))
                    .map_err(code_of)
            }
        };
        match granted {
            Ok((port, granted)) => {
                let is_there = granted.lifetime_secs > 0;
                let ports = (port, if is_there { granted.external_port } else { 0 });
                let opcode = data.get(1).copied().unwrap_or_default();
                natpmp::grant(answer, opcode, ports, granted.lifetime_secs, epoch);
            }
            Err(code) => natpmp::refuse(answer, data, code, epoch),
        }
    }

    fn answer_pcp(&mut self, data: &[u8], client: Ipv4Addr, answer: &mut Vec<u8>) {
        let epoch = self.epoch_secs();
        let request = match message::read(data, client) {
            Ok(request) => request,
            Err(Refusal::Silence) => return,
            Err(Refusal::Code(code)) => return message::refuse(answer, data, (code, None), epoch),
        };
        match self.granted(&request, client) {
            Ok(granted) => message::grant(answer, &request, &granted, epoch),
            Err(code) => {
                let lifetime = self.lifetime_of_anothers(&request, client, code);
                message::refuse(answer, data, (code, lifetime), epoch);
            }
        }
    }

    /// How long the mapping lives, seconds, that a request may not change for
    /// its nonce (RFC 6887 §11.3, §12.3).
    fn lifetime_of_anothers(
        &self,
        request: &Request,
        client: Ipv4Addr,
        code: ResultCode,
    ) -> Option<u32> {
        let mapping = request.mapping.as_ref();
        let mapping = mapping.filter(|_| code == ResultCode::NotAuthorized)?;
        let key = Key {
            remote: remote_of(mapping),
            ..Key::for_all(client, mapping.protocol, mapping.port)
        };
        let lease = self.lease(&key)?;
        let left = lease.until_millis.saturating_sub(self.clock.said_millis());
        (lease.nonce != mapping.nonce).then_some(left.div_ceil(1_000) as u32)
    }

    fn granted(&mut self, request: &Request, client: Ipv4Addr) -> Result<Granted, ResultCode> {
        let secs = request.header.lifetime_secs;
        match (request.header.opcode, &request.mapping) {
            (Opcode::Map, Some(mapping)) => self.map(mapping, secs, &request.options, client),
            (Opcode::Peer, Some(mapping)) => self.peer(mapping, secs, client),
            _ => Ok(Granted {
                lifetime_secs: 0,
                external: Ipv6Addr::UNSPECIFIED,
                external_port: 0,
                ports: 0,
            }),
        }
    }

    /// RFC 6887 §11.3.
    fn map(
        &mut self,
        mapping: &Mapping,
        lifetime_secs: u32,
        options: &Options,
        client: Ipv4Addr,
    ) -> Result<Granted, ResultCode> {
        if mapping.protocol == 0 && mapping.port != 0 {
            return Err(ResultCode::MalformedRequest);
        }
        if lifetime_secs == 0 {
            return self.unmap(mapping, client);
        }
        if !matches!(mapping.protocol, protocol::TCP | protocol::UDP) {
            return Err(ResultCode::UnsupportedProtocol);
        }
        if mapping.port == 0 {
            // All ports of a host: its neighbours would have none.
            return Err(ResultCode::NotAuthorized);
        }
        let is_wrong = mapping.external_port == 0 || options.port_set.is_some();
        if options.prefer_failure && is_wrong {
            // Exactly no port (RFC 6887 §13.2), or exactly a set (RFC 7753 §4.1).
            return Err(ResultCode::MalformedOption);
        }
        let key = Key::for_all(client, mapping.protocol, mapping.port);
        let secs = self.lifetime_secs(lifetime_secs);
        let wanted = options.port_set.map_or(1, |set| set.ports);
        if let Some(lease) = self.lease(&key) {
            self.may_change(&lease, mapping)?;
            if options.prefer_failure && !is_suggested(&lease, mapping) {
                return Err(ResultCode::CannotProvideExternal);
            }
            self.filter(&lease, options)?;
            return Ok(self.prolong(&key, &lease, secs));
        }
        if let Some(end) = self.laid_down(&key) {
            return granted_by_operator(end, mapping, options);
        }
        let room = self.leases.as_ref().map_or(0, |of| of.room(&key, wanted));
        if room == 0 {
            // It is of a set of ports that has begun before it.
            return Err(ResultCode::NotAuthorized);
        }
        let wanted = Wanted {
            key,
            ports: self.bounded(client, room, options.prefer_failure)?,
            alias: suggested_address(mapping, options.prefer_failure)?,
            alias_port: mapping.external_port,
            exactly: options.prefer_failure,
            parity: options.port_set.is_some_and(|set| set.parity),
        };
        let lease = self.new_lease(&wanted, mapping.nonce, secs)?;
        // It has none yet.
        self.filter(&lease, options)?;
        Ok(granted_of(&lease, secs))
    }

    /// RFC 6887 §15.1, RFC 6886 §3.4.
    fn unmap(&mut self, mapping: &Mapping, client: Ipv4Addr) -> Result<Granted, ResultCode> {
        let key = Key::for_all(client, mapping.protocol, mapping.port);
        if key.port == 0 || key.protocol == 0 {
            self.unmap_all(&key, &mapping.nonce);
        } else if let Some(lease) = self.lease(&key) {
            self.may_change(&lease, mapping)?;
            self.close_lease(&key);
        } else if self.laid_down(&key).is_some() {
            return Err(ResultCode::NotAuthorized);
        }
        Ok(nothing(mapping))
    }

    /// Ends what a host has of a protocol (0: all) by a nonce.
    fn unmap_all(&mut self, key: &Key, nonce: &[u8; 12]) {
        let Some(leases) = &self.leases else {
            return;
        };
        let own = leases.of(key.inside, key.protocol);
        let own = own.filter(|(key, lease)| key.remote.is_none() && lease.nonce == *nonce);
        let own: Vec<Key> = own.map(|(key, _)| *key).collect();
        for key in own {
            self.close_lease(&key);
        }
    }

    /// RFC 6887 §12.3.
    fn peer(
        &mut self,
        mapping: &Mapping,
        lifetime_secs: u32,
        client: Ipv4Addr,
    ) -> Result<Granted, ResultCode> {
        if !matches!(mapping.protocol, protocol::TCP | protocol::UDP) {
            return Err(ResultCode::UnsupportedProtocol);
        }
        let remote = remote_of(mapping);
        if remote.is_none() || mapping.port == 0 {
            return Err(ResultCode::MalformedRequest);
        }
        let key = Key {
            remote,
            ..Key::for_all(client, mapping.protocol, mapping.port)
        };
        let lease = self.lease(&key);
        if let Some(lease) = &lease {
            self.may_change(lease, mapping)?;
        }
        if lifetime_secs == 0 {
            // The flow itself lives on as others do (RFC 6887 §15.1).
            self.close_lease(&key);
            return Ok(nothing(mapping));
        }
        // No request has it end sooner than its flow would (RFC 6887 §15).
        let secs = self.lifetime_secs(lifetime_secs).max(self.flow_secs(&key));
        if let Some(lease) = lease {
            return Ok(self.prolong(&key, &lease, secs));
        }
        let of_all = Key {
            remote: None,
            ..key
        };
        if let Some(end) = self.laid_down(&of_all) {
            return granted_by_operator(end, mapping, &Options::default());
        }
        let wanted = Wanted {
            key,
            ports: self.bounded(client, 1, false)?,
            alias: suggested_address(mapping, true)?,
            alias_port: mapping.external_port,
            // It may be one that was lost, whose other end knows it so.
            exactly: true,
            parity: false,
        };
        let lease = self.new_lease(&wanted, mapping.nonce, secs)?;
        Ok(granted_of(&lease, secs))
    }

    /// How long the flow of a PEER's lives without a packet, seconds.
    fn flow_secs(&self, key: &Key) -> u32 {
        let flow = key.remote.and_then(|(remote, port)| {
            let inside = (key.inside.into(), key.port);
            self.lookup(Direction::Out, key.protocol, inside, (remote.into(), port))
        });
        flow.map_or(0, |flow| flow.expires_millis.div_ceil(1_000) as u32)
    }

    /// A lease that is not over.
    fn lease(&self, key: &Key) -> Option<Lease> {
        let lease = self.leases.as_ref()?.get(key).copied();
        lease.filter(|lease| lease.until_millis > self.clock.said_millis())
    }

    /// Whether a request comes from who asked for the lease (RFC 6887 §11.3).
    fn may_change(&self, lease: &Lease, mapping: &Mapping) -> Result<(), ResultCode> {
        match lease.nonce == mapping.nonce {
            true => Ok(()),
            false => Err(ResultCode::NotAuthorized),
        }
    }

    /// How many of so many ports a host may have.
    fn bounded(&self, client: Ipv4Addr, ports: u16, all: bool) -> Result<u16, ResultCode> {
        let most = self.config.pcp.most_ports;
        let has = self.leases.as_ref().map_or(0, |of| of.ports_of(client));
        let left = u16::try_from(most.saturating_sub(has)).unwrap_or(u16::MAX);
        match left {
            0 => Err(ResultCode::UserExceededQuota),
            left if all && left < ports => Err(ResultCode::UserExceededQuota),
            left => Ok(ports.min(left)),
        }
    }

    fn new_lease(
        &mut self,
        wanted: &Wanted,
        nonce: [u8; 12],
        secs: u32,
    ) -> Result<Lease, ResultCode> {
        // One that is over by now keeps nobody out.
        self.close_lease(&wanted.key);
        if self.leases.as_ref().is_none_or(|of| of.is_full()) {
            return Err(ResultCode::NoResources);
        }
        let place = self.place_for(wanted)?;
        let until = self.clock.said_millis() + u64::from(secs) * 1_000;
        let lease = self.open_lease(&wanted.key, &place, nonce, until);
        lease.ok_or(ResultCode::NoResources)
    }

    fn prolong(&mut self, key: &Key, lease: &Lease, secs: u32) -> Granted {
        let until_millis = self.clock.said_millis() + u64::from(secs) * 1_000;
        let lease = Lease {
            until_millis,
            ..*lease
        };
        // It is there: it was just looked at.
        let _ = self.rules.extend(lease.handle, until_millis);
        if let Some(leases) = &mut self.leases {
            leases.put(*key, lease);
        }
        granted_of(&lease, secs)
    }

    /// Changes who may send in (RFC 6887 §13.3).
    fn filter(&mut self, lease: &Lease, options: &Options) -> Result<(), ResultCode> {
        if options.filters.is_empty() && !options.clears_filters {
            return Ok(());
        }
        let mut filters = match options.clears_filters {
            true => Vec::new(),
            false => self.rules.filters(lease.handle).to_vec(),
        };
        for filter in &options.filters {
            if !filters.contains(filter) {
                filters.push(*filter);
            }
        }
        if filters.len() > MOST_FILTERS {
            return Err(ResultCode::ExcessiveRemotePeers);
        }
        let set = self.rules.set_filters(lease.handle, &filters);
        set.map_err(|_: rules::RuleError| ResultCode::ExcessiveRemotePeers)
    }
}

/// The remote end that a PEER names, if there can be one.
fn remote_of(mapping: &Mapping) -> Option<(Ipv4Addr, u16)> {
    let (address, port) = mapping.remote?;
    let address = address.to_ipv4_mapped()?;
    (port != 0 && !address.is_unspecified()).then_some((address, port))
}

/// What NAT-PMP says for a result of PCP's (RFC 6886 §3.5).
fn code_of(code: ResultCode) -> natpmp::ResultCode {
    match code {
        ResultCode::NotAuthorized => natpmp::ResultCode::NotAuthorized,
        ResultCode::NetworkFailure => natpmp::ResultCode::NetworkFailure,
        _ => natpmp::ResultCode::OutOfResources,
    }
}

/// The outside address that is suggested; none: any. One that cannot be ours
/// is no hindrance, unless nothing else will do.
fn suggested_address(mapping: &Mapping, exactly: bool) -> Result<Option<Ipv4Addr>, ResultCode> {
    if mapping.external.is_unspecified() {
        return Ok(None);
    }
    match mapping.external.to_ipv4_mapped() {
        Some(address) => Ok(Some(address).filter(|address| !address.is_unspecified())),
        None if exactly => Err(ResultCode::CannotProvideExternal),
        None => Ok(None),
    }
}

/// Whether a lease is at the outside end that is suggested.
fn is_suggested(lease: &Lease, mapping: &Mapping) -> bool {
    is_end((lease.alias, lease.alias_port), mapping)
}

fn is_end((alias, port): (Ipv4Addr, u16), mapping: &Mapping) -> bool {
    let fits_port = mapping.external_port == 0 || mapping.external_port == port;
    match suggested_address(mapping, true) {
        Ok(address) => fits_port && address.is_none_or(|address| address == alias),
        Err(_) => false,
    }
}

fn granted_of(lease: &Lease, secs: u32) -> Granted {
    Granted {
        lifetime_secs: secs,
        external: lease.alias.to_ipv6_mapped(),
        external_port: lease.alias_port,
        ports: lease.ports,
    }
}

/// A redirect of the operator's serves as well, and stays his (RFC 6887
/// §11.3, static mappings).
fn granted_by_operator(
    end: (Ipv4Addr, u16),
    mapping: &Mapping,
    options: &Options,
) -> Result<Granted, ResultCode> {
    if options.prefer_failure && !is_end(end, mapping) {
        return Err(ResultCode::CannotProvideExternal);
    }
    if !options.filters.is_empty() {
        return Err(ResultCode::ExcessiveRemotePeers);
    }
    Ok(Granted {
        lifetime_secs: u32::MAX,
        external: end.0.to_ipv6_mapped(),
        external_port: end.1,
        ports: 1,
    })
}

/// What is answered when a mapping is there no more (RFC 6887 §15).
fn nothing(mapping: &Mapping) -> Granted {
    Granted {
        lifetime_secs: 0,
        external: mapping.external,
        external_port: mapping.external_port,
        ports: 1,
    }
}

fn view(key: &Key, lease: &Lease, now_millis: u64) -> LeaseView {
    LeaseView {
        protocol: key.protocol,
        inside: key.inside.into(),
        inside_port: key.port,
        alias: lease.alias.into(),
        alias_port: lease.alias_port,
        ports: lease.ports,
        remote: key.remote.map(|(address, port)| (address.into(), port)),
        expires_millis: lease.until_millis.saturating_sub(now_millis),
    }
}
