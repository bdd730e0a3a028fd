//! Our workers between memory ports.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fingerpost_dataplane as dataplane;

use dataplane::fib_sync::{Attachment, FibSync, FibSyncSettings};
use dataplane::forward::{Forwarder, Node, Settings};
use dataplane::worker::{Clock, Mesh, Running, Worker};
use dataplane::{Buffer, Memory, Pool, Port};
use ipnet::{IpNet, Ipv4Net};
use lab::bench::Samples;
use lab::situation::fib::{Family, Route as FullRoute, Stream, stream, table as full_table};
use memory::quiescent::Domain;
use nat::{Config, Direction, Nat, Owner};
use packet::build::Ip;
use table::row::attributes::RawAttributes;
use table::row::neighbour::state;
use table::row::route::{kind, protocol, scope, table_id};
use table::row::{link, rule};
use table::{
    AF_INET, Change, Limits, Link, LinkLayerAddress, Neighbour, NextHop, NextHops, Placement,
    Route, RouteBody, Rule, Writer,
};

use super::{Arguments, progress, testpmd};

const IN: [u8; 6] = [2, 0, 0, 0, 0, 2];
const OUT: [u8; 6] = [2, 0, 0, 0, 0, 3];
/// Gateways, all on the link that packets leave by.
const NEIGHBOURS: u32 = 10_000;
const ALIAS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const PATIENCE: Duration = Duration::from_secs(30);

/// Tables in full size, filled.
struct Router {
    writer: Writer,
    fill: FibSync,
    domain: Arc<Domain>,
    routes: usize,
}

fn gateway(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0xc612_0000 + number)
}

fn body(number: u32) -> RouteBody {
    RouteBody {
        kind: kind::UNICAST,
        protocol: protocol::BGP,
        scope: scope::UNIVERSE,
        flags: 0,
        preferred_source: None,
        source: None,
        nexthop_id: None,
        next_hops: NextHops::One(NextHop {
            link: 3,
            gateway: Some(gateway(number).into()),
            weight: 1,
            ..NextHop::default()
        }),
        metrics: None,
        preference: None,
        error: 0,
        expires_at_millis: None,
        rest: RawAttributes::default(),
        path: Default::default(),
    }
}

fn put(prefix: IpNet, number: u32) -> Change {
    let route = Route {
        table: table_id::MAIN,
        prefix,
        tos: 0,
        metric: 0,
        body: body(number),
    };
    Change::PutRoute(route, Placement::InsteadOfFirst)
}

fn surroundings() -> Vec<Change> {
    let link = |index: u32, mac: [u8; 6]| {
        Change::PutLink(Link {
            index,
            name: format!("em{index}").into(),
            flags: link::flag::UP,
            address: LinkLayerAddress::new(&mac).unwrap_or_default(),
            mtu: 1_500,
            ..Link::default()
        })
    };
    let neighbour = |number: u32| {
        let [a, b, c, d] = number.to_be_bytes();
        Change::PutNeighbour(Neighbour {
            link: 3,
            address: gateway(number).into(),
            proxy: false,
            lladdr: LinkLayerAddress::new(&[2, 1, a, b, c, d]).unwrap_or_default(),
            state: state::REACHABLE,
            flags: 0,
            protocol: 0,
            kind: kind::UNICAST,
        })
    };
    let rule = Change::PutRule(Rule {
        family: AF_INET,
        priority: 32_766,
        table: table_id::MAIN,
        action: rule::action::TO_TABLE,
        ..Rule::default()
    });
    // All are forwarded, also those that no prefix covers.
    let default = put(Ipv4Net::default().into(), 1);
    let mut changes = vec![link(2, IN), link(3, OUT), rule, default];
    changes.extend((0..NEIGHBOURS).map(neighbour));
    changes
}

fn router(count: usize, samples: &mut Samples) -> Result<(Router, Vec<FullRoute>)> {
    let routes = full_table(Family::V4, count);
    let mut writer = Writer::new(Limits::default());
    writer.without_events();
    let rows = routes.iter().map(|&(bits, len, hop)| {
        // Each next hop of the made-up table is many gateways here.
        let spread = (bits >> 112) as u32;
        let number = (u32::from(hop) * 50 + spread % 50) % NEIGHBOURS;
        let prefix = Ipv4Net::new_assert(Ipv4Addr::from_bits((bits >> 96) as u32), len);
        put(prefix.into(), number)
    });
    writer.commit(surroundings().into_iter().chain(rows))?;
    let domain = Domain::new(8);
    let mut ports = vec![Attachment::ethernet("em2"), Attachment::ethernet("em3")];
    ports[1].is_outside = true;
    let start = Instant::now();
    let fill = FibSync::new(writer.reader(), &domain, ports, FibSyncSettings::default())?;
    let built = start.elapsed().as_secs_f64() * 1e3;
    let size = routes.len() as u64;
    samples.add("fingerpost", "fill from the tables", size, "wall_ms", built);
    ensure!(fill.filled().refused == 0, "{:?}", fill.filled());
    progress(&format!(
        "{size} routes filled in {built:.0} ms: {:?}",
        fill.filled()
    ));
    let router = Router {
        writer,
        fill,
        domain,
        routes: routes.len(),
    };
    Ok((router, routes))
}

