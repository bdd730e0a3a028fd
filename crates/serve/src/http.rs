//! HTTP in the daemon: the tables, changes and metrics for programs at a
//! distance, and the page for people.
//!
//! - [`BoundSockets`], [`Service`]: sockets, keys and the thread that serves.
//! - `listening`, `serve`, `clients`, `users`, `shared_stream`, `guarded`, `parting`:
//!   addresses, connections, whose they are, and what bounds them.
//! - `access_policy`, `token`: who may ask.
//! - `definition`, `query`, `openapi`: what can be asked, defined once.
//! - `long`, `streamed`: answers that are not made at once.
//! - `rows`, `cursor`, `changes`, `metrics`, `status`, `router`, `page`: the
//!   answers.
//! - `nat`: the same of a translation, which is asked for them.
//! - `problem`: what a refused request is told.
//!
//! Everything runs on two threads of its own, each with a runtime: one talks
//! with clients and makes short answers, the other makes long ones. No other
//! thread of the daemon waits for them, and they wait for none: answers
//! come from snapshots. They have no rights. Limits, and what is answered at
//! each, are where they are declared: `config`, `guarded`, `query`, `access_policy`,
//! `rows`, `compressed`, `changes`.

mod access_policy;
mod background;
mod changes;
mod clients;
mod compressed;
pub mod config;
mod cursor;
mod definition;
mod guarded;
mod listening;
mod memory;
mod metrics;
mod nat;
mod openapi;
mod page;
mod parting;
mod problem;
mod prometheus;
mod query;
mod router;
mod rows;
mod serve;
mod shared;
mod shared_stream;
mod sources;
mod sql;
mod statement;
mod status;
mod streamed;
mod token;
mod users;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::request::Parts;
use rustix::rand::{GetRandomFlags, getrandom};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::oneshot;
use view::Names;

use crate::budget::Budget;
use crate::namespace::Namespace;
use access_policy::AccessPolicy;
use background::Background;
use config::Http;
use listening::Listening;
use problem::Problem;
use shared::Shared;
use token::Token;

/// Descriptors for what is no HTTP client.
const OTHER_DESCRIPTORS: u64 = 512;
/// Clients that wait to be accepted.
const BACKLOG: i32 = 1024;

/// The slice of the thread that makes short answers, the shortest there is:
/// with it a request is not kept waiting by a thread that has just begun to
/// run. An answer takes some ten microseconds.
const SLICE: Duration = Duration::from_micros(100);

/// What needs rights or the disk: done before rights are given up.
#[derive(Debug)]
pub struct BoundSockets {
    config: Http,
    listeners: Vec<(TcpListener, Arc<Listening>)>,
    access_policy: AccessPolicy,
    tls: Option<Arc<rustls::ServerConfig>>,
}

impl BoundSockets {
    /// Reads token and keys and binds the sockets. An address that cannot
    /// be had is complained of, and the rest goes on; keys that cannot be
    /// read are an error.
    pub fn open(config: &Http) -> Result<Self> {
        let mut listeners = Vec::new();
        if !config.listen.is_empty() {
            count_descriptors(config);
            listeners.extend(config.listen.iter().filter_map(|address| {
                let listener = bind(*address)?;
                let listening = Arc::new(Listening::new(*address, &listener));
                Some((listener, listening))
            }));
        }
        Ok(Self {
            config: config.clone(),
            listeners,
            access_policy: open_door(config)?,
            tls: open_tls(config)?,
        })
    }
}

/// Whether tokens, certificates and keys are as they should be.
pub fn check(config: &Http) -> Result<()> {
    open_door(config)?;
    open_tls(config)?;
    Ok(())
}

/// Addresses that cannot be listened at, and why; not those that somebody
/// has, which may be the daemon that runs.
pub fn unbound(config: &Http) -> Vec<String> {
    let tried = config.listen.iter().map(|at| (at, listen(*at)));
    let failed = tried.filter_map(|(at, tried)| Some((at, tried.err()?)));
    failed
        .filter(|(_, error)| error.kind() != std::io::ErrorKind::AddrInUse)
        .map(|(at, error)| no_http(*at, &error))
        .collect()
}

