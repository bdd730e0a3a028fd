//! SNMP in the daemon, and the commands around it.
//!
//! - [`Service`]: sockets, agent, subagent and notifications of a daemon.
//! - `listener`, `socket`, `fair`, `put_off`: a thread for each address it
//!   is asked at; whose turn it is, and who waits for a sample.
//! - `clock`: how long the agent is up.
//! - `contexts`, `samples`, `history`: what is answered from.
//! - `subagent`, `subtrees`: AgentX behind another agent.
//! - `master`: AgentX subagents attach to us.
//! - `notify`, `outbox`, `teller`: what happened, to those who want to know.
//! - `state`, `users`: engine id, boots, keys.
//! - [`command`]: `fingerpost snmp …`.
//!
//! The protocol is the `snmp` crate's, the objects are the `mib` crate's;
//! here are sockets, files, threads and the clock.

mod clock;
pub mod command;
pub mod config;
mod contexts;
mod fair;
mod hex;
mod history;
mod listener;
mod master;
mod notify;
mod outbox;
mod put_off;
mod samples;
mod socket;
mod state;
mod subagent;
mod subtrees;
mod teller;
mod users;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use mib::{Module, System};
use rustix::rand::{GetRandomFlags, getrandom};
use snmp::Oid;
use snmp::agent::Agent;
use snmp::config::{Community, Config, RemoteUser, User};
use snmp::usm::LAST_BOOTS;

use crate::namespace::Namespace;
use crate::status::SnmpStatus;
use clock::Clock;
use config::Snmp;
use contexts::{Facts, Source};
use listener::{Listener, Shared};
use master::{Callers, Door, Subagents};
use notify::{Notifier, What};
use socket::Socket;
use subagent::Subagent;
use users::Users;

/// What needs rights or the disk: done before rights are given up.
#[derive(Debug)]
pub struct BoundSockets {
    config: Snmp,
    sockets: Vec<Socket>,
    door: Option<Door>,
    engine: Engine,
}

/// The engine of this run.
#[derive(Debug)]
struct Engine {
    id: Vec<u8>,
    boots: u32,
    /// Where keys are; `None`, and why, where version 3 is off.
    state: Result<PathBuf, String>,
}

impl BoundSockets {
    /// Counts the start and binds the sockets. What cannot be had is
    /// complained of, and the rest goes on.
    pub fn open(config: &Snmp) -> Result<Self> {
        let mut sockets = Vec::new();
        if config.is_on() {
            sockets.extend(config.listen.iter().filter_map(|address| bind(*address)));
        }
        Ok(Self {
            engine: Engine::start(config)?,
            config: config.clone(),
            sockets,
            door: open_door(config),
        })
    }
}

/// Whether an agent can be made of a configuration and of the users' keys
/// that are stored.
pub fn check(config: &Snmp) -> Result<()> {
    let engine = Engine::looked_at(config)?;
    let agent = Agent::new(agent_config(config, &engine)?);
    agent.context("[snmp] cannot be used").map(drop)
}

/// Addresses that cannot be listened at, and why, and why no AgentX subagent
/// can come; not those that somebody has, which may be the daemon that runs.
pub fn unbound(config: &Snmp) -> Vec<String> {
    let bound = |at: &SocketAddr| Socket::bind(*at, listener::PATIENCE);
    let tried = config.listen.iter().map(|at| (at, bound(at)));
    let failed = tried.filter_map(|(at, tried)| Some((at, tried.err()?)));
    let master = config.agentx_master();
    let master = master.and_then(|master| Door::check(&master).err());
    let master = master.map(|error| format!("{error:#}"));
    failed
        .filter(|(_, error)| error.kind() != std::io::ErrorKind::AddrInUse)
        .map(|(at, error)| no_snmp(*at, &error))
        .chain(master)
        .collect()
}

/// The socket for AgentX subagents, where it is wanted and can be had.
fn open_door(config: &Snmp) -> Option<Door> {
    let opened = Door::open(&config.agentx_master()?);
    opened.map_err(|error| tracing::warn!("{error:#}")).ok()
}

