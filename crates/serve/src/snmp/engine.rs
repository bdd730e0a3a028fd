//! The SNMP engine of this run: its id, how often it started, and the users
//! whose keys it has. Called by [`super::Service`].

use std::path::PathBuf;

use anyhow::Result;
use snmp::config::{RemoteUser, User};
use snmp::usm::LAST_BOOTS;

use super::config::{self, Snmp};
use super::notify::What;
use super::state;
use super::users::{self, Users};

/// The engine of this run.
#[derive(Debug)]
pub struct Engine {
    pub id: Vec<u8>,
    pub boots: u32,
    /// Where keys are; `None`, and why, where version 3 is off.
    pub state: Result<PathBuf, String>,
}

impl Engine {
    /// The engine, one start further. Where that cannot be written down,
    /// it has the boots of an engine that may authenticate nobody
    /// (RFC 3414 §2.2.2): version 3 would break at the next start.
    pub fn start(config: &Snmp) -> Result<Self> {
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
    pub fn looked_at(config: &Snmp) -> Result<Self> {
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
    pub fn first_since_boot(&self) -> What {
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
    pub fn remote_users(&self) -> Vec<RemoteUser> {
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
    pub fn users(&self, config: &Snmp) -> Vec<User> {
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
