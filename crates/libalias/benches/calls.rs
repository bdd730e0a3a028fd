//! What a call of the C interface costs beside the engine's own call, one
//! after the other: UDP packets of 64 bytes, 2,112 bytes apart in 16 MiB, of
//! uniformly random flows. `calls [FLOWS…]`; medians of rounds that take
//! turns, so that both have the machine's same minutes.
//!
//! `calls load [SECONDS]` is FreeBSD's load test by its description (report of
//! 2026-11): rounds of 2,000 new flows, 1,000 random packets that come in, one
//! of them 1,000 times, and then for each flow 1 to 149 packets within a
//! window of 25 flows, nine in ten of them in; with 2,000 redirects. Beside it
//! the same without an engine, which is the load's own time.
//!
//! `calls attack [CALLS]` is what a flood of unasked packets costs that is
//! refused, without redirects and with 2,000 of them; for callgrind as well
//! (`calls attack-once`: random packets alone, with redirects).

#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the functions are C's, and a benchmark fails by it"
)]

use std::ffi::{c_int, c_uint, c_void};
use std::hint::black_box;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::time::Instant;

use alias as _;
use lab::Random;
use lab::bench::median;
use nat::{Config, Nat, PortChoice, Verdict};
use nix::time::{ClockId, clock_gettime};
use packet::build::Ip;

unsafe extern "C" {
    fn LibAliasInitSized(la: *mut c_void, max_links: c_uint) -> *mut c_void;
    fn LibAliasSetAddress(la: *mut c_void, address: u32);
    fn LibAliasOut(la: *mut c_void, packet: *mut c_void, max: c_int) -> c_int;
    fn LibAliasMaintain(la: *mut c_void, budget: c_int) -> c_int;
    fn LibAliasSetTime(la: *mut c_void, millis: u64);
    fn LibAliasUninit(la: *mut c_void);
    fn LibAliasIn(la: *mut c_void, packet: *mut c_void, max: c_int) -> c_int;
    fn LibAliasSetMode(la: *mut c_void, flags: c_uint, mask: c_uint) -> c_uint;
    fn LibAliasRedirectPort(
        la: *mut c_void,
        inside: u32,
        inside_port: u16,
        remote: u32,
        remote_port: u16,
        alias: u32,
        alias_port: u16,
        protocol: u8,
    ) -> *mut c_void;
}

const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const STRIDE: usize = 2_112;
const PACKETS: usize = (16 << 20) / STRIDE;
const ROUNDS: usize = 25;
/// `LIBALIAS_TIME_CLOCK`.
const CLOCK: u64 = u64::MAX;

fn write_packet(place: &mut [u8], flow: usize) {
    let inside = Ipv4Addr::from(0x0a00_0000 + (flow / 63) as u32);
    let spread = (flow as u32).wrapping_mul(0x9e37_79b1);
    let remote = Ipv4Addr::from(0x1200_0000 | spread >> 8);
    let port = 1_024 + (flow % 63) as u16 * 17;
    let packet = Ip::new(inside, remote).udp(port, 443, &[0; 36]);
    place[..64].copy_from_slice(&packet);
}

/// One pass over the area, nanoseconds a packet.
fn pass(area: &mut [u8], packets: usize, mut call: impl FnMut(&mut [u8]) -> bool) -> f64 {
    let mut good = 0;
    let started = Instant::now();
    for place in area.chunks_exact_mut(STRIDE).take(packets) {
        good += usize::from(call(&mut place[..64]));
    }
    let ns = started.elapsed().as_nanos() as f64 / packets as f64;
    assert_eq!(good, packets);
    ns
}

