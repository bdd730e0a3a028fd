//! Keeps ports and the kernel's settings in sight until it is told to end.
//! Called by `live`.
//!
//! One thread: it looks when the kernel announces a change, and once a second
//! for what is not announced. While it does, the program at XDP is told that
//! somebody watches; when it does not (stopped, hung), the program hands all
//! up after [`UNWATCHED`].

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use dataplane::xdp::standing::{Families, ObstacleStanding, PortStanding, Standing};
use dataplane::xdp::{Forwarding, Translation};
use linux::Namespace;
use linux::on_the_way::{Announcements, RouteMtus};
use privileges::CapabilitySet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::control::{Answers, Door};
use super::obstacles::{self, Kind, Obstacle, Scope, Seen};
use super::ports::{Port, Ports};
use super::translating::{Ready, Translating};
use super::{Later, Plan, neighbours, tell};
use crate::signals::{caught, has_come};

/// Between two looks at most.
const LOOK: Duration = Duration::from_secs(1);
/// And at least, however much is announced.
const PAUSE: Duration = Duration::from_millis(20);
/// Between two looks at the next hops in use: less than a neighbour stays
/// fresh without being used (`delay_first_probe_time` is 5 s).
const HOPS: Duration = Duration::from_secs(2);
/// How long packets are forwarded without a look.
const UNWATCHED: Duration = Duration::from_secs(10);

/// What is still needed: to ask for chains and use neighbours; to attach to a
/// link that comes back (the verifier takes the program with `PERFMON` alone,
/// whose own system call is taken away).
const KEPT: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::BPF)
    .union(CapabilitySet::PERFMON);

/// Forwards until a signal.
pub fn run(plan: &Plan) -> Result<()> {
    let mut end = caught(&[SIGINT, SIGTERM])?;
    privileges::need_bpf();
    let ready = plan.translation.as_ref();
    let ready = ready
        .map(|asked| Ready::new(asked, &plan.outside))
        .transpose()?;
    let translation = ready
        .as_ref()
        .map(|ready| (ready.translation(), ready.room()));
    let mut watch = Watch::start(plan, translation)?;
    let door = Door::open(&plan.control, plan.group)?;
    // What strangers send is never read on this thread.
    privileges::keep(KEPT).context("giving up rights")?;
    // Where the kernel has no filters the capabilities are gone all the same.
    let _ = privileges::confine();
    door.serve(watch.answers())?;
    let start = |ready: Ready| ready.start(watch.ports.forwarding(), plan.outside.clone());
    watch.translating = ready.map(start).transpose()?;
    watch.set()?;
    tell(format_args!(
        "forwarding at XDP between {}",
        plan.on.join(", ")
    ));
    while !watch.wait(&mut end)? {
        watch.turn()?;
    }
    match watch.translating.take() {
        Some(translating) => translating.end(),
        None => Ok(()),
    }
}

/// What is watched, and by what.
struct Watch<'a> {
    plan: &'a Plan,
    namespace: Namespace,
    announcements: Announcements,
    mtus: RouteMtus,
    ports: Ports,
    translating: Option<Translating>,
    seen: Seen,
    obstacles: Vec<Obstacle>,
    standing: Arc<Mutex<Standing>>,
    began: Instant,
    looks: u64,
    neighbours_used: u64,
    next_look: Instant,
    next_hops: Instant,
}

impl<'a> Watch<'a> {
    /// Refuses what is in the way, attaches the ports, sets them.
    fn start(plan: &'a Plan, translation: Option<(&Translation, u32)>) -> Result<Self> {
        let namespace = Namespace::current().context("the network namespace")?;
        let announcements = Announcements::open(&namespace).context("listening to the kernel")?;
        let mtus = RouteMtus::open(&namespace).context("reading the routes' MTUs")?;
        let mut forwarding = Forwarding::new(translation.map_or(1, |(_, room)| room))?;
        if let Some((translation, _)) = translation {
            forwarding.translate(translation.clone())?;
        }
        let mut ports = Ports::new(&plan.on, &plan.outside, forwarding)?;
        let seen = look(&namespace, &ports)?;
        // Before anything is touched; what only the driver tells comes behind.
        let found = obstacles::find(&seen);
        refuse(plan, &found, |kind| kind != Kind::VlanTags)?;
        ports.attach_all(&seen.links)?;
        let seen = look(&namespace, &ports)?;
        let found = obstacles::find(&seen);
        refuse(plan, &found, |_| true)?;
        let now = Instant::now();
        Ok(Self {
            plan,
            namespace,
            announcements,
            mtus,
            ports,
            translating: None,
            seen,
            obstacles: found,
            standing: Arc::default(),
            began: now,
            looks: 1,
            neighbours_used: 0,
            next_look: now + LOOK,
            next_hops: now + HOPS,
        })
    }