fn bind(address: SocketAddr) -> Option<Socket> {
    let bound = Socket::bind(address, listener::PATIENCE);
    bound
        .map_err(|error| tracing::warn!("{}", no_snmp(address, &error)))
        .ok()
}

fn no_snmp(address: SocketAddr, error: &std::io::Error) -> String {
    let advice = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "; somebody listens there already: choose another snmp.listen"
        }
        std::io::ErrorKind::PermissionDenied => {
            "; ports below 1024 need root, and take effect at the next start"
        }
        std::io::ErrorKind::AddrNotAvailable => {
            "; this host does not have the address: put snmp.listen right"
        }
        _ => "",
    };
    format!("no SNMP at {address}: {error}{advice}")
}

impl Engine {
    /// The engine, one start further. Where that cannot be written down,
    /// it has the boots of an engine that may authenticate nobody
    /// (RFC 3414 §2.2.2): version 3 would break at the next start.
    fn start(config: &Snmp) -> Result<Self> {
        if !config.is_on() {
            return Self::without_state("SNMP is off".to_owned());
        }
        let counted = state::directory(config.state_directory.as_deref())
            .and_then(|directory| Ok((state::count_start(&directory)?, directory)));
        match counted {
            Ok((engine, directory)) => Ok(Self {
                id: engine.engine_id,
                boots: engine.boots,
                state: Ok(directory),
            }),
            Err(error) => {
                tracing::warn!(
                    "SNMP version 3 is off, versions 1 and 2c go on: its count of starts cannot \
                     be kept: {error:#}"
                );
                Self::without_state(format!("{error:#}"))
            }
        }
    }

    /// As [`Engine::start`], for a look: no start is counted, nothing made.
    fn looked_at(config: &Snmp) -> Result<Self> {
        let wanted = config.state_directory.as_deref();
        match state::stored(wanted).filter(|_| config.is_on()) {
            Some((directory, engine)) => Ok(Self {
                id: engine.engine_id,
                boots: engine.boots.max(1),
                state: Ok(directory),
            }),
            None => Self::without_state("no state is kept yet".to_owned()),
        }
    }

    /// Whether the host has started since the agent last did.
    fn first_since_boot(&self) -> What {
        let Ok(directory) = &self.state else {
            return What::ColdStart;
        };
        match state::is_first_since_boot(directory) {
            Ok(true) => What::ColdStart,
            Ok(false) => What::WarmStart,
            Err(error) => {
                tracing::warn!("SNMP's start is told as a cold one: {error:#}");
                What::ColdStart
            }
        }
    }

    fn without_state(why: String) -> Result<Self> {
        Ok(Self {
            id: state::new_engine_id()?,
            boots: LAST_BOOTS,
            state: Err(why),
        })
    }

    fn stored_users(&self, is_wanted: impl Fn(&users::User) -> bool) -> Vec<users::User> {
        let Ok(directory) = &self.state else {
            return Vec::new();
        };
        let stored = Users::load(directory, &self.id).and_then(|users| users.keys());
        let stored = stored.unwrap_or_else(|error| {
            tracing::warn!("no users of SNMP version 3: {error:#}");
            Vec::new()
        });
        stored.into_iter().filter(is_wanted).collect()
    }

    /// Users whose keys are for the engines of receivers of informs.
    fn remote_users(&self) -> Vec<RemoteUser> {
        let stored = self.stored_users(|user| !user.of_engine.is_empty());
        let remote = stored.into_iter().map(|user| RemoteUser {
            engine_id: user.of_engine,
            user: User {
                name: user.name.into_bytes(),
                auth: user.auth,
                privacy: user.privacy,
                minimum_level: snmp::usm::SecurityLevel::NoAuthNoPriv,
                view: snmp::view::View::all(),
                contexts: None,
            },
        });
        remote.collect()
    }

    /// The users whose keys are stored, as the configuration lets them.
    fn users(&self, config: &Snmp) -> Vec<User> {
        let stored = self.stored_users(|user| user.of_engine.is_empty());
        for user in &config.users {
            if !stored.iter().any(|stored| stored.name == user.name) {
                tracing::warn!(
                    "SNMP user `{}` has no keys: `fingerpost snmp user add {}` makes them",
                    user.name,
                    user.name
                );
            }
        }
        stored
            .into_iter()
            .filter_map(|user| allowed(config, user))
            .collect()
    }
}