/// Flows of an inner host.
const FLOWS_EACH: usize = 1 << 14;

/// Makes packets of 64 bytes to these addresses in turn, from `flows`
/// inner ends of some hosts.
fn packets(
    destinations: Arc<Vec<u32>>,
    hosts: Vec<u32>,
    first: usize,
    work: Work,
) -> impl FnMut(&mut Buffer) -> bool + Send + 'static {
    let packet = Ip::new(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED).udp(4_000, 53, &[0x55; 22]);
    let mut frame = [0; 64];
    frame[..6].copy_from_slice(&IN);
    frame[6..14].copy_from_slice(&[2, 9, 9, 9, 9, 9, 8, 0]);
    frame[14..].copy_from_slice(&packet);
    // No checksum of UDP: it would be the generator's to make.
    frame[40..42].fill(0);
    let checksum = u16::from_be_bytes([frame[24], frame[25]]);
    let base = u32::from(!checksum);
    let (flows, mut left) = (work.flows.max(1), work.most);
    // A flow is one inner end and one destination.
    let turns = if flows > 1 { flows } else { destinations.len() };
    let (mut at, mut flow) = (first % turns, first % flows);
    let mut next = move || {
        let to = destinations.get(at).copied().unwrap_or(0x0808_0808);
        let from = hosts.get(flow / FLOWS_EACH).copied();
        let from = from.unwrap_or(0x0a00_0001);
        let port = 1_024 + (flow as u16 & 0x3fff);
        at = if at + 1 == turns { 0 } else { at + 1 };
        flow = if flow + 1 == flows { 0 } else { flow + 1 };
        (to, from, port)
    };
    move |buffer| {
        if left == 0 {
            return false;
        }
        left -= 1;
        let (to, from, port) = next();
        let mut sum = base + (to >> 16) + (to & 0xffff) + (from >> 16) + (from & 0xffff);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        // Written where it stays: a frame that is changed and then copied
        // whole waits for its own stores.
        if !buffer.set_frame(&frame, 14) {
            return false;
        }
        let Some(changed) = buffer.packet_mut().get_mut(10..22) else {
            return false;
        };
        changed[..2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        changed[2..6].copy_from_slice(&from.to_be_bytes());
        changed[6..10].copy_from_slice(&to.to_be_bytes());
        changed[10..].copy_from_slice(&port.to_be_bytes());
        true
    }
}

/// Millions of packets a second.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// By the clock.
    pub mpps: f64,
    /// By the time that the CPUs were had.
    pub mpps_of_cpu: f64,
}

impl Rate {
    fn add(self, samples: &mut Samples, who: &str, what: &str, size: u64) {
        samples.add(who, what, size, "mpps", self.mpps);
        samples.add(who, what, size, "mpps_of_cpu", self.mpps_of_cpu);
        let Self { mpps, mpps_of_cpu } = self;
        progress(&format!("{who} {what}: {mpps:.2}, of CPU {mpps_of_cpu:.2}"));
    }
}

/// What a worker does.
#[derive(Clone, Copy)]
struct Work {
    /// Inner ends that are translated; 0: no translation.
    flows: usize,
    stream: Stream,
    /// Packets at a time.
    batch: usize,
    alias: Alias,
    /// Packets that each worker's generator makes at most.
    most: u64,
}

/// What workers have of alias addresses, and to whom packets come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alias {
    /// One each: they know nothing of one another.
    Own,
    /// One for all, and packets come to who translates them.
    Shared,
    /// The same, and packets come to anybody.
    SharedByAny,
}

impl Alias {
    fn name(self) -> &'static str {
        match self {
            Self::Own => "",
            Self::Shared => ", one address",
            Self::SharedByAny => ", one address, by any worker",
        }
    }
}