fn measure(out: &mut impl Write, flows: usize) -> io::Result<()> {
    let mut config = Config::new(&[ALIAS]);
    config.limits.max_flows = flows + 1_000;
    config.limits.initial_flows = 0;
    config.mode.deny_incoming = false;
    config.port_choice = PortChoice::Same;
    let mut nat = Nat::new(config).unwrap();
    // SAFETY: no instance yet; then one that lives.
    let la = unsafe { LibAliasInitSized(std::ptr::null_mut(), flows as c_uint + 1_000) };
    // SAFETY: as above; an address in network order.
    unsafe { LibAliasSetAddress(la, u32::from_ne_bytes(ALIAS.octets())) };
    // What C calls is not inlined.
    let c =
        black_box(LibAliasOut as unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> c_int);
    let by_c = |bytes: &mut [u8]| {
        // SAFETY: a living instance, and 64 bytes of this function's own.
        unsafe { c(la, bytes.as_mut_ptr().cast(), bytes.len() as c_int) == 1 }
    };
    let by_engine =
        |nat: &mut Nat, bytes: &mut [u8]| nat.translate_out(bytes, 0) == Verdict::Translated;
    let mut area = vec![0; PACKETS * STRIDE];
    let mut random = Random::new(7);
    let mut fill = |area: &mut [u8], mut which: Box<dyn FnMut(&mut Random) -> usize>| {
        for place in area.chunks_exact_mut(STRIDE) {
            write_packet(place, which(&mut random));
        }
    };
    for from in (0..flows).step_by(PACKETS) {
        let packets = PACKETS.min(flows - from);
        for both in 0..2 {
            let mut next = from..;
            fill(&mut area, Box::new(move |_| next.next().unwrap_or(0)));
            for _ in 0..64 {
                // Both on huge pages, made ready ahead of growth.
                nat.maintain(0, 0);
                // SAFETY: a living instance.
                unsafe { LibAliasMaintain(la, 0) };
            }
            match both {
                0 => pass(&mut area, packets, |bytes| by_engine(&mut nat, bytes)),
                _ => pass(&mut area, packets, by_c),
            };
        }
    }
    let mut costs = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (way, costs) in costs.iter_mut().enumerate() {
            fill(&mut area, Box::new(move |random| random.below(flows)));
            // SAFETY: a living instance.
            unsafe { LibAliasSetTime(la, if way == 2 { clock_millis() } else { CLOCK }) };
            costs.push(match way {
                0 => pass(&mut area, PACKETS, |bytes| by_engine(&mut nat, bytes)),
                _ => pass(&mut area, PACKETS, by_c),
            });
        }
    }
    let names = ["engine", "LibAliasOut", "LibAliasOut, time set"];
    for (name, costs) in names.into_iter().zip(&mut costs) {
        writeln!(
            out,
            "{flows:>9} flows  {name:<22} {:>7.1} ns",
            median(costs)
        )?;
    }
    // SAFETY: a living instance, used no more.
    unsafe { LibAliasUninit(la) };
    Ok(())
}

/// An instance that refuses what is unasked, and a flow, so that it is not
/// empty; with 2,000 redirects where that is asked for: a thousand ports, each
/// of them twice, as FreeBSD's load test has them.
fn attacked(with_redirects: bool) -> *mut c_void {
    // SAFETY: no instance yet.
    let la = unsafe { LibAliasInitSized(std::ptr::null_mut(), 0) };
    let alias = u32::from_ne_bytes(ALIAS.octets());
    let inside = u32::from_ne_bytes([10, 0, 0, 9]);
    // SAFETY: a living instance.
    unsafe {
        LibAliasSetAddress(la, alias);
        // PKT_ALIAS_SAME_PORTS, PKT_ALIAS_DENY_INCOMING.
        LibAliasSetMode(la, 0x06, !0);
        LibAliasSetTime(la, 1);
    }
    let mut packet = [0; 64];
    write_packet(&mut packet, 7);
    // SAFETY: a living instance, and 64 bytes of this function's own.
    unsafe { LibAliasOut(la, packet.as_mut_ptr().cast(), 64) };
    for port in 1_000..2_000_u16 {
        for _ in 0..2 * usize::from(with_redirects) {
            let (port, protocol) = (port.to_be(), packet::protocol::UDP);
            // SAFETY: a living instance.
            unsafe { LibAliasRedirectPort(la, inside, port, 0, 0, alias, port, protocol) };
        }
    }
    la
}

/// Packets from random strangers to random ports.
fn strangers(area: &mut [u8], random: &mut Random) {
    for place in area.chunks_exact_mut(STRIDE) {
        let remote = Ipv4Addr::from(0x1230_0000 + random.below(1 << 20) as u32);
        let port = 1 + random.below(65_534) as u16;
        let packet = Ip::new(remote, ALIAS).udp(port, 1 + random.below(65_534) as u16, &[0; 36]);
        place[..64].copy_from_slice(&packet);
    }
}