/// What a user of stored keys may do: as configured, or with all his keys
/// everything.
fn allowed(config: &Snmp, user: users::User) -> Option<User> {
    let said = config.users.iter().find(|said| said.name == user.name);
    let mut allowed = User {
        name: user.name.into_bytes(),
        auth: user.auth,
        privacy: user.privacy,
        minimum_level: snmp::usm::SecurityLevel::NoAuthNoPriv,
        view: config.view(said.map_or(config::ALL, |said| &said.view))?,
        contexts: said.and_then(|said| {
            let contexts = said.contexts.as_ref()?;
            Some(contexts.iter().map(|name| name.clone().into()).collect())
        }),
    };
    let best = allowed.best_level();
    let unsafe_level = Some(config::Level::NoAuthNoPriv);
    if allowed.auth.is_none() && said.and_then(|said| said.level) != unsafe_level {
        tracing::warn!(
            "SNMP user `{}` has no keys and is not answered: [[snmp.user]] does not name him with \
             level = \"noAuthNoPriv\"",
            String::from_utf8_lossy(&allowed.name)
        );
        return None;
    }
    allowed.minimum_level = match said.and_then(|said| said.level) {
        Some(level) if snmp::usm::SecurityLevel::from(level) > best => {
            tracing::warn!(
                "SNMP user `{}` has no keys for the level that is asked of him",
                String::from_utf8_lossy(&allowed.name)
            );
            return None;
        }
        Some(level) => level.into(),
        None => best,
    };
    Some(allowed)
}

/// What the subagent says it is.
fn own_id() -> Oid {
    Oid::new(mib::OBJECT_ID).unwrap_or_default()
}

fn facts(config: &Snmp, engine: &Engine) -> Facts {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_string_lossy().into_owned();
    let system = System {
        description: config.description.clone().unwrap_or_else(|| {
            format!(
                "fingerpost {}, {} {} {}",
                env!("CARGO_PKG_VERSION"),
                uname.sysname().to_string_lossy(),
                uname.release().to_string_lossy(),
                uname.machine().to_string_lossy()
            )
        }),
        object_id: config.object_id.clone().map(|name| name.0),
        services: config.services,
        contact: config.contact.clone(),
        name: config.name.clone().unwrap_or(name),
        location: config.location.clone(),
        ..System::default()
    };
    Facts {
        system,
        engine_id: engine.id.clone(),
        boots: engine.boots,
        max_message_bytes: config.max_message_bytes as u32,
        sends_authentication_failures: config.authentication_failure_traps,
    }
}

/// What the agent is told.
fn agent_config(config: &Snmp, engine: &Engine) -> Result<Config> {
    let communities = config
        .communities
        .iter()
        .filter_map(|one| {
            Some(Community {
                name: one.name.clone().into_bytes(),
                sources: one.sources.clone(),
                view: config.view(&one.view)?,
                context: one.context.clone().into_bytes(),
            })
        })
        .collect();
    let mut seed = [0; 8];
    getrandom(&mut seed, GetRandomFlags::empty()).context("no random numbers")?;
    Ok(Config {
        engine_id: engine.id.clone(),
        engine_boots: engine.boots,
        salt_seed: u64::from_ne_bytes(seed),
        communities,
        users: engine.users(config),
        max_message_bytes: config.max_message_bytes,
        allowed_sources: config.allowed_sources.clone(),
        amplification: config.amplification,
        authentic_amplification: config.authentic_amplification,
        remote_users: engine.remote_users(),
    })
}

/// SNMP of a running daemon. Ends when dropped.
#[derive(Debug)]
pub struct Service {
    config: Snmp,
    engine: Engine,
    source: Source,
    shared: Arc<Shared>,
    notifier: Notifier,
    listeners: Vec<Listener>,
    subagent: Option<Arc<Subagent>>,
    /// Subagents of ours.
    subagents: Option<Subagents>,
    gauge: Gauge,
}