impl Router {
    fn workers(
        &mut self,
        work: Work,
        addresses: &Arc<Vec<u32>>,
        count: usize,
    ) -> Result<Vec<Worker>> {
        let is_shared = work.alias != Alias::Own;
        let mut engines = Vec::new();
        for number in (0..count as u32).filter(|_| work.flows > 0) {
            let other = if is_shared { 0 } else { number };
            let mut config = Config::new(&[Ipv4Addr::from_bits(ALIAS.to_bits() + other)]);
            config.limits.max_flows = 2 * work.flows;
            config.ports = 1_024..=65_535;
            engines.push(Nat::new(config)?);
        }
        let pool = Pool::new(2_048 * count, 2_048)?;
        let mut peers = Vec::new();
        let mut shards = None;
        if let Some(first) = engines.first().filter(|_| is_shared) {
            peers = Mesh::of(&pool, count, 1_024)?;
            shards = Some(Arc::new(first.shards(count as u16)?));
        }
        let (mut peers, mut engines) = (peers.into_iter(), engines.into_iter());
        let mut workers = Vec::new();
        for number in 0..count {
            let mut nat = engines.next();
            let mut hosts: Vec<u32> = (0..work.flows.div_ceil(FLOWS_EACH) as u32 * 4)
                .map(|host| 0x0a00_0001 + host)
                .collect();
            if let (Some(nat), Some(shards)) = (&mut nat, &shards) {
                nat.join_shards(Arc::clone(shards), number as u16);
                let is_own = |host: &u32| {
                    let packet = Ip::new(Ipv4Addr::from_bits(*host), ALIAS).udp(1, 2, &[]);
                    shards.owner(Direction::Out, &packet) == Owner::Shard(number as u16)
                };
                match work.alias {
                    // As many flows as else, of hosts of both.
                    Alias::SharedByAny => {
                        hosts = hosts.into_iter().skip(number).step_by(count).collect()
                    }
                    _ => hosts.retain(is_own),
                }
            }
            let worker = self.worker(work, addresses, hosts, number, nat, &pool)?;
            workers.push(match peers.next() {
                Some(peers) => worker.with_mesh(peers),
                None => worker,
            });
        }
        Ok(workers)
    }

    fn worker(
        &mut self,
        work: Work,
        addresses: &Arc<Vec<u32>>,
        hosts: Vec<u32>,
        number: usize,
        nat: Option<Nat>,
        pool: &Pool,
    ) -> Result<Worker> {
        let forwarder = Forwarder::new(
            self.fill.ports().clone(),
            self.fill.views(),
            self.fill.table(),
            nat,
            Settings::default(),
            pool.cache(),
        );
        let first = number * addresses.len() / 2;
        let source = packets(Arc::clone(addresses), hosts, first, work);
        let ports: Vec<(u16, Box<dyn Port + Send>)> = vec![
            (0, Box::new(Memory::generator(source))),
            (1, Box::new(Memory::null())),
        ];
        Ok(Worker::new(
            forwarder,
            self.domain.register()?,
            ports,
            work.batch,
            Clock::System,
            None,
        ))
    }

    /// Millions of packets that so many workers send in all, in a second
    /// of the clock and in one of their CPUs: the machine may be busy.
    fn rate(
        &mut self,
        work: Work,
        addresses: &Arc<Vec<u32>>,
        workers: usize,
        time: Duration,
    ) -> Result<Rate> {
        let mut running = Vec::new();
        let all = self.workers(work, addresses, workers)?;
        for (number, worker) in all.into_iter().enumerate() {
            running.push(Running::start(worker, Some(number))?);
        }
        let sent = |running: &[Running]| -> Result<Vec<(u64, u64)>> {
            let state = |worker: &Running| {
                let state = worker.state(PATIENCE).context("a worker is silent")?;
                Ok((state.counters.of_node(Node::Output), state.cpu_nanos))
            };
            running.iter().map(state).collect()
        };
        let packets = |states: &[(u64, u64)]| -> u64 { states.iter().map(|state| state.0).sum() };
        // Until each flow is there.
        let warm = Instant::now();
        while packets(&sent(&running)?) < (work.flows * workers) as u64 * 3 / 2 {
            ensure!(warm.elapsed() < PATIENCE, "the flows do not come to be");
            thread::sleep(Duration::from_millis(20));
        }
        thread::sleep(time / 4);
        let start = Instant::now();
        let before = sent(&running)?;
        thread::sleep(time);
        let after = sent(&running)?;
        let elapsed = start.elapsed().as_secs_f64();
        let (mut sent, mut came, mut counted) = (0, 0, Vec::new());
        for worker in running {
            let state = worker.stop();
            sent += state.counters.of_node(Node::Output);
            came += state.counters.of_node(Node::Ipv4);
            counted.push(state.counters);
        }
        // A worker that loses its core has full rings.
        let least = if work.alias == Alias::SharedByAny {
            500
        } else {
            995
        };
        ensure!(came == 0 || sent * 1_000 > came * least, "{counted:?}");
        let per_cpu = before
            .iter()
            .zip(&after)
            .map(|(before, after)| (after.0 - before.0) as f64 / (after.1 - before.1) as f64 * 1e3);
        Ok(Rate {
            mpps: (packets(&after) - packets(&before)) as f64 / elapsed / 1e6,
            mpps_of_cpu: per_cpu.sum(),
        })
    }
}