fn bind(address: SocketAddr) -> Option<TcpListener> {
    let bound = listen(address);
    bound
        .map_err(|error| tracing::warn!("{}", no_http(address, &error)))
        .ok()
}

fn no_http(address: SocketAddr, error: &std::io::Error) -> String {
    let advice = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "; somebody listens there already: choose another http.listen"
        }
        std::io::ErrorKind::PermissionDenied => "; ports below 1024 need root",
        std::io::ErrorKind::AddrNotAvailable => {
            "; this host does not have the address: put http.listen right"
        }
        _ => "",
    };
    format!("no HTTP at {address}: {error}{advice}")
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    // Connections of before may still be closing.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Says so where many clients may not find a descriptor each. The limit was
/// raised by whoever starts this ([`crate::descriptors::raise`]).
fn count_descriptors(config: &Http) {
    let wanted = config.clients as u64 + OTHER_DESCRIPTORS;
    let limit = crate::descriptors::limit();
    if limit < wanted {
        tracing::warn!(
            "{} HTTP clients may not find descriptors: the limit is {limit} (`ulimit -Hn`, \
             LimitNOFILE=)",
            config.clients
        );
    }
}

fn open_door(config: &Http) -> Result<AccessPolicy> {
    Ok(AccessPolicy {
        hosts: config
            .hosts
            .iter()
            .map(|host| host.trim_end_matches('.').to_ascii_lowercase())
            .collect(),
        token: config.token_file.as_deref().map(Token::load).transpose()?,
        netns_without_token: config.netns_without_token,
    })
}

fn open_tls(config: &Http) -> Result<Option<Arc<rustls::ServerConfig>>> {
    let (Some(certificate), Some(key)) = (&config.certificate_file, &config.key_file) else {
        return Ok(None);
    };
    let certificates = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("http.certificate_file: {}", certificate.display()))?;
    let key = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("http.key_file: {}", key.display()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("TLS cannot be used")?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .with_context(|| {
            let certificate = certificate.display();
            format!("http.certificate_file and http.key_file do not fit together: {certificate}")
        })?;
    Ok(Some(Arc::new(tls)))
}

/// HTTP of a running daemon. Ends when dropped.
#[derive(Debug)]
pub struct Service {
    shared: Arc<Shared>,
    listening: Vec<Arc<Listening>>,
    /// The one that talks with clients first, then that of long answers.
    threads: Vec<Thread>,
}

/// A thread of the service.
#[derive(Debug)]
struct Thread {
    /// Dropped: the thread ends.
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Thread {
    fn start(
        name: &str,
        serve: impl FnOnce(oneshot::Receiver<()>) + Send + 'static,
    ) -> Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || serve(stopped));
        let thread = thread.context("no thread for HTTP")?;
        Ok(Self { stop, thread })
    }

    fn end(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            tracing::error!("HTTP ended by a panic");
        }
    }
}

impl Service {
    /// Has metrics tell how SNMP is, too.
    pub fn show_snmp(&self, gauge: crate::snmp::Gauge) {
        // Once, at the start.
        let _ = self.shared.snmp.set(gauge);
    }

    /// Asks a translation at this control socket from now on; `None`: none.
    pub fn show_nat(&self, control: Option<std::path::PathBuf>) {
        self.shared.nat.set(control);
    }

    /// Has metrics and `/v1/router` tell how forwarding at XDP stands.
    pub fn show_forwarding(&self, gauge: crate::forwarding::Gauge) {
        // Once, at the start.
        let _ = self.shared.forwarding.set(gauge);
    }

    /// Has metrics tell how the history is.
    pub fn show_history(&self, gauge: crate::namespace_service::HistoryGauge) {
        // Once, at the start.
        let _ = self.shared.history.set(gauge);
    }