impl Service {
    /// Starts to answer; there is nothing to answer from yet.
    pub fn start(sockets: BoundSockets, gauge: Gauge) -> Result<Self> {
        let BoundSockets {
            config,
            sockets,
            door,
            engine,
        } = sockets;
        let clock = Clock::start();
        let source = Source::new(facts(&config, &engine), clock);
        let agent = Agent::new(agent_config(&config, &engine)?).context("[snmp] cannot be used")?;
        let shared = Arc::new(Shared::new(agent, source.clone(), clock));
        let notifier = Notifier::start(Arc::clone(&shared), clock)?;
        shared.tell_failures(notifier.failures());
        let mut service = Self {
            engine,
            source,
            shared,
            notifier,
            listeners: Vec::new(),
            subagent: None,
            subagents: None,
            gauge,
            config: Snmp {
                // Not yet: the first reload finds them new.
                agentx: None,
                targets: Vec::new(),
                ..config.clone()
            },
        };
        for socket in sockets {
            service.listen(socket);
        }
        service.tell_targets(&config);
        let start = service.engine.first_since_boot();
        service.notifier.sender().started(start);
        service.look_for_master(&config);
        service.take_subagents(door, &config);
        service.config = config;
        service.show();
        Ok(service)
    }

    fn listen(&mut self, socket: Socket) {
        let address = socket.address();
        match Listener::start(Arc::new(socket), Arc::clone(&self.shared)) {
            Ok(listener) => self.listeners.push(listener),
            Err(error) => tracing::warn!("no SNMP at {address}: {error:#}"),
        }
    }

    fn look_for_master(&mut self, config: &Snmp) {
        if config.agentx == self.config.agentx {
            return;
        }
        let started = config.agentx.clone().map(|master| {
            let subagent = Subagent::start(master, self.source.clone());
            subagent.map(Arc::new)
        });
        self.subagent =
            started.and_then(|started| started.map_err(|error| tracing::warn!("{error:#}")).ok());
        self.notifier.set_subagent(self.subagent.clone());
    }

    /// Takes subagents in at a door from now on, or none.
    fn take_subagents(&mut self, door: Option<Door>, config: &Snmp) {
        let wanted = door.zip(config.agentx_master());
        let started = wanted.map(|(door, master)| {
            let path = master.path.display().to_string();
            Subagents::start(door, path, master.timeout, self.callers())
        });
        let started = started.and_then(|started| {
            let started = started.map_err(|error| tracing::warn!("{error:#}"));
            started.ok()
        });
        let handle = started.as_ref().map(|subagents| subagents.handle().clone());
        self.shared.set_subagents(handle);
        self.subagents = started;
    }

    fn callers(&self) -> Callers {
        let source = self.source.clone();
        let (modules, clock) = (self.source.clone(), self.source.clone());
        let sender = self.notifier.sender().clone();
        Callers {
            answers: Arc::clone(&self.shared) as Arc<dyn master::Answers>,
            up_time: Box::new(move || source.up_time()),
            told: Box::new(move |mut told| {
                told.up_time.get_or_insert_with(|| clock.up_time());
                sender.relay(told);
            }),
            capabilities: Box::new(move |capabilities| {
                let shown = capabilities.iter().filter(|one| one.context.is_empty());
                let shown = shown.map(|one| Module {
                    id: one.id.clone(),
                    description: one.description.clone(),
                    up_time: one.up_time,
                });
                modules.set_modules(shown.collect());
            }),
        }
    }

    fn tell_targets(&self, config: &Snmp) {
        self.notifier.set_targets(config);
    }

    fn show(&self) {
        self.gauge.set(Some(Parts {
            shared: Arc::clone(&self.shared),
            listening: self.listeners.iter().map(Listener::address).collect(),
            version_3: self.engine.state.as_ref().err().cloned(),
            subagent: self.subagent.clone(),
            subagents: self.subagents.as_ref().map(|one| one.handle().clone()),
            notifier: self.notifier.counts(),
        }));
    }

