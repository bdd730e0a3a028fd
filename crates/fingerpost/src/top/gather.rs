//! The threads that ask for `top`: one looks once an interval, one for
//! each table hears its changes. They end with the process.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use view::{Filter, Object};

use super::Top;
use super::daemon::Daemon;
use super::events::{Lines, Tally};
use super::sample::Sample;
use super::subscribers::{self, Found};

/// Before the daemon is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// What the looking thread says.
#[derive(Debug)]
pub enum Gathering {
    /// It has looked.
    Sample(Box<Sample>),
    /// The daemon does not answer, in words.
    Trouble(String),
}

/// What is gathered.
#[derive(Debug)]
pub struct Gathered {
    /// A look each interval.
    pub said: Receiver<Gathering>,
    /// The changes.
    pub tally: Arc<Mutex<Tally>>,
    /// The subscribers of a translation.
    pub subscribers: Found,
}

/// Begins to gather. Fails at once when no daemon answers.
pub fn start(daemon: &Daemon, top: &Top) -> Result<Gathered> {
    let interval = top.interval;
    daemon.status()?;
    let tally = Arc::new(Mutex::new(Tally::default()));
    for (object, filter) in watched() {
        let (daemon, tally) = (daemon.clone(), Arc::clone(&tally));
        spawn("watch", move || hear(&daemon, object, &filter, &tally))?;
    }
    let (sender, said) = mpsc::sync_channel(1);
    let daemon = daemon.clone();
    spawn("look", move || look(&daemon, interval, &sender))?;
    let subscribers = Found::default();
    let (control, found) = (top.nat.clone(), subscribers.clone());
    spawn("subscribers", move || {
        subscribers::follow(&control, interval, &found);
    })?;
    Ok(Gathered {
        said,
        tally,
        subscribers,
    })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.context("cannot start a thread")?;
    Ok(())
}

/// What is watched, whole: without a filter some tables would be told in
/// part, as `ip` lists them.
fn watched() -> Vec<(Object, Filter)> {
    let all = [Object::Link, Object::Addr, Object::Nexthop, Object::Fdb];
    let rules = [4, 6].map(|family| {
        let filter = Filter {
            family: Some(family),
            ..Filter::default()
        };
        (Object::Rule, filter)
    });
    let neighbours = Filter {
        state: vec!["all".to_owned()],
        ..Filter::default()
    };
    let routes = Filter {
        table: Some("all".to_owned()),
        ..Filter::default()
    };
    let whole = all.map(|object| (object, Filter::default()));
    whole
        .into_iter()
        .chain(rules)
        .chain([(Object::Neigh, neighbours), (Object::Route, routes)])
        .collect()
}

/// Hears a table's changes for as long as the process lives.
fn hear(daemon: &Daemon, object: Object, filter: &Filter, tally: &Arc<Mutex<Tally>>) {
    loop {
        // Why it failed is said by the thread that looks.
        let _ = daemon.watch(object, filter.clone(), &mut Lines::new(Arc::clone(tally)));
        thread::sleep(PAUSE);
    }
}

/// Looks once an interval for as long as somebody listens.
fn look(daemon: &Daemon, interval: Duration, to: &SyncSender<Gathering>) {
    loop {
        let began = Instant::now();
        let (said, pause) = match Sample::take(daemon) {
            Ok(sample) => (Gathering::Sample(Box::new(sample)), interval),
            Err(error) => (
                Gathering::Trouble(format!("{error:#}")),
                interval.min(PAUSE),
            ),
        };
        if to.send(said).is_err() {
            return;
        }
        thread::sleep(pause.saturating_sub(began.elapsed()));
    }
}
