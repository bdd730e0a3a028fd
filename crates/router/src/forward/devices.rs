//! Packets forwarded between TUN devices, until Ctrl-C.

use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use anyhow::{Context, Result};
use dataplane::fib_sync::{Attachment, FibSync, FibSyncSettings};
use dataplane::forward::{Forwarder, Ports, Request};
use dataplane::worker::{Clock, Mesh, Running, Worker, Workers};
use dataplane::{Pool, Port, Tun};
use memory::quiescent::Domain;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tracing::warn;

use super::known::{Known, Readers};
use super::report::Report;
use super::requests::{self, Carrier};
use super::{Device, Forward, rules};
use crate::nat::Translation;
use crate::signals::{caught, has_come};

/// Packets that one read may give, and how long one may be.
const BATCH: usize = 128;
const MAX_PACKET_BYTES: usize = 65_535;
/// Buffers for each worker: a batch, what leaves it, and what is made.
const BUFFERS_EACH: usize = 1_024;
/// Buffers that wait in all rings to one worker: some batches of it, less
/// than the pool has for each.
const RING: usize = 512;
/// Buffers that a ring holds at least.
const LEAST_RING: usize = 32;
/// How long a change of the tables, a request or a signal may go unseen.
const PATIENCE: Duration = Duration::from_millis(5);
/// How long a worker may take to say how it stands.
const ANSWER: Duration = Duration::from_secs(5);

pub fn run(asked: &Forward, read: &Readers) -> Result<Report> {
    let mut end = caught(&[SIGINT, SIGTERM])?;
    let mut hangup = caught(&[SIGHUP])?;
    let (mut translation, engines) = match &asked.nat {
        Some(of_nat) => {
            let begun = Translation::begin(of_nat, &asked.beside, asked.workers)?;
            (Some(begun.0), begun.1)
        }
        None => (None, Vec::new()),
    };
    let keep =
        || privileges::keep_for_mirrors(asked.netns.is_some()).context("giving up privileges");
    let known = Known::open(asked, read, keep)?;
    keep()?;
    let domain = Domain::new(usize::from(asked.workers));
    let devices = devices(asked);
    let attachments = devices.iter().map(|device| Attachment {
        is_host: Some(&device.name) == asked.host.as_ref(),
        is_outside: asked.outside.contains(&device.link),
        ..Attachment::bare(&device.link)
    });
    let settings = FibSyncSettings::default();
    let (reader, routes) = (known.reader(), known.routes());
    let mut fill = FibSync::over(reader, routes, &domain, attachments.collect(), settings)
        .context("compiling the routes")?;
    rules::check(&fill, asked.accepts_rules())?;
    let mut ignored = fill.ignored_rules().to_vec();
    let (asks, asked_for) = requests::rings();
    let opened = open(asked, &devices, &mut fill)?;
    let mut carrier = match known.namespace()? {
        Some(namespace) => Some(Carrier::open(&namespace).context("opening a socket")?),
        None => None,
    };
    let mut workers = hold(asked, engines, opened, &mut fill, &domain, &asks)?;
    if let Some(translation) = &mut translation {
        translation.confirm()?;
    }
    workers.all.iter_mut().for_each(Running::begin);
    let mut failed = vec![0; workers.all.len()];
    if let Err(error) = privileges::confine() {
        warn!("{error}");
    }
    let mut unresolved = 0;
    let mut patience = PATIENCE;
    while !workers.all.iter().any(Running::has_ended) {
        fill.follow(patience);
        rules::tell(&fill, &mut ignored);
        if let Some(taken) = fill.taken() {
            known.acknowledge(taken);
        }
        if let Some(ports) = fill.changed_ports() {
            workers.set_ports(&ports);
        }
        workers.remind();
        tell_failures(&workers, &mut failed);
        if failed.iter().all(|failed| *failed >= devices.len()) {
            break;
        }
        unresolved += carry(&mut carrier, &asked_for);
        let is_hung_up = has_come(&mut hangup);
        if let Some(translation) = &mut translation {
            if is_hung_up {
                // It says itself what was wrong.
                let _ = translation.reload(&workers.all);
            }
            // Who asks goes on asking, and was waited for.
            patience = match translation.tend(&workers.all, PATIENCE) {
                true => Duration::ZERO,
                false => PATIENCE,
            };
        }
        if has_come(&mut end) || is_hung_up && translation.is_none() {
            break;
        }
    }
    let mut report = Report::new(fill.filled());
    report.unresolved = unresolved;
    report.routes = known.routes_state();
    let mut engines = Vec::new();
    for worker in workers.all {
        let (state, engine) = worker.end();
        engines.extend(engine.map(|engine| *engine));
        report.add(state, &|number| {
            let device = devices.get(usize::from(number));
            device.map_or(String::new(), |device| device.name.clone())
        });
    }
    if let Some(translation) = translation {
        (report.records, report.state_error) = translation.end(engines);
    }
    Ok(report)
}

