//! Translation beside the program at XDP: the engine on a thread of its own,
//! between two TAP devices by which the program hands up what it does not
//! translate itself. Called by `watching`.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow, bail};
use dataplane::Tap;
use dataplane::xdp::standing::TranslationStanding;
use dataplane::xdp::{Forwarding, Translation, left_behind};
use nat::Nat;
use privileges::CapabilitySet;

use super::{index_of, tell};
use crate::nat::live::{Engine, EngineOptions, LEAST_TIMEOUT_SECS, now_millis};

/// The devices: what goes out comes up by the first.
pub const DEVICES: [&str; 2] = ["fpnat-out", "fpnat-in"];
/// How long the engine's thread may be silent.
const SILENCE_MILLIS: u64 = 2_000;

/// What is asked for.
#[derive(Debug)]
pub struct Asked {
    /// The rules.
    pub rules: PathBuf,
    /// Whether nothing leaves untranslated without the engine.
    pub is_closed: bool,
    /// What is wanted beside it.
    pub beside: EngineOptions,
}

/// Before the first packet.
pub struct Ready {
    engine: Engine,
    taps: [Tap; 2],
    translation: Translation,
}

impl Ready {
    /// Reads the rules, makes the devices, and takes up the flows that a
    /// program on a link outside still translates for a process that was
    /// killed. Nothing is translated yet.
    pub fn new(asked: &Asked, outside: &[String]) -> Result<Self> {
        let mut engine = Engine::begin(&asked.rules, &asked.beside)?;
        check(engine.nat())?;
        warn_of_ports(engine.nat());
        let make = |name| Tap::make(name).map_err(|error| anyhow!("{error}"));
        let [out, comes_in] = DEVICES;
        let taps = [make(out)?, make(comes_in)?];
        for tap in &taps {
            tap.up()?;
        }
        // The devices are ours: nobody else translates there at the moment.
        take_up(&mut engine, outside)?;
        let translation = Translation {
            is_closed: asked.is_closed,
            engine: [taps[0].index(), taps[1].index()],
            ports: engine.nat().config().ports.clone(),
        };
        Ok(Self {
            engine,
            taps,
            translation,
        })
    }

    /// How the program is to translate.
    pub fn translation(&self) -> &Translation {
        &self.translation
    }

    /// Flows that the program is to have room for.
    pub fn room(&self) -> u32 {
        let most = self.engine.nat().config().limits.max_flows;
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    /// Starts the engine's thread, with no rights but to change the program's
    /// tables.
    pub fn start(self, forwarding: &Arc<Forwarding>, outside: Vec<String>) -> Result<Translating> {
        let Self {
            engine,
            taps,
            translation,
        } = self;
        let told = Told::default();
        let (end, ours) = UnixStream::pair().context("a pipe to end the engine by")?;
        ours.set_nonblocking(true)?;
        let offloading = (
            Arc::clone(forwarding),
            Arc::clone(&told.flows),
            Arc::clone(&told.beat),
        );
        let thread = thread::Builder::new()
            .name("nat-engine".to_owned())
            .spawn(move || {
                privileges::keep(CapabilitySet::BPF).context("giving up rights")?;
                engine.run(taps, ours, offloading)
            })
            .context("starting the engine's thread")?;
        Ok(Translating {
            thread: Some(thread),
            end,
            told,
            outside,
            is_closed: translation.is_closed,
        })
    }
}

/// What the thread tells.
#[derive(Debug, Default)]
struct Told {
    /// Flows that the program translates.
    flows: Arc<AtomicU64>,
    /// When it was last seen at work.
    beat: Arc<AtomicU64>,
}

/// The engine's thread.
#[derive(Debug)]
pub struct Translating {
    thread: Option<JoinHandle<Result<()>>>,
    end: UnixStream,
    told: Told,
    outside: Vec<String>,
    is_closed: bool,
}

impl Translating {
    /// The engine's error, where it has ended.
    pub fn check(&mut self) -> Result<()> {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish()?;
            bail!("the engine's thread has ended");
        }
        Ok(())
    }

    /// How it stands.
    pub fn standing(&self) -> TranslationStanding {
        let silent = now_millis().saturating_sub(self.told.beat.load(Relaxed));
        TranslationStanding {
            outside: self.outside.clone(),
            closed: self.is_closed,
            works: silent < SILENCE_MILLIS,
            flows: self.told.flows.load(Relaxed),
        }
    }

    /// Ends it; what it has is kept for the next one where that is asked for.
    pub fn end(mut self) -> Result<()> {
        // One that has ended already hears nothing.
        let _ = self.end.write_all(b"e");
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(done)) => done,
            Some(Err(_)) => bail!("the engine's thread has panicked"),
            None => Ok(()),
        }
    }
}

fn take_up(engine: &mut Engine, outside: &[String]) -> Result<()> {
    let mut left = Vec::new();
    for link in outside {
        // One that is not there is said later, with all the others.
        if let Ok(link) = index_of(link) {
            left.extend(left_behind(link)?);
        }
    }
    if !left.is_empty() {
        let (taken, lost) = engine.adopt(&left);
        tell(format_args!(
            "{taken} flows go on that a process before has left, {lost} are there already or cannot"
        ));
    }
    Ok(())
}

/// Refuses what does not work beside the program.
fn check(nat: &Nat) -> Result<()> {
    let config = nat.config();
    if config.mode.reverse {
        bail!("`reverse` is not for `router`: name the link on the other side as --outside");
    }
    if !config.pcp.addresses.is_empty() {
        bail!("`pcp` is not there yet for `router`: hosts inside cannot ask for ports here");
    }
    let timeouts = &config.timeouts;
    for (word, secs) in [
        ("tcp_established", timeouts.tcp_established_secs),
        ("udp", timeouts.udp_secs),
    ] {
        if secs < LEAST_TIMEOUT_SECS {
            bail!(
                "a timeout of {secs} s for {word} is too short here: {LEAST_TIMEOUT_SECS} s at least, since the program at XDP is asked every few seconds"
            );
        }
    }
    if config.addresses.is_empty() {
        bail!("the rules name no alias_address");
    }
    Ok(())
}

/// Says when a connection of this host's own may have the ends of a flow.
fn warn_of_ports(nat: &Nat) {
    let flows = &nat.config().ports;
    let own = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut own = own.split_whitespace().map(|port| port.parse::<u16>());
    let (Some(Ok(first)), Some(Ok(last))) = (own.next(), own.next()) else {
        return;
    };
    let is_ours = |address: &Ipv4Addr| UdpSocket::bind((*address, 0)).is_ok();
    let overlaps = first <= *flows.end() && *flows.start() <= last;
    if overlaps && nat.config().addresses.iter().any(is_ours) {
        tell(format_args!(
            "this host takes ports {first}-{last} for itself, flows {}-{}: where both have the \
             same ends, the host gets the flow's answers. `port_range` in the rules or \
             net.ipv4.ip_local_port_range keeps them apart",
            flows.start(),
            flows.end()
        ));
    }
}