    /// Starts to answer; there is nothing to answer from yet.
    /// What clients have not taken is counted in a budget.
    pub fn start(sockets: BoundSockets, names: Names, budget: Arc<Budget>) -> Result<Self> {
        let BoundSockets {
            config,
            listeners,
            access_policy,
            tls,
        } = sockets;
        let mut start = [0; 4];
        getrandom(&mut start, GetRandomFlags::empty()).context("no random numbers")?;
        let start = format!("{:08x}", u32::from_ne_bytes(start));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("no runtime for HTTP")?;
        let long = Background::new(&runtime);
        let shared = Arc::new(Shared::new(start, config, access_policy, tls, long, budget));
        shared.rename(names);
        let listening = listeners
            .iter()
            .map(|(_, listening)| Arc::clone(listening))
            .collect();
        let mut threads = Vec::new();
        if !listeners.is_empty() {
            let shared = Arc::clone(&shared);
            threads.push(Thread::start("http", move |stopped| {
                serve(shared, listeners, stopped);
            })?);
            threads.push(Thread::start("http-long", move |stopped| {
                background::serve(runtime, stopped);
            })?);
        }
        Ok(Self {
            shared,
            listening,
            threads,
        })
    }

    /// Where it is asked.
    pub fn listening(&self) -> Vec<String> {
        let scheme = if self.shared.tls().is_some() {
            "https"
        } else {
            "http"
        };
        let open = self.listening.iter().filter(|at| !at.is_closed());
        open.map(|at| format!("{scheme}://{}/", at.address()))
            .collect()
    }

    /// Answers from these namespaces from now on, the first by default.
    pub fn set_namespaces(&self, namespaces: impl Iterator<Item = Namespace>) {
        self.shared.set_namespaces(namespaces.collect());
    }

    /// Takes other names of numbers, for answers from now on.
    pub fn rename(&self, names: Names) {
        self.shared.rename(names);
    }

    /// Takes another token, other keys and names of the host, and closes
    /// addresses that are left out; the rest takes effect at the next start.
    /// What is wrong changes nothing.
    ///
    /// First what is not wanted is closed, then the new access policy is put in: it
    /// was checked against the addresses of its own configuration, and none
    /// of the others may stand open with it.
    pub fn reload(&self, config: &Http) -> Result<()> {
        let (access_policy, tls) = (open_door(config)?, open_tls(config)?);
        for at in &self.listening {
            if !config.listen.contains(&at.configured()) && !at.is_closed() {
                at.close();
                tracing::info!("no more HTTP at {}", at.address());
            }
        }
        self.shared.replace(access_policy, tls);
        let old = &self.shared.config;
        let is_open = |address: &SocketAddr| {
            let open = self.listening.iter().filter(|at| !at.is_closed());
            open.map(|at| at.configured()).any(|at| at == *address)
        };
        let opens = config.listen.iter().any(|address| !is_open(address));
        let same = Http {
            listen: if opens {
                Vec::new()
            } else {
                config.listen.clone()
            },
            hosts: config.hosts.clone(),
            token_file: config.token_file.clone(),
            certificate_file: config.certificate_file.clone(),
            key_file: config.key_file.clone(),
            netns_without_token: config.netns_without_token,
            ..old.clone()
        };
        if same != *config {
            tracing::warn!(
                "[http] takes effect at the next start, but for hosts, token, certificate, \
                 netns_without_token and addresses that are left out"
            );
        }
        Ok(())
    }
}

impl Service {
    /// Ends without waiting for what its threads do: for a process that
    /// ends, and takes them along. They have nothing to finish, and many
    /// clients to let go.
    pub fn abandon(mut self) {
        self.threads.clear();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.threads.drain(..).for_each(Thread::end);
        // What is answered from must not hold the mirrors any longer.
        self.shared.set_namespaces(Arc::new([]));
    }
}