/// Says at once which devices cannot go on; `failed` are those of each
/// worker that were said.
fn tell_failures(workers: &Workers, failed: &mut [usize]) {
    for (worker, told) in workers.all.iter().zip(failed) {
        if worker.failed_ports() <= *told {
            continue;
        }
        let Some(state) = worker.state(ANSWER) else {
            continue;
        };
        for (_, why) in state.failures.iter().skip(*told) {
            warn!("{why}; nothing comes or goes by it any more");
        }
        *told = state.failures.len();
    }
}

/// All devices, that of the host behind the others.
fn devices(asked: &Forward) -> Vec<Device> {
    let host = asked.host.iter().map(|name| Device {
        name: name.clone(),
        link: name.clone(),
    });
    asked.tun.iter().cloned().chain(host).collect()
}

/// What workers are made of.
struct Opened {
    pool: Pool,
    /// Of each worker, by their numbers.
    ports: Vec<Vec<(u16, Box<dyn Port + Send>)>>,
    known: Ports,
    /// Where workers hand packets to each other.
    mesh: Vec<Mesh>,
}

/// Opens a queue of every device for each worker.
fn open(asked: &Forward, devices: &[Device], fill: &mut FibSync) -> Result<Opened> {
    let count = usize::from(asked.workers);
    let pool = Pool::new(BUFFERS_EACH * count, MAX_PACKET_BYTES)?;
    let mut ports: Vec<Vec<(u16, Box<dyn Port + Send>)>> = Vec::new();
    ports.resize_with(count, Vec::new);
    for (number, device) in devices.iter().enumerate() {
        let queues = Tun::open_queues(&device.name, count)?;
        for (of_worker, queue) in ports.iter_mut().zip(queues) {
            of_worker.push((number as u16, Box::new(queue)));
        }
    }
    let known = fill.changed_ports().unwrap_or_default();
    for (device, port) in devices.iter().zip(known.iter()) {
        if port.link == 0 && !port.is_host {
            warn!(
                "the tables have no link {}: nothing leaves by {}",
                device.link, device.name
            );
        }
    }
    let mut mesh = Vec::new();
    if asked.nat.is_some() && count > 1 {
        let packets = (RING / (count - 1)).max(LEAST_RING);
        mesh = Mesh::of(&pool, count, packets).context("making rings between workers")?;
    }
    Ok(Opened {
        pool,
        ports,
        known,
        mesh,
    })
}

/// Makes the workers, each with a queue of every device. They take nothing
/// yet: until all of them are there it can fail.
fn hold(
    asked: &Forward,
    engines: Vec<nat::Nat>,
    opened: Opened,
    fill: &mut FibSync,
    domain: &std::sync::Arc<Domain>,
    asks: &SyncSender<Request>,
) -> Result<Workers> {
    let mut workers = Workers::default();
    let mut engines = engines.into_iter();
    let mut mesh = opened.mesh.into_iter();
    for (number, ports) in opened.ports.into_iter().enumerate() {
        let forwarder = Forwarder::new(
            opened.known.clone(),
            fill.views(),
            fill.table(),
            engines.next(),
            asked.settings(),
            opened.pool.cache(),
        );
        let mut worker = Worker::new(
            forwarder,
            domain.register().context("registering a worker")?,
            ports,
            BATCH,
            Clock::System,
            Some(asks.clone()),
        );
        if let Some(mesh) = mesh.next() {
            worker = worker.with_mesh(mesh);
        }
        let core = (asked.workers > 1).then_some(number);
        let held = Running::hold(worker, core).context("starting a worker")?;
        workers.all.push(held);
    }
    Ok(workers)
}

/// Carries what workers ask for; gives the number of requests that nobody
/// took.
fn carry(carrier: &mut Option<Carrier>, asked_for: &Receiver<Request>) -> u64 {
    let mut lost = 0;
    for request in asked_for.try_iter() {
        let carried = carrier
            .as_mut()
            .is_some_and(|carrier| carrier.carry(&request));
        lost += u64::from(!carried);
    }
    lost
}
