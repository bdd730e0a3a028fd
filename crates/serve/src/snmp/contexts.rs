//! What SNMP is answered from: the namespaces that are mirrored, each by
//! contexts of its own.
//!
//! The default context is the first namespace that the daemon mirrors (its
//! own, where it mirrors that). Another namespace is `netns-NAME`. Behind
//! either: `table-N` and `vrf-NAME`, a kernel routing table or a VRF of it:
//! `vrf-red`, `netns-blue/table-100`; and `bridge-NAME`, a bridge of it. Before those, `source-NAME`: the rows
//! of one who feeds its own beside the kernel's, `source-frr/vrf-red`.
//!
//! Called by [`super::listener`] and [`super::subagent`]; kept by
//! [`super::Service`].

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mib::{Engine, Health, MibContext, Module, Needed, Objects, System, sampled};
use snmp::counters::Counters;
use snmp::mib::WalkSink;
use snmp::{Contexts, Mib, Value};
use table::{KindData, Sampled, Tables};

use super::history::{Follower, Followers};
use super::notify::Sender;
use crate::clock::now_millis;
use crate::namespace;

/// How old a sample may be in an answer. The mirror takes one
/// a second while somebody asks.
const FRESH: Duration = Duration::from_secs(1);
/// The first question after a pause waits so long for a sample, at most.
const SAMPLE_PATIENCE: Duration = Duration::from_millis(200);
/// And for the first sample of all, without which a table has no rows.
const FIRST_SAMPLE_PATIENCE: Duration = Duration::from_millis(800);
/// After a wait in vain nobody waits again for so long.
const DISAPPOINTED_MILLIS: u64 = 5_000;
/// Between two wishes for samples; the mirror takes somebody to read for a
/// second after each.
const WISH_MILLIS: u64 = 400;
/// How a context begins that means the rows of one owner.
const SOURCE: &str = "source-";
/// Contexts told of at most.
const MAX_CONTEXTS: usize = 64;

/// Where answers come from. Cheap to clone; all clones see the same.
#[derive(Debug, Clone)]
pub struct Source(Arc<ContextsState>);

#[derive(Debug)]
struct ContextsState {
    namespaces: Mutex<Arc<[Arc<Namespace>]>>,
    facts: Mutex<Arc<Facts>>,
    followers: Followers,
    started_at_millis: u64,
}

/// What does not change from one question to the next.
#[derive(Debug, Clone)]
pub struct Facts {
    /// What the system says of itself.
    pub system: System,
    /// `snmpEngineID`.
    pub engine_id: Vec<u8>,
    /// `snmpEngineBoots`.
    pub boots: u32,
    /// `snmpEngineMaxMessageSize`.
    pub max_message_bytes: u32,
}

/// A namespace that can be asked.
#[derive(Debug)]
pub struct Namespace {
    of: namespace::Namespace,
    follower: Follower,
    wishes: Wishes,
}

/// When samples were last wished for, and last waited for in vain.
#[derive(Debug, Default)]
struct Wishes {
    /// In the order of [`Sampled::ALL`].
    last: [AtomicU64; Sampled::ALL.len()],
    failed_at_millis: [AtomicU64; Sampled::ALL.len()],
}

impl Source {
    /// A source that knows no namespace yet.
    pub fn new(facts: Facts) -> Self {
        Self(Arc::new(ContextsState {
            namespaces: Mutex::new(Arc::from([])),
            facts: Mutex::new(Arc::new(facts)),
            followers: Followers::default(),
            started_at_millis: now_millis(),
        }))
    }

    /// What is so from now on, but for the modules of others.
    pub fn set_facts(&self, mut facts: Facts) {
        let mut known = lock(&self.0.facts);
        facts.system.modules = Arc::clone(&known.system.modules);
        facts.system.modules_changed = known.system.modules_changed;
        *known = Arc::new(facts);
    }

