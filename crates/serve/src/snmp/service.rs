//! SNMP of a running daemon: its parts are started, changed with the
//! configuration, and ended here. Called by the daemon.

use std::sync::Arc;

use anyhow::{Context, Result};
use mib::Module;
use snmp::agent::Agent;

use super::bound::{BoundSockets, bind, open_door};
use super::clock::Clock;
use super::config::Snmp;
use super::contexts::Source;
use super::engine::Engine;
use super::facts::{agent_config, facts};
use super::gauge::{Gauge, Parts};
use super::listener::{Listener, Shared};
use super::master::{self, Callers, Door, Subagents};
use super::notify::Notifier;
use super::socket::Socket;
use super::subagent::Subagent;
use crate::namespace::Namespace;

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
