//! What all answers share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use http::StatusCode;
use http::request::Parts;
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use view::{Bounds, Names};

use super::access_policy::{AccessPolicy, LetIn, Rates};
use super::background::Background;
use super::changes::Streams;
use super::clients::{Admission, Clients};
use super::compressed::MAX_COMPRESSED;
use super::config::Http;
use super::memory::Memory;
use super::nat::translation::Translation;
use super::problem::Problem;
use super::users::Users;
use crate::budget::{Budget, Lease};
use crate::clock::now_millis;
use crate::namespace::Namespace;
use crate::route_times::RouteTimes;
use crate::source::Source;

/// Bytes of a piece of an answer at least, about, however little room.
const MIN_PIECE_BYTES: usize = 4 << 10;
/// A piece takes no more than this part of what its source may still keep:
/// a client has two under way, and there will be others.
const PIECE_OF_ROOM: usize = 1 << 10;
/// Octets of memory that a connection counts as while nothing is asked.
pub const CONNECTION_BYTES: usize = 6 << 10;
/// What it counts as beside that, from the first octet of a request until it
/// rests again: hyper's two buffers of 8 KiB, the tasks that answer, two of
/// the shortest pieces.
pub const ANSWERING_BYTES: usize = 34 << 10;

/// What all answers share.
#[derive(Debug)]
pub struct Shared {
    /// Tells this start of the daemon from others.
    pub start: String,
    /// As configured at the start.
    pub config: Http,
    /// Places for connections.
    pub clients: Arc<Clients>,
    /// Whose the clients of this host are.
    users: Users,
    /// Requests by source.
    pub rates: Rates,
    /// Makes long answers.
    pub background: Background,
    /// Rights to compress.
    pub compressed: Arc<Semaphore>,
    /// Memory for what clients have not taken.
    pub budget: Arc<Budget>,
    /// Those who watch changes.
    pub streams: Streams,
    /// When routes changed.
    pub route_times: RouteTimes,
    /// Rights to run a statement of SQL.
    pub statements: Arc<Semaphore>,
    /// What was answered.
    pub counts: Counts,
    /// When the daemon started, seconds since the UNIX epoch.
    pub started_secs: u64,
    /// The same moment by a clock that nobody sets.
    pub started: Instant,
    access_policy: Mutex<Arc<AccessPolicy>>,
    tls: Mutex<Option<Arc<ServerConfig>>>,
    names: Mutex<Arc<Names>>,
    namespaces: Mutex<Arc<[Namespace]>>,
    memory: Mutex<Memory>,
    /// The translation that is asked.
    pub nat: Translation,
    /// How SNMP is, where it is told.
    pub snmp: OnceLock<crate::snmp::Gauge>,
    /// How forwarding at XDP stands, where it is told.
    pub forwarding: OnceLock<crate::forwarding::Gauge>,
    /// How the history is, where one is kept.
    pub history: OnceLock<crate::namespace_service::HistoryGauge>,
}

/// Whose request it is.
pub fn source_of(request: &Parts) -> Source {
    let source = request.extensions.get::<Source>();
    // Each request has one; one without would share with all of them.
    source.copied().unwrap_or(Source::Watchers)
}

/// Whether who asks is told what a namespace has.
fn tells(namespace: &Namespace, request: &Parts) -> bool {
    !namespace.is_others || LetIn::of(request).tells_others
}

/// What was answered since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Answers by the first digit of their status.
    by_class: [AtomicU64; 6],
    /// Clients refused for want of a place.
    pub refused: AtomicU64,
}

