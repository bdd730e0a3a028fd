//! The sockets of SNMP: what needs rights or the disk is done before rights
//! are given up, and what cannot be had is said. Called by
//! [`super::Service`] and by whoever tries a configuration.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use snmp::agent::Agent;

use super::config::Snmp;
use super::engine::Engine;
use super::facts::agent_config;
use super::listener;
use super::master::Door;
use super::socket::Socket;

/// What needs rights or the disk: done before rights are given up.
#[derive(Debug)]
pub struct BoundSockets {
    pub(super) config: Snmp,
    pub(super) sockets: Vec<Socket>,
    pub(super) door: Option<Door>,
    pub(super) engine: Engine,
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
pub(super) fn open_door(config: &Snmp) -> Option<Door> {
    let opened = Door::open(&config.agentx_master()?);
    opened.map_err(|error| tracing::warn!("{error:#}")).ok()
}

pub(super) fn bind(address: SocketAddr) -> Option<Socket> {
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