fn serve(
    shared: Arc<Shared>,
    listeners: Vec<(TcpListener, Arc<Listening>)>,
    stopped: oneshot::Receiver<()>,
) {
    // Whoever talks to strangers has no rights to lose.
    if let Err(error) = privileges::drop_all() {
        tracing::error!("no HTTP, rights remain: {error}");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!("no HTTP: {error}");
            return;
        }
    };
    if let Err(error) = dataplane::slice::set(SLICE) {
        tracing::warn!("short answers over HTTP may wait for long ones: no slice: {error}");
    }
    page::prepare();
    runtime.block_on(async {
        let router = router(&shared);
        for (listener, at) in listeners {
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => {
                    let accepting =
                        serve::accept(listener, at, Arc::clone(&shared), router.clone());
                    tokio::spawn(accepting);
                }
                Err(error) => tracing::error!("no HTTP: {error}"),
            }
        }
        // Ends when the sender is dropped.
        let _ = stopped.await;
    });
    // Answers under way are cut with the runtime.
}

fn router(shared: &Arc<Shared>) -> Router {
    let mut router = Router::new();
    for table in definition::TABLES {
        let answered = asynchronous(shared, move |shared, request| async move {
            rows::answer(&shared, table, request).await
        });
        router = router.route(table.path, get(answered));
    }
    for table in nat::definition::TABLES {
        let answered = asynchronous(shared, move |shared, request| {
            nat::rows(shared, table, request)
        });
        router = router.route(table.path, get(answered));
    }
    let document = Bytes::from(openapi::document().to_string());
    router
        .route(
            "/v1/routes/get",
            get(asynchronous(shared, |shared, request| async move {
                rows::route_get(&shared, &request).await
            })),
        )
        .route("/v1/routes/diff", get(asynchronous(shared, sources::diff)))
        .route("/v1/routes/why", get(asynchronous(shared, sources::why)))
        .route(
            "/v1/routes/flaps",
            get(asynchronous(shared, sources::flaps)),
        )
        .route(statement::PATH, post(asynchronous(shared, sql::answer)))
        .route("/v1/nat/who", get(asynchronous(shared, nat::who)))
        .route(
            "/v1/nat/statistics",
            get(asynchronous(shared, nat::statistics)),
        )
        .route(
            "/v1/changes",
            get(asynchronous(shared, |shared, request| async move {
                changes::open(&shared, request).await
            })),
        )
        .route(
            "/v1/status",
            get(asynchronous(shared, |shared, request| async move {
                status::answer(&shared, &request)
            })),
        )
        .route(
            "/v1/router",
            get(asynchronous(shared, |shared, request| async move {
                router::answer(&shared, &request).await
            })),
        )
        .route(
            "/metrics",
            get(asynchronous(shared, |shared, request| async move {
                metrics::answer(&shared, &request).await
            })),
        )
        .route(
            "/healthz",
            get(asynchronous(shared, |shared, _| async move {
                metrics::health(&shared)
            })),
        )
        .route(
            "/openapi.json",
            get(move || async move {
                let json = http::HeaderValue::from_static("application/json");
                ([(http::header::CONTENT_TYPE, json)], document)
            }),
        )
        .route("/", get(page))
        .route("/assets/{*path}", get(page))
        .fallback(|| async { Problem::not_found(no_such_path()) })
        .layer(compressed::layer())
}

/// Who asks for `/v1/route` is told what it is called.
fn no_such_path() -> String {
    let tables = definition::TABLES.iter().map(|table| table.path);
    let tables: Vec<&str> = tables.collect();
    format!(
        "there is no such path: there are {}, /v1/changes and what else /openapi.json says",
        tables.join(", ")
    )
}

async fn page(request: Request) -> Response {
    page::serve(request.uri().path(), request.headers())
}

/// A handler of axum's out of one of ours.
fn asynchronous<H, F>(
    shared: &Arc<Shared>,
    handler: H,
) -> impl Fn(Request) -> std::pin::Pin<Box<dyn Future<Output = Response> + Send>>
+ Clone
+ Send
+ Sync
+ 'static
where
    H: Fn(Arc<Shared>, Parts) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Problem>> + Send + 'static,
{
    let shared = Arc::clone(shared);
    move |request: Request| {
        let answered = handler(Arc::clone(&shared), request.into_parts().0);
        Box::pin(async move { answered.await.unwrap_or_else(IntoResponse::into_response) })
    }
}

#[cfg(test)]
mod tests;