/// One call for each packet; how many were refused.
fn refuse(la: *mut c_void, area: &mut [u8]) -> usize {
    let places = area.chunks_exact_mut(STRIDE);
    let refused = places.filter_map(|place| {
        // SAFETY: a living instance, and 64 bytes of the area.
        let code = unsafe { LibAliasIn(la, place.as_mut_ptr().cast(), 64) };
        (code == 2).then_some(())
    });
    refused.count()
}

fn attack(out: &mut impl Write) -> io::Result<()> {
    let mut random = Random::new(11);
    let mut area = vec![0; PACKETS * STRIDE];
    let mut one = vec![0; STRIDE];
    let all = [attacked(false), attacked(true)];
    let mut costs = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        strangers(&mut area, &mut random);
        for (la, costs) in all.iter().zip(costs.chunks_exact_mut(2)) {
            let started = Instant::now();
            let refused = refuse(*la, &mut area);
            costs[0].push(started.elapsed().as_nanos() as f64 / PACKETS as f64);
            assert!(refused > PACKETS * 9 / 10, "{refused}");
            strangers(&mut one, &mut random);
            let started = Instant::now();
            for _ in 0..PACKETS {
                black_box(refuse(*la, &mut one));
            }
            costs[1].push(started.elapsed().as_nanos() as f64 / PACKETS as f64);
        }
    }
    let names = [
        "random packets, no redirects",
        "one packet again and again, no redirects",
        "random packets, 2,000 redirects",
        "one packet again and again, 2,000 redirects",
    ];
    for (name, costs) in names.into_iter().zip(&mut costs) {
        writeln!(out, "{name:<45} {:>7.1} ns", median(costs))?;
    }
    Ok(())
}

type Call = unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> c_int;

/// In the place of an engine.
unsafe extern "C" fn nothing(_la: *mut c_void, packet: *mut c_void, _max: c_int) -> c_int {
    black_box(packet);
    1
}

/// A flow of the load.
#[derive(Clone, Copy)]
struct Flow {
    inside: ([u8; 4], u16),
    remote: ([u8; 4], u16),
    alias_port: u16,
}

/// What the load's phases are called.
const PHASES: [&str; 4] = ["new flow", "random in", "attack", "use"];

/// What the library's clock says: a time that is far from it would let all
/// flows expire when the clock is asked again.
fn clock_millis() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE).unwrap();
    time.tv_sec() as u64 * 1_000 + time.tv_nsec() as u64 / 1_000_000
}

/// What this thread has had of a processor: others may be at it as well.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9
}

/// A load and what it took: operations and seconds of each phase.
struct Load {
    la: *mut c_void,
    out: Call,
    incoming: Call,
    flows: Vec<Flow>,
    packet: [u8; 64],
    random: Random,
    wrong: u64,
    took: [(u64, f64); 4],
}

impl Load {
    fn new(la: *mut c_void, out: Call, incoming: Call) -> Self {
        let mut packet = [0; 64];
        write_packet(&mut packet, 7);
        Self {
            la,
            out,
            incoming,
            flows: Vec::new(),
            packet,
            random: Random::new(3),
            wrong: 0,
            took: [(0, 0.0); 4],
        }
    }