impl Counts {
    /// Counts an answer.
    pub fn answered(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100);
        if let Some(count) = self.by_class.get(class) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Answers whose status begins with a digit.
    pub fn of_class(&self, class: usize) -> u64 {
        self.by_class
            .get(class)
            .map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

fn get<T: Clone>(of: &Mutex<T>) -> T {
    of.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn put<T>(into: &Mutex<T>, value: T) {
    *into.lock().unwrap_or_else(PoisonError::into_inner) = value;
}

impl Shared {
    /// With nothing to answer from yet.
    pub fn new(
        start: String,
        config: Http,
        access_policy: AccessPolicy,
        tls: Option<Arc<ServerConfig>>,
        background: Background,
        budget: Arc<Budget>,
    ) -> Self {
        Self {
            start,
            clients: Clients::new(config.clients),
            users: Users::new(),
            rates: Rates::new(config.requests_per_sec),
            background,
            compressed: Arc::new(Semaphore::new(MAX_COMPRESSED)),
            budget,
            streams: Streams::new(config.event_streams),
            route_times: RouteTimes::default(),
            statements: Arc::new(Semaphore::new(super::statement::AT_ONCE)),
            counts: Counts::default(),
            started_secs: now_millis() / 1000,
            started: Instant::now(),
            config,
            access_policy: Mutex::new(Arc::new(access_policy)),
            tls: Mutex::new(tls),
            names: Mutex::default(),
            namespaces: Mutex::new(Arc::new([])),
            memory: Mutex::default(),
            nat: Translation::default(),
            snmp: OnceLock::new(),
            forwarding: OnceLock::new(),
            history: OnceLock::new(),
        }
    }

    /// How long a piece of a long answer to a source is: each client has
    /// two of them on their way, so they are the shorter the less room there
    /// is.
    pub fn piece(&self, source: Source) -> Bounds {
        let share = self.budget.room(source) / PIECE_OF_ROOM;
        Bounds {
            bytes: share.clamp(MIN_PIECE_BYTES, Bounds::USUAL.bytes),
            ..Bounds::USUAL
        }
    }

    /// Whether the kernel says that nobody has the other end of a connection
    /// any more.
    pub fn is_nobodys(&self, from: SocketAddr, to: Option<SocketAddr>) -> bool {
        self.users.source(from, to).is_none()
    }

    /// Lets a client in, if there is a place and memory for its source;
    /// `None`: it has closed the connection already.
    pub fn admit(
        &self,
        stream: &TcpStream,
        from: SocketAddr,
    ) -> Result<Option<Admission>, Problem> {
        let Some(source) = self.users.source(from, stream.local_addr().ok()) else {
            return Ok(None);
        };
        let lease = self.lease(source, CONNECTION_BYTES)?;
        let clients = self.config.clients;
        let admission = self.clients.take(source, lease);
        admission.map(Some).ok_or_else(|| {
            Problem::busy(format!(
                "{clients} clients are connected already, and all are being answered: ask \
                 again, or raise `clients` in `[http]` of the configuration"
            ))
        })
    }

    /// Memory for a source, or why there is none.
    pub fn lease(&self, source: Source, octets: usize) -> Result<Lease, Problem> {
        self.budget.lease(source, octets).ok_or_else(|| {
            Problem::busy(format!(
                "the clients of one address or user take all memory that they may: take answers \
                 faster, or raise `kept_bytes` in `[answers]` of the configuration, now {} MiB",
                self.budget.most() >> 20
            ))
        })
    }

    /// Who may ask.
    pub fn access_policy(&self) -> Arc<AccessPolicy> {
        get(&self.access_policy)
    }

    /// How connections are encrypted, if they are.
    pub fn tls(&self) -> Option<Arc<ServerConfig>> {
        get(&self.tls)
    }

    /// Takes another access policy and other keys.
    pub fn replace(&self, access_policy: AccessPolicy, tls: Option<Arc<ServerConfig>>) {
        put(&self.access_policy, Arc::new(access_policy));
        put(&self.tls, tls);
    }

    /// iproute2's names.
    pub fn names(&self) -> Arc<Names> {
        get(&self.names)
    }

    /// Takes other names.
    pub fn rename(&self, names: Names) {
        put(&self.names, Arc::new(names));
    }

    /// Bytes of memory that the daemon has in use, half a second old at
    /// most.
    pub fn memory(&self) -> u64 {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.octets()
    }

    /// The namespaces that are mirrored, the default one first.
    pub fn namespaces(&self) -> Arc<[Namespace]> {
        get(&self.namespaces)
    }

    /// Those of them that are told to whoever asks.
    pub fn told(&self, request: &Parts) -> Arc<[Namespace]> {
        let all = self.namespaces();
        let told = all.iter().filter(|one| tells(one, request));
        told.cloned().collect()
    }

    /// Answers from these from now on.
    pub fn set_namespaces(&self, namespaces: Arc<[Namespace]>) {
        put(&self.namespaces, namespaces);
    }

    /// The namespace of a name; the default one without.
    pub fn namespace(&self, name: Option<&str>, request: &Parts) -> Result<Namespace, Problem> {
        let all = self.namespaces();
        let found = match name {
            None => all.first(),
            Some(_) => all.iter().find(|one| one.name.as_deref() == name),
        };
        match (found, all.is_empty()) {
            (Some(one), _) if !tells(one, request) => Err(Problem::new(
                StatusCode::FORBIDDEN,
                "other namespaces than the daemon's own are told with a token only: set \
                 `token_file` in `[http]` of the configuration, or `netns_without_token = true`",
            )),
            (Some(one), _) => Ok(one.clone()),
            (None, true) => Err(Problem::busy("the tables are being read; ask again")),
            (None, false) => {
                let names: Vec<_> = all.iter().filter_map(|one| one.name.as_deref()).collect();
                Err(Problem::not_found(format!(
                    "parameter `netns`: no namespace of this name is mirrored; there are: {}",
                    if names.is_empty() {
                        "the daemon's own, without `netns`".to_owned()
                    } else {
                        names.join(", ")
                    }
                )))
            }
        }
    }
}