    /// Answers from these namespaces from now on, the first by default.
    pub fn set_namespaces(&self, namespaces: impl Iterator<Item = Namespace>) {
        self.source
            .set_namespaces(namespaces, self.notifier.sender());
    }

    /// Takes another configuration, and users' keys as they are now.
    pub fn reload(&mut self, config: &Snmp) -> Result<()> {
        if config.state_directory != self.config.state_directory {
            tracing::warn!("snmp.state_directory takes effect at the next start");
        }
        let told = agent_config(config, &self.engine)?;
        let reconfigured = self.shared.agent().reconfigure(told);
        reconfigured.context("[snmp] cannot be used")?;
        self.source.set_facts(facts(config, &self.engine));
        self.listeners
            .retain(|listener| config.listen.contains(&listener.address()));
        for address in &config.listen {
            let is_there = |listener: &Listener| listener.address() == *address;
            if !self.listeners.iter().any(is_there)
                && let Some(socket) = bind(*address)
            {
                self.listen(socket);
            }
        }
        self.tell_targets(config);
        self.look_for_master(config);
        if config.agentx_master() != self.config.agentx_master() {
            // The old socket goes first: it may have the same path.
            self.take_subagents(None, config);
            self.take_subagents(open_door(config), config);
        }
        self.config = config.clone();
        self.show();
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The threads end with their values; what they answer from must
        // not hold the mirrors any longer.
        self.gauge.set(None);
        self.listeners.clear();
        self.shared.set_subagents(None);
        self.subagents = None;
        self.source
            .set_namespaces(std::iter::empty(), self.notifier.sender());
    }
}

/// Where a daemon's status finds how SNMP is. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Gauge(Arc<Mutex<Option<Parts>>>);

#[derive(Debug)]
struct Parts {
    shared: Arc<Shared>,
    listening: Vec<SocketAddr>,
    version_3: Option<String>,
    subagent: Option<Arc<Subagent>>,
    subagents: Option<master::Handle>,
    notifier: notify::Counts,
}

impl Gauge {
    fn set(&self, parts: Option<Parts>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = parts;
    }

    /// How SNMP is; `None` where it does not run.
    pub fn status(&self) -> Option<SnmpStatus> {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = parts.as_ref()?;
        let counters = parts.shared.counted();
        let requests = counters.snmp.in_pkts;
        // Notifications answer nobody.
        let sent = counters.snmp.out_pkts;
        let withheld = parts.shared.withheld();
        let answers = sent.wrapping_sub(counters.snmp.out_traps);
        let answers = answers.wrapping_sub(withheld as u32);
        Some(SnmpStatus {
            listening: parts.listening.iter().map(ToString::to_string).collect(),
            version_3_off: parts.version_3.clone(),
            requests,
            answers,
            dropped: requests.wrapping_sub(answers),
            bindings: counters.snmp.in_total_req_vars,
            unsent: parts.shared.unsent(),
            old: parts.shared.old(),
            withheld,
            agentx: parts.subagent.as_ref().map(|subagent| subagent.status()),
            agentx_master: parts.subagents.as_ref().map(master::Handle::status),
            notifications: parts.notifier.sent(),
            notifications_acknowledged: parts.notifier.acknowledged(),
            notifications_given_up: parts.notifier.given_up(),
            notifications_waiting: parts.notifier.waiting(),
            notifications_dropped: parts.notifier.dropped(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn how_it_is_is_told_while_a_batch_is_answered() {
        let directory = tempfile::tempdir().unwrap();
        let config = Snmp {
            listen: vec![(Ipv4Addr::LOCALHOST, 0).into()],
            state_directory: Some(directory.path().to_owned()),
            ..Snmp::default()
        };
        let gauge = Gauge::default();
        let sockets = BoundSockets::open(&config).unwrap();
        let service = Service::start(sockets, gauge.clone()).unwrap();
        let answering = service.shared.agent();
        let (told, status) = channel();
        let asking = thread::spawn(move || told.send(gauge.status().is_some()));
        let status = status.recv_timeout(Duration::from_secs(60));
        drop(answering);
        asking.join().unwrap().unwrap();
        assert_eq!(status, Ok(true));
    }
}
