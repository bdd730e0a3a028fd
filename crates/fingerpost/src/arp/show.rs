//! Listing: by the daemon of the namespace where one runs, else from the
//! kernel.
//!
//! Names of hosts are never the daemon's to ask for; with names, rows come
//! from the kernel.

use std::io::{self, Write};

use anyhow::Result;
use linux::{Namespace, namespace};
use serve::control::protocol::Ask;
use view::arp::{ArpQuestion, Host, Timers};

use super::arguments::{Show, Wanted};
use crate::escaped::Escaped;
use crate::foreign::host;
use crate::{ask, direct};

/// Lists entries. Gives `false` when the one that was asked for is not
/// there.
pub fn run(show: &Show, wanted: &Wanted, namespace: &Namespace) -> Result<bool> {
    let question = question(show, wanted, namespace)?;
    let stdout = io::stdout();
    let mut out = Escaped::stdout(&stdout, true);
    let found = if show.resolve {
        let named = |addresses| host::ask_all(addresses, wanted.patience, host::name_of);
        direct::arp::answer(&question, namespace, Some(&named), &mut out)?
    } else {
        let asked = Ask::Arp(Box::new(question.clone()));
        ask::one_namespace(asked, namespace, wanted.direct, &mut out)?.rows
    };
    out.flush()?;
    Ok(question.is_done(found))
}

fn question(show: &Show, wanted: &Wanted, namespace: &Namespace) -> Result<ArpQuestion> {
    let host = match &show.host {
        Some(name) => Some(Host {
            name: name.clone(),
            address: host::address(name, wanted.patience)?,
        }),
        None => None,
    };
    let question = ArpQuestion {
        style: wanted.style,
        own: show.own,
        device: wanted.device.clone(),
        host,
        hardware: show.hardware,
        verbose: wanted.verbose,
        timers: Timers::default(),
    };
    Ok(match question.shows_ages() {
        true => ArpQuestion {
            timers: timers(namespace)?,
            ..question
        },
        false => question,
    })
}

/// The namespace's timers; the kernel's defaults where it does not tell.
fn timers(in_namespace: &Namespace) -> Result<Timers> {
    let usual = Timers::default();
    let read =
        |name: &str| namespace::setting(in_namespace, &format!("net/ipv4/neigh/default/{name}"));
    Ok(Timers {
        reachable_millis: read("base_reachable_time_ms")?.unwrap_or(usual.reachable_millis),
        stale_millis: read("gc_stale_time")?
            .map_or(usual.stale_millis, |seconds| seconds.saturating_mul(1000)),
    })
}