    /// The modules of others from now on.
    pub fn set_modules(&self, modules: Arc<[Module]>) {
        let changed = self.up_time();
        let mut known = lock(&self.0.facts);
        let system = &mut Arc::make_mut(&mut *known).system;
        system.modules = modules;
        system.modules_changed = changed;
    }

    /// `sysUpTime`.
    pub fn up_time(&self) -> u32 {
        (now_millis().saturating_sub(self.0.started_at_millis) / 10) as u32
    }

    /// The namespaces from now on, the default one first. Those that are
    /// known already stay as they are.
    pub fn set_namespaces(
        &self,
        wanted: impl Iterator<Item = namespace::Namespace>,
        told: &Sender,
    ) {
        let known = Arc::clone(&lock(&self.0.namespaces));
        let of = |source: &Arc<dyn table::Source>| Arc::as_ptr(source).cast::<()>();
        let known: HashMap<_, _> = known.iter().map(|one| (of(&one.of.source), one)).collect();
        let namespaces: Vec<Arc<Namespace>> = wanted
            .map(|wanted| match known.get(&of(&wanted.source)) {
                Some(same) => Arc::clone(same),
                None => Arc::new(Namespace::new(wanted, &self.0, told)),
            })
            .collect();
        *lock(&self.0.namespaces) = namespaces.into();
    }

    /// The contexts beside the default one: whole namespaces (true) and
    /// routing tables.
    pub fn contexts(&self) -> Vec<(Vec<u8>, bool)> {
        let namespaces = Arc::clone(&lock(&self.0.namespaces));
        let mut contexts = Vec::new();
        for (at, namespace) in namespaces.iter().enumerate() {
            let mut head = String::new();
            if at > 0 {
                head = format!("netns-{}", namespace.of.name.as_deref().unwrap_or("own"));
                contexts.push((head.clone().into_bytes(), true));
                head.push('/');
            }
            let tables = namespace.tables();
            let owners = tables.owners();
            let mut inside = routing_contexts(&tables);
            inside.extend(owners.map(|owner| format!("{SOURCE}{}", owner.name())));
            contexts.extend(
                inside
                    .into_iter()
                    .map(|name| (format!("{head}{name}").into_bytes(), false)),
            );
        }
        contexts.truncate(MAX_CONTEXTS);
        contexts
    }