pub fn measure(
    arguments: &Arguments,
    samples: &mut Samples,
    wants: impl Fn(&str) -> bool,
) -> Result<()> {
    let count = if arguments.quick { 100_000 } else { 1_000_000 };
    let (mut router, routes) = router(count, samples)?;
    let size = router.routes as u64;
    if wants("change") {
        changes(arguments, &mut router, &routes, samples)?;
    }
    for round in 0..arguments.rounds {
        progress(&format!("round {round}"));
        if wants("forward") {
            for kind in Stream::ALL {
                let addresses = addresses(kind, &routes);
                let work = Work {
                    flows: 0,
                    stream: kind,
                    batch: arguments.batch,
                    alias: Alias::Own,
                    most: u64::MAX,
                };
                for workers in [1, 2] {
                    let rate = router.rate(work, &addresses, workers, arguments.time())?;
                    let what = format!("forward {}, {workers} workers", work.stream.name());
                    rate.add(samples, "fingerpost", &what, size);
                }
            }
            if let Some(program) = &arguments.testpmd {
                for (mode, copy) in [
                    ("io", false),
                    ("mac", false),
                    ("5tswap", false),
                    ("io", true),
                    ("mac", true),
                ] {
                    let rate = testpmd::rate(program, mode, copy, arguments.time())?;
                    let what = format!("{mode}{}", if copy { ", bytes copied" } else { "" });
                    rate.add(samples, "testpmd", &what, 0);
                }
            }
        }
        if wants("nat") {
            let flows = if arguments.quick { 100_000 } else { 1_000_000 };
            let addresses = addresses(Stream::Inside, &routes);
            let rows = [
                (Alias::Own, 1),
                (Alias::Own, 2),
                (Alias::Shared, 1),
                (Alias::Shared, 2),
                (Alias::SharedByAny, 2),
            ];
            for (alias, workers) in rows {
                let work = Work {
                    flows,
                    stream: Stream::Inside,
                    batch: arguments.batch,
                    alias,
                    most: u64::MAX,
                };
                let rate = router.rate(work, &addresses, workers, arguments.time())?;
                let name = alias.name();
                let what = format!("forward with translation, {workers} workers{name}");
                rate.add(samples, "fingerpost", &what, flows as u64);
            }
        }
    }
    Ok(())
}

/// Has one worker forward so many packets on this thread, by a tenth of the
/// routes; translated, where `flows` are wanted.
pub fn count(packets: u64, flows: usize, batch: usize) -> Result<()> {
    let (mut router, routes) = router(100_000, &mut Samples::default())?;
    let work = Work {
        flows,
        stream: Stream::Inside,
        batch,
        alias: Alias::Own,
        most: packets,
    };
    let addresses = addresses(work.stream, &routes);
    let workers = router.workers(work, &addresses, 1)?;
    let (_to, asks) = mpsc::sync_channel(1);
    for worker in workers {
        let sent = worker.run(&asks).counters.of_node(Node::Output);
        ensure!(sent == packets, "{sent} of {packets}");
    }
    Ok(())
}

/// Addresses of a stream, the ones that no router forwards to replaced.
fn addresses(kind: Stream, routes: &[FullRoute]) -> Arc<Vec<u32>> {
    let all = stream(Family::V4, kind, routes).into_iter();
    let mut last = 0x0808_0808;
    let sound = all.map(|bits| {
        let address = (bits >> 96) as u32;
        let first = address >> 24;
        if first != 0 && first != 127 && first < 224 {
            last = address;
        }
        last
    });
    Arc::new(sound.collect())
}

