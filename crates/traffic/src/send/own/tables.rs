//! What the cores of our own stack share: the kernel's routes and
//! neighbours, mirrored, and the buffers.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use dataplane::fib_sync::{Attachment, FibSync, FibSyncSettings};
use dataplane::forward::VrfFibs;
use dataplane::neighbour::Table;
use dataplane::{Pool, Tun};
use linux::{Mirror, Namespace, Options, Phase, once};
use memory::quiescent::Domain;

use super::super::device;
use super::super::plan::{Into, Plan};
use super::super::toward::{self, Toward};

/// How long the first listing of the kernel's tables may take.
const LOADING_PATIENCE: Duration = Duration::from_secs(120);
/// Buffers for each core: its cache, what it works on, and some to spare.
const BUFFERS_A_CORE: usize = 4_096;
/// What a buffer holds at least, and unless the payload is longer, at most.
const USUAL_MTU: usize = 1_500;
/// See `USUAL_MTU`.
const JUMBO_MTU: usize = 9_216;
/// Of IPv6 and UDP.
const MAX_HEADERS: usize = 48;
/// How often changes of the tables are taken in.
const FOLLOW_EVERY: Duration = Duration::from_millis(10);

/// What the cores share: nothing of it is written on a packet's way.
pub struct Tables {
    fill: FibSync,
    pub(super) domain: Arc<Domain>,
    pub(super) pool: Pool,
    pub(super) table: Arc<Table>,
    pub(super) view: VrfFibs,
    pub(super) toward: Toward,
    /// The TUN device that packets go into, until a core takes it.
    pub(super) tun: std::cell::RefCell<Option<Tun>>,
    // Keeps the tables as they are in the kernel.
    _mirror: Mirror,
}

impl Tables {
    /// Mirrors the kernel's tables and makes what lookups need of them.
    pub fn load(plan: &Plan) -> Result<Self> {
        let namespace = Namespace::current()?;
        let tun = match &plan.into {
            Into::Tun(_) if plan.cores > 1 => bail!("a TUN device takes one core: say --cores 1"),
            Into::Tun(name) => Some(Tun::open(name)?),
            _ => None,
        };
        let toward = toward::resolve(plan)?;
        let mirror = Mirror::start(namespace.clone(), Options::default())?;
        match mirror.wait_ready(LOADING_PATIENCE) {
            Phase::Live | Phase::Resyncing => {}
            Phase::Ended(why) | Phase::Disconnected(why) => {
                bail!("the mirror of the kernel's tables ended: {why}")
            }
            Phase::Loading => bail!("the kernel's tables took too long to read"),
        }
        let domain = Domain::new(plan.cores + 1);
        let attachments = attachments(plan, &namespace, &toward)?;
        let settings = FibSyncSettings::default();
        let mut fill = FibSync::new(mirror.reader(), &domain, attachments, settings)?;
        let view = fill.views().into_iter().next();
        let view = view.context("the tables have no view")?;
        // As a router has them: for whatever the link takes, not only for
        // these packets.
        let usual = toward.mtu.clamp(USUAL_MTU, JUMBO_MTU);
        let bytes = usual.max(plan.payload_bytes + MAX_HEADERS);
        Ok(Self {
            table: fill.table(),
            fill,
            pool: pool(plan, bytes)?,
            domain,
            view,
            toward,
            tun: std::cell::RefCell::new(tun),
            _mirror: mirror,
        })
    }

    /// Takes in what has changed in the kernel's tables; waits for changes
    /// a moment.
    pub fn follow(&mut self) {
        self.fill.follow(FOLLOW_EVERY);
    }

    /// Prefixes, next hops and neighbours that lookups know.
    pub fn sizes(&self) -> (usize, usize, usize) {
        let filled = self.fill.filled();
        let prefixes = filled.prefixes_v4 + filled.prefixes_v6;
        (prefixes, filled.next_hops, filled.neighbours)
    }
}

/// Buffers for all cores, in memory that the way out may send from.
fn pool(plan: &Plan, bytes: usize) -> Result<Pool> {
    let buffers = plan.cores * BUFFERS_A_CORE;
    match plan.into.way() {
        Some(way) => device::pool(way, bytes, buffers),
        None => Ok(Pool::new(buffers, bytes)?),
    }
}

/// The links that packets may leave by: all of them where none is real.
fn attachments(plan: &Plan, namespace: &Namespace, toward: &Toward) -> Result<Vec<Attachment>> {
    let one = |name: &str, has_ethernet: bool| {
        if has_ethernet {
            Attachment::ethernet(name)
        } else {
            Attachment::bare(name)
        }
    };
    Ok(match &plan.into {
        Into::Tun(name) => vec![Attachment::bare(name)],
        Into::AfPacket | Into::AfPacketRing | Into::AfXdp => {
            vec![one(&toward.interface, toward.link.is_some())]
        }
        Into::Memory => {
            let links = once::links(namespace)?;
            links
                .iter()
                .filter(|link| link.hardware != toward::LOOPBACK)
                .map(|link| one(&link.name, link.hardware == toward::ETHERNET))
                .collect()
        }
    })
}
