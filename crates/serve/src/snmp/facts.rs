//! What a configuration and an engine say of the agent: to whoever asks
//! about the system, and to the agent itself. Called by [`super::Service`].

use anyhow::{Context, Result};
use mib::System;
use rustix::rand::{GetRandomFlags, getrandom};
use snmp::config::{Community, Config};

use super::config::Snmp;
use super::contexts::Facts;
use super::engine::Engine;

/// What is told of the system.
pub fn facts(config: &Snmp, engine: &Engine) -> Facts {
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
pub fn agent_config(config: &Snmp, engine: &Engine) -> Result<Config> {
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