/// How long until a change of the tables is what workers look up.
fn changes(
    arguments: &Arguments,
    router: &mut Router,
    routes: &[FullRoute],
    samples: &mut Samples,
) -> Result<()> {
    let mut worst = 0.0_f64;
    let (mut sum, mut made) = (0.0, 0_u32);
    const CHANGES: u32 = 2_000;
    for number in 0..CHANGES {
        let (bits, len, _) = routes[number as usize * 97 % routes.len()];
        let prefix = Ipv4Net::new_assert(Ipv4Addr::from_bits((bits >> 96) as u32), len);
        let before = router.writer.tables().generation;
        let start = Instant::now();
        let after = router.writer.commit([put(prefix.into(), number)])?;
        if after == before {
            // The route was this one already.
            continue;
        }
        while router.fill.filled().generation < after {
            let has_come = router.fill.follow(PATIENCE);
            ensure!(has_come, "a change is not heard of in {PATIENCE:?}");
        }
        let millis = start.elapsed().as_secs_f64() * 1e3;
        worst = worst.max(millis);
        sum += millis;
        made += 1;
    }
    let (size, mean) = (router.routes as u64, sum / f64::from(made));
    samples.add("fingerpost", "a route changed, mean", size, "wall_ms", mean);
    samples.add(
        "fingerpost",
        "a route changed, worst",
        size,
        "wall_ms",
        worst,
    );
    progress(&format!("a change: {mean:.4} ms, worst {worst:.3} ms"));
    for round in 0..arguments.rounds {
        many_changes(router, routes, 7 + round as u32, samples)?;
        changes_by_and_by(router, routes, 7_000 + round as u32, samples)?;
    }
    ensure!(router.fill.filled().refused == 0);
    Ok(())
}

/// The same of ten thousand that are committed at once, with the commit.
fn many_changes(
    router: &mut Router,
    routes: &[FullRoute],
    number: u32,
    samples: &mut Samples,
) -> Result<()> {
    let size = router.routes as u64;
    let many = ten_thousand(routes, number);
    let start = Instant::now();
    let after = router.writer.commit(many)?;
    let committed = start.elapsed().as_secs_f64() * 1e3;
    while router.fill.filled().generation < after {
        let has_come = router.fill.follow(PATIENCE);
        ensure!(has_come, "changes are not heard of in {PATIENCE:?}");
    }
    let millis = start.elapsed().as_secs_f64() * 1e3;
    let what = "10,000 routes changed at once";
    samples.add("fingerpost", what, size, "wall_ms", millis);
    samples.add("fingerpost", what, size, "commit_ms", committed);
    progress(&format!(
        "{what}: {millis:.1} ms, the commit {committed:.1}"
    ));
    Ok(())
}

/// The same in commits as a mirror makes them, each of what it has heard
/// since, while another thread follows.
fn changes_by_and_by(
    router: &mut Router,
    routes: &[FullRoute],
    number: u32,
    samples: &mut Samples,
) -> Result<()> {
    const COMMIT: usize = 256;
    let size = router.routes as u64;
    let many = ten_thousand(routes, number);
    let Router { writer, fill, .. } = router;
    let (begun, beginnings) = mpsc::channel();
    let start = Instant::now();
    let (worst, millis) = thread::scope(|scope| -> Result<(f64, f64)> {
        let following = scope.spawn(move || {
            let mut worst = Duration::ZERO;
            for (generation, at) in beginnings {
                while fill.filled().generation < generation {
                    let has_come = fill.follow(PATIENCE);
                    ensure!(has_come, "changes are not heard of in {PATIENCE:?}");
                }
                worst = worst.max(Instant::now() - at);
            }
            Ok(worst)
        });
        for some in many.chunks(COMMIT) {
            let at = Instant::now();
            let generation = writer.commit(some.iter().cloned())?;
            begun.send((generation, at))?;
        }
        drop(begun);
        let worst = following
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        Ok((millis(worst), millis(start.elapsed())))
    })?;
    let what = "10,000 routes changed, 256 a commit";
    samples.add("fingerpost", what, size, "wall_ms", millis);
    samples.add("fingerpost", what, size, "worst_commit_ms", worst);
    progress(&format!(
        "{what}: {millis:.1} ms, a commit {worst:.2} at worst"
    ));
    Ok(())
}

fn ten_thousand(routes: &[FullRoute], number: u32) -> Vec<Change> {
    let some = routes.iter().take(10_000);
    some.map(|&(bits, len, _)| {
        let prefix = Ipv4Net::new_assert(Ipv4Addr::from_bits((bits >> 96) as u32), len);
        put(prefix.into(), number)
    })
    .collect()
}