    /// What one question is answered from, asked of an agent that has
    /// counted so much.
    pub fn moment(&self, counters: Counters) -> Asked {
        Asked {
            namespaces: Arc::clone(&lock(&self.0.namespaces)),
            facts: Arc::clone(&lock(&self.0.facts)),
            counters,
            started_at_millis: self.0.started_at_millis,
            now_millis: now_millis(),
            chosen: OnceCell::new(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The VRFs, the tables that a rule leads to, and the bridges.
fn routing_contexts(tables: &Tables) -> BTreeSet<String> {
    let vrfs = tables
        .links
        .iter()
        .filter(|link| link.vrf_table.is_some())
        .map(|link| format!("vrf-{}", link.name));
    let ruled = tables
        .rules
        .iter()
        .filter(|rule| !matches!(rule.table, 0 | 253..=255))
        .map(|rule| format!("table-{}", rule.table));
    let bridges = tables
        .links
        .iter()
        .filter(|link| matches!(link.kind_data, KindData::Bridge(_)))
        .map(|link| format!("bridge-{}", link.name));
    vrfs.chain(ruled)
        .chain(bridges)
        .take(MAX_CONTEXTS)
        .collect()
}

/// The contexts for one request.
#[derive(Debug)]
pub struct Asked {
    namespaces: Arc<[Arc<Namespace>]>,
    facts: Arc<Facts>,
    counters: Counters,
    started_at_millis: u64,
    now_millis: u64,
    chosen: OnceCell<Chosen>,
}

/// A context that a request is about.
#[derive(Debug)]
struct Chosen {
    namespace: Arc<Namespace>,
    tables: RefCell<Arc<Tables>>,
    history: mib::History,
    health: Health,
    routing_table: u32,
    bridge: Option<u32>,
    /// The rows are a feeder's: nobody samples them.
    is_feeders: bool,
    facts: Arc<Facts>,
    counters: Counters,
    started_at_millis: u64,
    now_millis: u64,
    context: Vec<u8>,
}

impl Contexts for Asked {
    fn context(&self, name: &[u8]) -> Option<&dyn Mib> {
        if let Some(chosen) = self.chosen.get() {
            return (chosen.context == name).then_some(chosen as &dyn Mib);
        }
        let (namespace, inside) = self.namespace(name)?;
        let (owner, inside) = owner_of(inside);
        let of = namespace.of.of(owner).ok()?;
        // The kernel's links say which tables are VRFs.
        let tables = of.tables();
        let of_kernel = mib::routing_table(&namespace.tables(), inside);
        let routing_table = of_kernel.or_else(|| mib::routing_table(&tables, inside))?;
        let chosen = self.chosen.get_or_init(|| Chosen {
            history: namespace.follower.history(),
            health: Health::of(of.source),
            is_feeders: of.feeder.is_some(),
            namespace: Arc::clone(namespace),
            tables: RefCell::new(tables),
            routing_table,
            bridge: mib::bridge(&namespace.tables(), inside),
            facts: Arc::clone(&self.facts),
            counters: self.counters,
            started_at_millis: self.started_at_millis,
            now_millis: self.now_millis,
            context: name.to_vec(),
        });
        Some(chosen)
    }

    fn is_by_name_only(&self, name: &[u8]) -> bool {
        self.is_others(name)
    }
}

/// The owner that what is left of a context's name means, and what is left
/// then.
fn owner_of(inside: &[u8]) -> (Option<&str>, &[u8]) {
    let rest = inside.strip_prefix(SOURCE.as_bytes());
    let Some(rest) = rest.and_then(|rest| std::str::from_utf8(rest).ok()) else {
        return (None, inside);
    };
    match rest.split_once('/') {
        Some((owner, inside)) => (Some(owner), inside.as_bytes()),
        None => (Some(rest), b""),
    }
}

impl Asked {
    /// What the kernel tells of other namespaces is not for everybody.
    fn is_others(&self, name: &[u8]) -> bool {
        let found = self.namespace(name);
        found.is_some_and(|(namespace, _)| namespace.of.is_others)
    }

    /// The namespace that a context's name means, and what is left of the
    /// name.
    fn namespace<'n>(&self, name: &'n [u8]) -> Option<(&Arc<Namespace>, &'n [u8])> {
        let Some(rest) = name.strip_prefix(b"netns-") else {
            return Some((self.namespaces.first()?, name));
        };
        // A name may hold a slash: the longest that fits is meant.
        let named = self.namespaces.iter().filter_map(|namespace| {
            let own = namespace.of.name.as_deref().unwrap_or("own");
            let inside = rest.strip_prefix(own.as_bytes())?;
            match inside {
                [] => Some((namespace, inside)),
                [b'/', inside @ ..] => Some((namespace, inside)),
                _ => None,
            }
        });
        named.min_by_key(|(_, inside)| inside.len())
    }
}

impl Namespace {
    fn new(of: namespace::Namespace, state: &ContextsState, told: &Sender) -> Self {
        let context = of.name.as_ref().map(|name| format!("netns-{name}"));
        let context = context.unwrap_or_default();
        let reader = of.source.reader();
        Self {
            follower: state.followers.follow(
                reader,
                &context,
                state.started_at_millis,
                told.clone(),
            ),
            of,
            wishes: Wishes::default(),
        }
    }

    fn tables(&self) -> Arc<Tables> {
        self.of.tables()
    }

    /// Sees to it that samples are being taken; whether to wait for them,
    /// because those there are too old.
    fn wish(&self, needed: Needed, now_millis: u64, tables: &Tables) -> bool {
        let Some(samples) = self.of.source.samples() else {
            return false;
        };
        let mut is_old = false;
        for what in needed.iter() {
            let last = &self.wishes.last[what as usize];
            if now_millis.saturating_sub(last.load(Ordering::Relaxed)) >= WISH_MILLIS {
                last.store(now_millis, Ordering::Relaxed);
                samples.want(what, Instant::now());
            }
            let taken = tables.sampled_at_millis(what);
            let is_fresh = |taken| taken + (FRESH.as_millis() as u64) >= now_millis;
            is_old |= !taken.is_some_and(is_fresh) && !self.wishes.is_backing_off(what, now_millis);
        }
        is_old
    }

    /// Waits for samples, not for long, and gives the tables of then.
    fn wait_for_samples(&self, needed: Needed, now_millis: u64) -> Arc<Tables> {
        let begun = Instant::now();
        let tables = self.tables();
        for what in needed.iter() {
            let is_first = tables.sampled_at_millis(what).is_none();
            let patience = if is_first {
                FIRST_SAMPLE_PATIENCE
            } else {
                SAMPLE_PATIENCE
            };
            let deadline = begun + patience;
            let left = deadline.saturating_duration_since(Instant::now());
            let oldest = Instant::now().checked_sub(FRESH);
            let samples = self.of.source.samples();
            let is_fresh = samples
                .zip(oldest)
                .is_none_or(|(samples, oldest)| samples.wait(what, oldest, left));
            if !is_fresh {
                let failed_at_millis = &self.wishes.failed_at_millis[what as usize];
                failed_at_millis.store(now_millis, Ordering::Relaxed);
            }
        }
        self.tables()
    }
}

impl Wishes {
    fn is_backing_off(&self, what: Sampled, now_millis: u64) -> bool {
        let last = self.failed_at_millis[what as usize].load(Ordering::Relaxed);
        now_millis.saturating_sub(last) < DISAPPOINTED_MILLIS
    }
}

impl Chosen {
    /// The objects of this moment, or of a later one where a sample that is
    /// needed was too old.
    fn with_objects<T>(&self, needed: Needed, task: impl FnOnce(&Objects<'_>) -> T) -> T {
        let mut tables = Arc::clone(&self.tables.borrow());
        if !self.is_feeders && self.namespace.wish(needed, self.now_millis, &tables) {
            tables = self.namespace.wait_for_samples(needed, self.now_millis);
            *self.tables.borrow_mut() = Arc::clone(&tables);
        }
        let moment = MibContext {
            tables: &tables,
            system: &self.facts.system,
            engine: Engine {
                id: &self.facts.engine_id,
                boots: self.facts.boots,
                max_message_bytes: self.facts.max_message_bytes,
                sends_authentication_failures: false,
                counters: &self.counters,
            },
            history: &self.history,
            health: &self.health,
            started_at_millis: self.started_at_millis,
            now_millis: self.now_millis,
        };
        task(&Objects::new(moment, self.routing_table).of_bridge(self.bridge))
    }
}

impl Mib for Chosen {
    fn get(&self, names: &[&[u32]], sink: &mut dyn FnMut(usize, Value<'_>)) {
        let needed = names.iter().map(|name| sampled(name));
        let needed = needed.fold(Needed::default(), Needed::with);
        self.with_objects(needed, |objects| objects.get(names, sink));
    }

    fn walk(&self, after: &[u32], sink: &mut WalkSink<'_>) {
        let part = |after: &[u32], sink: &mut WalkSink<'_>| {
            self.with_objects(sampled(after), |objects| objects.walk_sampled(after, sink))
        };
        let mut walked = part(after, sink);
        while let Some(name) = walked {
            walked = part(&name, sink);
        }
    }
}