    /// One packet; the sums of it are nobody's business here.
    fn call(&mut self, call: Call, from: ([u8; 4], u16), to: ([u8; 4], u16)) {
        self.packet[12..16].copy_from_slice(&from.0);
        self.packet[16..20].copy_from_slice(&to.0);
        self.packet[20..22].copy_from_slice(&from.1.to_be_bytes());
        self.packet[22..24].copy_from_slice(&to.1.to_be_bytes());
        let max = self.packet.len() as c_int;
        // SAFETY: a living instance, or a function that looks at none.
        unsafe { call(self.la, self.packet.as_mut_ptr().cast(), max) };
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.packet[at], self.packet[at + 1]])
    }

    fn end(&mut self, net: [u8; 2], wide: usize, low: usize, ports: usize) -> ([u8; 4], u16) {
        let host = self.random.below(wide) as u32;
        let address = u32::from_be_bytes([net[0], net[1], 0, 0]) + host;
        (
            address.to_be_bytes(),
            (low + self.random.below(ports)) as u16,
        )
    }

    fn flow(&mut self) {
        let inside = self.end([10, 0], 1 << 16, 1_000, 59_000);
        let remote = self.end([18, 52], 1 << 16, 1_000, 59_000);
        self.call(self.out, inside, remote);
        let alias_port = self.word(20);
        self.wrong += u64::from(self.packet[16..20] != remote.0);
        self.flows.push(Flow {
            inside,
            remote,
            alias_port,
        });
    }

    fn stranger(&mut self) -> (([u8; 4], u16), u16) {
        let from = self.end([18, 48], 1 << 20, 1, 65_534);
        (from, 1 + self.random.below(65_534) as u16)
    }

    fn used(&mut self, flow: Flow) {
        if self.random.below(100) < 89 {
            self.call(
                self.incoming,
                flow.remote,
                (ALIAS.octets(), flow.alias_port),
            );
            let is_right = self.packet[16..20] == flow.inside.0 && self.word(22) == flow.inside.1;
            self.wrong += u64::from(!is_right);
        } else {
            self.call(self.out, flow.inside, flow.remote);
            let is_right =
                self.packet[12..16] == ALIAS.octets() && self.word(20) == flow.alias_port;
            self.wrong += u64::from(!is_right);
        }
    }

    fn phase(&mut self, at: usize, work: impl FnOnce(&mut Self) -> u64) {
        let started = processor_seconds();
        let done = work(self);
        let (operations, seconds) = &mut self.took[at];
        *operations += done;
        *seconds += processor_seconds() - started;
    }

    fn round(&mut self) {
        self.phase(0, |load| {
            (0..2_000).for_each(|_| load.flow());
            2_000
        });
        self.phase(1, |load| {
            for _ in 0..1_000 {
                let (from, port) = load.stranger();
                load.call(load.incoming, from, (ALIAS.octets(), port));
            }
            1_000
        });
        self.phase(2, |load| {
            let (from, port) = load.stranger();
            (0..1_000).for_each(|_| load.call(load.incoming, from, (ALIAS.octets(), port)));
            1_000
        });
        self.random.shuffle(&mut self.flows);
        self.phase(3, |load| {
            let mut done = 0;
            for at in 0..load.flows.len() {
                let many = 1 + load.random.below(149);
                let window = 25.min(load.flows.len() - at);
                for _ in 0..many {
                    let which = at + load.random.below(window);
                    let flow = load.flows[which];
                    load.used(flow);
                }
                done += many as u64;
            }
            done
        });
    }
}

fn load(out: &mut impl Write, seconds: f64) -> io::Result<()> {
    let la = attacked(true);
    // SAFETY: a living instance.
    unsafe { LibAliasSetTime(la, CLOCK) };
    let mut by_us = Load::new(la, LibAliasOut, LibAliasIn);
    let mut alone = Load::new(std::ptr::null_mut(), nothing, nothing);
    let started = Instant::now();
    let mut rounds = 0;
    while started.elapsed().as_secs_f64() < seconds {
        by_us.round();
        alone.round();
        rounds += 1;
    }
    assert_eq!(by_us.wrong, 0);
    writeln!(
        out,
        "{rounds} rounds, {} flows; ns an operation",
        by_us.flows.len()
    )?;
    let (mut net, mut all) = (0.0, 0);
    for (phase, ((done, took), (_, own))) in PHASES.iter().zip(by_us.took.iter().zip(alone.took)) {
        let each = |seconds: f64| seconds * 1e9 / *done as f64;
        writeln!(
            out,
            "{phase:<10} {done:>10}  with {:>7.1}  load alone {:>6.1}  net {:>7.1}",
            each(*took),
            each(own),
            each(took - own)
        )?;
        (net, all) = (net + took - own, all + done);
    }
    writeln!(
        out,
        "net of the load: {:.1} million a second",
        all as f64 / net / 1e6
    )
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    match std::env::args().nth(1).as_deref() {
        Some("attack") => return attack(&mut out),
        Some("load") => {
            let seconds = std::env::args().nth(2).and_then(|word| word.parse().ok());
            return load(&mut out, seconds.unwrap_or(10.0));
        }
        Some("attack-once") => {
            let mut area = vec![0; PACKETS * STRIDE];
            strangers(&mut area, &mut Random::new(11));
            let refused = refuse(attacked(true), &mut area);
            return writeln!(out, "{refused} of {PACKETS} refused");
        }
        _ => {}
    }
    let words = std::env::args().skip(1);
    let mut sizes: Vec<usize> = words.filter_map(|word| word.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![2_000, 100_000, 1_000_000];
    }
    for flows in sizes {
        measure(&mut out, flows)?;
    }
    Ok(())
}
