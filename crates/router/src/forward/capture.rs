//! A capture forwarded, each packet at its own time.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use dataplane::fib_sync::{Attachment, FibSync, FibSyncSettings};
use dataplane::forward::Forwarder;
use dataplane::worker::{Clock, Worker};
use dataplane::{Batch, Cache, Capture, Counters, LinkType, Pool, Port, PortError, Received, Sent};
use memory::quiescent::Domain;

use super::known::{self, Known, Readers};
use super::report::Report;
use super::{Forward, requests, rules};

/// How long a packet may be: tcpdump's most.
const MAX_PACKET_BYTES: usize = 262_144;
/// For one packet and what is made of it: fragments, those that waited.
const BUFFERS: usize = 256;

pub fn run(asked: &Forward, read: &Readers, input: &Path) -> Result<Report> {
    let in_link = asked.in_link.as_deref().context("say --in LINK")?;
    let known = Known::open(asked, read, || Ok(()))?;
    let pool = Pool::new(BUFFERS, MAX_PACKET_BYTES)?;
    let has_ethernet = match link_of(input, &pool)? {
        LinkType::Ethernet => true,
        LinkType::Raw | LinkType::Ipv4 | LinkType::Ipv6 => false,
        other => bail!(
            "{}: packets of the link type {other:?} are not forwarded: capture Ethernet or raw IP",
            input.display()
        ),
    };
    let reader = known.reader();
    let mut links = known::ethernet_links(&reader);
    if !links.iter().any(|link| link == in_link) {
        bail!("--in {in_link}: the tables have no such link with Ethernet");
    }
    // The one of the capture is the first.
    links.retain(|link| link != in_link);
    links.insert(0, in_link.to_owned());
    let attachments = links.iter().map(|link| Attachment {
        is_outside: asked.outside.contains(link),
        has_ethernet,
        ..Attachment::ethernet(link)
    });
    let domain = Domain::new(1);
    let mut fill = FibSync::over(
        reader,
        known.routes(),
        &domain,
        attachments.collect(),
        FibSyncSettings::default(),
    )
    .context("compiling the routes")?;
    rules::check(&fill, asked.accepts_rules())?;
    let nat = asked.nat.as_deref().map(crate::nat::engine_by_rules);
    let forwarder = Forwarder::new(
        fill.ports().clone(),
        fill.views(),
        fill.table(),
        nat.transpose()?,
        asked.settings(),
        pool.cache(),
    );
    let capture = Shared::new(Capture::open(input, asked.pcap_out.as_deref())?);
    let port: Box<dyn Port + Send> = Box::new(capture.clone());
    let (asks, requests) = requests::rings();
    let worker = Worker::new(
        forwarder,
        domain.register()?,
        vec![(0, port)],
        1,
        Clock::Captured,
        Some(asks),
    );
    privileges::give_up().context("giving up privileges")?;
    let (_keep, none) = sync_channel(1);
    let state = worker.all_by_the_first().run(&none);
    if let Some((_, why)) = state.failures.first() {
        bail!("{why}");
    }
    capture.finish()?;
    let mut report = Report::new(fill.filled());
    report.routes = known.routes_state();
    report.add(state, &|_| input.display().to_string());
    report.unresolved = requests.try_iter().count() as u64;
    Ok(report)
}

/// The link type of a capture's first packet.
fn link_of(input: &Path, pool: &Pool) -> Result<LinkType> {
    let mut capture = Capture::open(input, None)?;
    let mut batch = Batch::new(1);
    let mut cache = pool.cache();
    capture.receive(&mut cache, &mut batch)?;
    cache.clear(&mut batch);
    Ok(capture.link())
}

/// A capture that the worker owns and that is finished behind it.
#[derive(Clone)]
struct Shared(Arc<Mutex<Capture>>);

impl Shared {
    fn new(capture: Capture) -> Self {
        Self(Arc::new(Mutex::new(capture)))
    }

    fn inner(&self) -> MutexGuard<'_, Capture> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self) -> Result<()> {
        Ok(self.inner().finish()?)
    }
}

impl Port for Shared {
    fn receive(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Received, PortError> {
        self.inner().receive(cache, batch)
    }

    fn send(&mut self, cache: &mut Cache, batch: &mut Batch) -> Result<Sent, PortError> {
        self.inner().send(cache, batch)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> Counters {
        self.inner().counters()
    }
}
