//! What `up` would do before it answers anybody, done for a look alone: for
//! `fingerpost check`. In the same order and with the same rights, so that
//! what `up` refuses is refused here, in the same words. It binds addresses
//! for a moment, makes no file and starts nothing.
//!
//! What only a moment says is no part of it: whether another daemon mirrors
//! the namespace already, whether memory and threads are left.

use std::io;

use anyhow::{Context, Result, bail};
use feed::Door;
use linux::Namespace;
use linux::recording::Recorder;
use serve::{http, snmp};

use super::{Up, cannot_listen, group, history, socket, wanted_by_name, wants_all};
use crate::ask;
use crate::config::Config;

/// Whether `up` would go by this configuration; gives what it would warn of
/// and go on. Gives up rights: for a process that does nothing else.
pub fn rehearse(config: &Config) -> Result<Vec<String>> {
    let up = Up::default();
    let own = Namespace::current()?;
    let mut namespaces = Vec::new();
    for spec in wanted_by_name(&up, config).into_iter().flatten() {
        namespaces.push(Namespace::open(&spec)?);
    }
    let is_running = ask::daemon_of(own.inode()).is_some();
    let mut warnings = snmp::unbound(&config.snmp);
    warnings.extend(http::unbound(&config.http));
    http::check(&config.http)?;
    doors(config, is_running, &mut warnings)?;
    if let Some(group) = &config.control.group {
        group::may_join("control.group", &group.0)?;
    }
    let enters = wants_all(&up, config) || !namespaces.is_empty();
    privileges::keep_for_mirrors(enters).context("cannot give up privileges")?;
    socket::check_directory(config.control.directory.as_deref())?;
    snmp::check(&config.snmp)?;
    if let Some(file) = &config.record.file {
        // A daemon that runs writes there.
        Recorder::check(file).context("cannot record")?;
    }
    history::check(&config.history)?;
    for namespace in namespaces {
        let spec = namespace.spec();
        let entered = namespace.run(|| ());
        entered.with_context(|| format!("cannot mirror namespace {spec}"))?;
    }
    Ok(warnings)
}

/// Whether the doors of feeds can be opened. Where a daemon runs, it has
/// them open.
fn doors(config: &Config, is_running: bool, warnings: &mut Vec<String>) -> Result<()> {
    for (name, feed) in &config.feed {
        match Door::open(feed.listen, &feed.peers) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_running => {
                warnings.push(format!(
                    "feed.{name}.listen: somebody listens at {} already: the daemon that runs, or \
                     the next start fails",
                    feed.listen
                ));
            }
            Err(error) => bail!("{}: {error}", cannot_listen(name, feed)),
            Ok(_) => {}
        }
    }
    Ok(())
}