    fn answers(&self) -> Answers {
        Answers {
            forwarding: Arc::clone(self.ports.forwarding()),
            standing: Arc::clone(&self.standing),
            began: self.began,
            is_for_group: self.plan.group.is_some(),
        }
    }

    /// Waits for a change or for the time to look; true: it is to end.
    fn wait(&mut self, end: &mut UnixStream) -> Result<bool> {
        let left = self.next_look.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).context("a time to wait")?;
        let announced = self.announcements.descriptors();
        let mut waited: Vec<PollFd<'_>> = announced
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let routes = self.mtus.descriptor();
        waited.push(PollFd::from_borrowed_fd(routes, PollFlags::IN));
        waited.push(PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN));
        match poll(&mut waited, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("waiting for the kernel"),
        }
        drop(waited);
        Ok(has_come(end))
    }

    /// Looks where it is time or something was announced.
    fn turn(&mut self) -> Result<()> {
        let has_news = self
            .announcements
            .take()
            .context("what the kernel announces")?;
        if self.mtus.take().context("routes that are announced")? {
            self.watched()?;
        }
        if let Some(translating) = &mut self.translating {
            translating.check()?;
        }
        let now = Instant::now();
        if has_news || now >= self.next_look {
            self.look_again()?;
            self.next_look = now + LOOK;
        }
        if now >= self.next_hops {
            self.next_hops = now + HOPS;
            let hops = self.ports.forwarding().take_hops()?;
            if !hops.is_empty() {
                self.neighbours_used += neighbours::refresh(&self.namespace, &hops)? as u64;
            }
        }
        if has_news {
            // So that a flood of changes is one look every so often.
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn look_again(&mut self) -> Result<()> {
        self.looks += 1;
        let mut seen = look(&self.namespace, &self.ports)?;
        if self.ports.follow(&seen.links)? {
            seen = look(&self.namespace, &self.ports)?;
        }
        let found = obstacles::find(&seen);
        for come in found.iter().filter(|one| !self.obstacles.contains(one)) {
            let then = match self.is_accepted(come) {
                true => "packets pass it by",
                false => "the kernel forwards what it meets",
            };
            tell(format_args!("in the way: {come}; {then}"));
        }
        for gone in self.obstacles.iter().filter(|one| !found.contains(one)) {
            tell(format_args!("no more in the way: {gone}"));
        }
        self.seen = seen;
        self.obstacles = found;
        self.set()
    }

    /// Whether packets pass it by.
    fn is_accepted(&self, obstacle: &Obstacle) -> bool {
        let kind = obstacle.kind;
        let is_told = self.plan.obstacle == Later::Tell && kind.is_acceptable();
        is_told || self.plan.accept.contains(&kind)
    }

    /// Sets the ports by what was seen, and says that somebody watches.
    fn set(&mut self) -> Result<()> {
        let kept = self.obstacles.iter().filter(|one| !self.is_accepted(one));
        let kept: Vec<&Obstacle> = kept.collect();
        self.ports.set(&self.seen, &kept)?;
        self.mtus.settle().context("reading the routes' MTUs")?;
        self.watched()?;
        let standing = self.stand();
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = standing;
        Ok(())
    }

    /// Says that somebody watches, and how long packets may be.
    fn watched(&self) -> Result<()> {
        let most = self.mtus.least().map(|least| least.unwrap_or(u32::MAX));
        let is_whole = self.ports.has_all_outside();
        Ok(self
            .ports
            .forwarding()
            .watched_for(UNWATCHED, most, is_whole)?)
    }

    fn stand(&self) -> Standing {
        let translation = self.translating.as_ref().map(Translating::standing);
        let obstacles = self.obstacles.iter().map(|one| ObstacleStanding {
            name: one.kind.name().to_owned(),
            what: one.what.clone(),
            accepted: self.is_accepted(one),
        });
        let mut obstacles: Vec<ObstacleStanding> = obstacles.collect();
        obstacles.dedup();
        Standing {
            inode: self.namespace.inode(),
            ports: self
                .ports
                .all()
                .iter()
                .map(|port| self.port(port))
                .collect(),
            obstacles,
            translation,
            most_bytes: self.mtus.least(),
            neighbours_used: self.neighbours_used,
            looks: self.looks,
            seconds: self.began.elapsed().as_secs(),
        }
    }

    fn port(&self, port: &Port) -> PortStanding {
        let set = port.settings().copied().unwrap_or_default();
        let mut why: Vec<String> = port.failed().map(str::to_owned).into_iter().collect();
        if let Some(link) = port.link() {
            let obstacles = self.obstacles.iter().filter(|one| !self.is_accepted(one));
            let here = obstacles.filter(|one| match one.scope {
                Scope::All | Scope::Family(_) => true,
                Scope::Port(of) | Scope::Into(of, _) => of == link,
            });
            why.extend(here.map(ToString::to_string));
            let features = self.seen.port(&port.name).and_then(|seen| seen.features);
            if features.is_some_and(|features| !features.sends) {
                why.push(cannot_send(&port.name));
            }
        }
        PortStanding {
            name: port.name.clone(),
            link: port.link(),
            slot: port.slot,
            receives: Families {
                ipv4: set.receives_v4,
                ipv6: set.receives_v6,
            },
            sends: Families {
                ipv4: set.sends_v4,
                ipv6: set.sends_v6,
            },
            sends_long: set.sends_long,
            strict_sources: set.is_strict,
            checks_checksums: set.is_soft,
            why,
        }
    }
}

/// What to do where a device takes no frames.
fn cannot_send(name: &str) -> String {
    format!(
        "{name} takes no frames from a program: of a veth, its other end wants GRO \
         (`ethtool -K OTHER gro on`, while it is up) or a program \
         at XDP"
    )
}

fn look(namespace: &Namespace, ports: &Ports) -> Result<Seen> {
    let wanted = ports.all().iter();
    let wanted: Vec<_> = wanted
        .map(|port| (port.name.as_str(), port.asks_tags()))
        .collect();
    Seen::look(namespace, &wanted)
}

/// Refuses to begin with something in the way that was not accepted.
fn refuse(plan: &Plan, found: &[Obstacle], looked_at: impl Fn(Kind) -> bool) -> Result<()> {
    let mut names = Vec::new();
    let mut lines = String::new();
    let mut closed = [false; 2];
    for obstacle in found.iter().filter(|one| looked_at(one.kind)) {
        if obstacle.kind == Kind::Forwarding {
            // A router of one family is one.
            if let Scope::Family(family) = obstacle.scope {
                closed[family as usize] = true;
            }
            continue;
        }
        if plan.accept.contains(&obstacle.kind) {
            continue;
        }
        lines.push_str(&format!("\n  {obstacle}"));
        if obstacle.kind.is_acceptable() && !names.contains(&obstacle.kind.name()) {
            names.push(obstacle.kind.name());
        }
    }
    if closed == [true; 2] {
        bail!(
            "forwarding is off: `sysctl -w net.ipv4.ip_forward=1` \
             (net.ipv6.conf.all.forwarding=1 for IPv6)"
        );
    }
    match (lines.is_empty(), names.is_empty()) {
        (true, _) => Ok(()),
        (false, true) => bail!("packets that are forwarded here would not meet:{lines}"),
        (false, false) => bail!(
            "packets that are forwarded here would not meet:{lines}\n\
             take it away, or say that it does not matter: --accept {}",
            names.join(",")
        ),
    }
}
