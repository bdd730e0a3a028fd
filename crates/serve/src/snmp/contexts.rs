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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mib::{Engine, Health, MibContext, Module, Needed, Objects, System, sampled};
use snmp::counters::Counters;
use snmp::mib::WalkSink;
use snmp::{Contexts, Mib, Value};
use table::{Fresh, KindData, Tables};

use super::clock::Clock;
use super::history::{Follower, Followers};
use super::notify::Sender;
use super::samples::{Before, Freshness, Manner};
use crate::clock::now_millis;
use crate::namespace;

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
    clock: Clock,
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
    /// `snmpEnableAuthenTraps`.
    pub sends_authentication_failures: bool,
}

/// A namespace that can be asked.
#[derive(Debug)]
pub struct Namespace {
    of: namespace::Namespace,
    follower: Follower,
}

impl Source {
    /// A source that knows no namespace yet.
    pub fn new(facts: Facts, clock: Clock) -> Self {
        Self(Arc::new(ContextsState {
            namespaces: Mutex::new(Arc::from([])),
            facts: Mutex::new(Arc::new(facts)),
            followers: Followers::default(),
            clock,
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
        (self.0.clock.up_millis() / 10) as u32
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
    /// counted so much; and what is done where samples are too old.
    pub fn moment(&self, counters: Counters, manner: Manner) -> Asked {
        Asked {
            namespaces: Arc::clone(&lock(&self.0.namespaces)),
            facts: Arc::clone(&lock(&self.0.facts)),
            counters,
            up_millis: self.0.clock.up_millis(),
            ahead_millis: 0,
            now_millis: now_millis(),
            manner,
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

/// The contexts for one request, or for those of a master that came together.
#[derive(Debug)]
pub struct Asked {
    namespaces: Arc<[Arc<Namespace>]>,
    facts: Arc<Facts>,
    counters: Counters,
    up_millis: u64,
    ahead_millis: i64,
    now_millis: u64,
    manner: Manner,
    /// Those that were asked for.
    chosen: OnceCell<Box<Chosen>>,
}

/// A context that a request is about.
#[derive(Debug)]
struct Chosen {
    /// Where its rows come from.
    source: Arc<dyn table::Source>,
    freshness: Freshness,
    tables: RefCell<Arc<Tables>>,
    history: mib::History,
    health: Health,
    routing_table: u32,
    bridge: Option<u32>,
    facts: Arc<Facts>,
    counters: Counters,
    up_millis: u64,
    ahead_millis: i64,
    now_millis: u64,
    context: Vec<u8>,
    /// The one that was asked for next.
    next: OnceCell<Box<Self>>,
}

impl Contexts for Asked {
    fn context(&self, name: &[u8]) -> Option<&dyn Mib> {
        let mut place = &self.chosen;
        while let Some(chosen) = place.get() {
            if chosen.context == name {
                return Some(&**chosen);
            }
            place = &chosen.next;
        }
        let (namespace, inside) = self.namespace(name)?;
        let (owner, inside) = owner_of(inside);
        let of = namespace.of.of(owner).ok()?;
        let freshness = Freshness::new(self.manner.clone(), &*of.source);
        // The kernel's links say which tables are VRFs.
        let tables = of.tables();
        let of_kernel = mib::routing_table(&namespace.tables(), inside);
        let routing_table = of_kernel.or_else(|| mib::routing_table(&tables, inside))?;
        let chosen = Chosen {
            history: namespace.follower.history(),
            health: Health::of(Arc::clone(&of.source)),
            source: of.source,
            freshness,
            tables: RefCell::new(tables),
            routing_table,
            bridge: mib::bridge(&namespace.tables(), inside),
            facts: Arc::clone(&self.facts),
            counters: self.counters,
            up_millis: self.up_millis,
            ahead_millis: self.ahead_millis,
            now_millis: self.now_millis,
            context: name.to_vec(),
            next: OnceCell::new(),
        };
        let chosen = place.get_or_init(|| Box::new(chosen));
        Some(&**chosen)
    }

    fn is_waiting(&self) -> bool {
        self.all().any(|chosen| chosen.freshness.is_waiting())
    }

    fn is_by_name_only(&self, name: &[u8]) -> bool {
        self.is_others(name)
    }

    fn take_too_old(&self) -> bool {
        // Each of them, and not the first alone.
        let taken = self.all().map(|chosen| chosen.freshness.take_stale());
        taken.fold(false, |any, taken| any | taken)
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
    /// Times are told by the clock of another agent, which says that it is
    /// up for so long.
    #[must_use]
    pub fn by_the_clock_of(self, up_ticks: u32) -> Self {
        let theirs = i64::from(up_ticks) * 10;
        Self {
            ahead_millis: theirs.saturating_sub_unsigned(self.up_millis),
            ..self
        }
    }

    /// All that were asked for.
    fn all(&self) -> impl Iterator<Item = &Chosen> {
        std::iter::successors(self.chosen.get(), |chosen| chosen.next.get()).map(|chosen| &**chosen)
    }

    /// Whether the answer has samples that are older than they should be.
    pub fn is_old(&self) -> bool {
        self.all().any(|chosen| chosen.freshness.is_old())
    }

    /// Whether the answer has counters that are too old to be told.
    pub fn is_stale(&self) -> bool {
        self.all().any(|chosen| chosen.freshness.is_stale())
    }

    /// What the request waits for that is put off, and for how long.
    pub fn into_waits(self) -> (Vec<Fresh>, Duration) {
        let (mut waits, mut longest) = (Vec::new(), Duration::ZERO);
        let mut next = self.chosen.into_inner();
        while let Some(chosen) = next {
            let links = chosen.tables.borrow().links.len();
            let (fresh, patience) = chosen.freshness.into_waits(links);
            waits.extend(fresh);
            longest = longest.max(patience);
            next = chosen.next.into_inner();
        }
        (waits, longest)
    }

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
            follower: state
                .followers
                .follow(reader, &context, state.clock, told.clone()),
            of,
        }
    }

    fn tables(&self) -> Arc<Tables> {
        self.of.tables()
    }
}

impl Chosen {
    /// The objects of this moment, or of a later one where a sample that is
    /// needed was too old; nothing where the request is put off.
    fn with_objects<T: Default>(&self, needed: Needed, task: impl FnOnce(&Objects<'_>) -> T) -> T {
        match self.freshness.before(needed, &*self.source) {
            Before::PutOff => return T::default(),
            Before::TakeAgain => *self.tables.borrow_mut() = self.source.reader().snapshot(),
            Before::Answer => {}
        }
        let tables = Arc::clone(&self.tables.borrow());
        let beside = self.freshness.beside();
        let moment = MibContext {
            tables: &tables,
            system: &self.facts.system,
            engine: Engine {
                id: &self.facts.engine_id,
                boots: self.facts.boots,
                max_message_bytes: self.facts.max_message_bytes,
                sends_authentication_failures: self.facts.sends_authentication_failures,
                counters: &self.counters,
            },
            history: &self.history,
            health: &self.health,
            up_millis: self.up_millis,
            ahead_millis: self.ahead_millis,
            now: self.freshness.now(),
            sampled: self.freshness.times(),
            beside: beside.as_deref(),
            reads: self.freshness.reads(),
            now_millis: self.now_millis,
        };
        let told = task(&Objects::new(moment, self.routing_table).of_bridge(self.bridge));
        self.freshness.behind(&tables, &*self.source);
        told
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

    fn column_end(&self, name: &[u32]) -> Option<snmp::oid::Name> {
        mib::column_end(name)
    }
}
