//! The daemon's side of the control socket.
//!
//! Each client has a thread of its own, which answers one request from
//! snapshots and never asks the kernel. A client that stops reading holds
//! its own thread, no snapshot, and bounded memory, and not for ever.

pub mod connection;
mod outbox;
mod places;
mod turn;

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use view::Names;

use super::protocol;
use crate::budget::{Budget, Lease};
use crate::complaint::Complaint;
use crate::namespace_service::NamespaceService;
use crate::source::Source;
use crate::sql;
use crate::status::Answered;
use places::{Admission, Taken};
use turn::Turn;

/// Clients accepted in one go.
const AT_ONCE: usize = 16;

/// What a client counts as in the memory for all: its thread, two frames
/// that are filled.
const CLIENT_BYTES: usize = 160 << 10;

/// The slice of a thread that answers root, the shortest there is.
const SLICE: Duration = Duration::from_micros(100);

/// How long nobody is accepted once somebody could not be.
const REFUSED: Duration = Duration::from_millis(10);

/// What a client may take.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Clients at a time.
    pub clients: usize,
    /// Of them those of one user that is not root.
    pub of_user: usize,
    /// Of them those that only root takes.
    pub of_root: usize,
    /// For a request to arrive.
    pub request: Duration,
    /// Without the client taking anything of its answer. Long, for it may
    /// be a pager in front of a user who reads.
    pub stalled: Duration,
    /// The same when all places are taken and another client comes.
    pub stalled_when_full: Duration,
    /// Bytes of one client's answer that are kept while it takes nothing.
    pub kept_of_client: usize,
    /// Of all clients together, those of HTTP with them; a quarter of them
    /// for root alone.
    pub kept: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            clients: 64,
            of_user: 16,
            of_root: 8,
            request: Duration::from_secs(5),
            stalled: Duration::from_secs(600),
            stalled_when_full: Duration::from_secs(5),
            kept_of_client: 32 << 20,
            kept: 64 << 20,
        }
    }
}

/// Serves the clients of all namespaces.
#[derive(Debug)]
pub struct Server {
    shared: Arc<ServerState>,
}

#[derive(Debug)]
struct ServerState {
    patience: Patience,
    started: Instant,
    stopping: AtomicBool,
    /// iproute2's names, as last read.
    names: Mutex<Arc<Names>>,
    clients: Mutex<Vec<Arc<Client>>>,
    /// What clients have yet to take.
    kept: Arc<Budget>,
    /// Whose turn it is to have rows sorted, which takes memory and time:
    /// somebody's, and root's.
    sorting: [Turn; 2],
    /// Where the translation of the host is asked.
    translation: Mutex<Option<Arc<Path>>>,
    /// That nobody can be accepted.
    complaint: Mutex<Complaint>,
    answers: AtomicU64,
    refusals: AtomicU64,
    last_micros: AtomicU64,
    slowest_micros: AtomicU64,
}

/// A client at the other end of a socket.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    /// Whose it is.
    uid: u32,
    /// Since when a write waits for the client, milliseconds after the
    /// server's start, plus one; 0: none waits.
    waits_since: AtomicU64,
    _lease: Lease,
}

impl ServerState {
    /// Where the translation is asked on behalf of a user; else why not.
    fn translation_for(&self, uid: u32) -> query::Translation {
        let at = self.translation.lock();
        let at = at.unwrap_or_else(PoisonError::into_inner).clone();
        sql::translation(at, Source::User(uid).is_own())
    }
}

impl Server {
    /// A server without clients.
    pub fn new(patience: Patience, names: Names) -> Self {
        Self {
            shared: Arc::new(ServerState {
                patience,
                started: Instant::now(),
                stopping: AtomicBool::new(false),
                names: Mutex::new(Arc::new(names)),
                clients: Mutex::default(),
                kept: Budget::new(patience.kept),
                sorting: Default::default(),
                translation: Mutex::default(),
                complaint: Mutex::default(),
                answers: AtomicU64::new(0),
                refusals: AtomicU64::new(0),
                last_micros: AtomicU64::new(0),
                slowest_micros: AtomicU64::new(0),
            }),
        }
    }

    /// Accepts clients that wait at a listener that does not block, and
    /// answers each on a thread of its own. Not more than a few at once:
    /// whoever calls has other things to look at. One that cannot be
    /// accepted is logged, and waits.
    pub fn accept(&self, listener: &UnixListener, answers: &Arc<NamespaceService>) {
        for _ in 0..AT_ONCE {
            match listener.accept() {
                // Whoever connects and goes, in a flood, costs no thread.
                Ok((stream, _)) if has_hung_up(&stream) => {}
                Ok((stream, _)) => self.welcome(stream, answers),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.shared.complain(&error);
                    // Out of descriptors, most likely: it does not pass at once.
                    return thread::sleep(REFUSED);
                }
            }
        }
    }

    fn welcome(&self, stream: UnixStream, answers: &Arc<NamespaceService>) {
        let Some(client) = self.shared.place(stream) else {
            return;
        };
        let shared = Arc::clone(&self.shared);
        let answers = Arc::clone(answers);
        let place = Arc::clone(&client);
        let spawned = thread::Builder::new()
            .name("client".to_owned())
            .spawn(move || {
                if place.uid == 0 {
                    hurry();
                }
                // Whoever talks to strangers has no rights to lose.
                if let Err(error) = privileges::drop_all() {
                    tracing::error!("a client is not answered, rights remain: {error}");
                } else {
                    connection::serve(&shared, &place, &answers);
                }
                shared.leave(&place);
            });
        if let Err(error) = spawned {
            tracing::warn!("no thread for a client: {error}");
            self.shared.leave(&client);
        }
    }

    /// Takes other names of numbers, for questions from now on.
    pub fn rename(&self, names: Names) {
        let mut known = self
            .shared
            .names
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *known = Arc::new(names);
    }

    /// Lets go of the clients: answers under way are cut.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        for client in self.shared.clients().iter() {
            client.hang_up();
        }
    }

    /// The memory for what clients have not taken, for others to share.
    pub fn budget(&self) -> Arc<Budget> {
        Arc::clone(&self.shared.kept)
    }

    /// Where statements of SQL ask a translation from now on; `None`: none.
    pub fn show_nat(&self, control: Option<PathBuf>) {
        let at = &self.shared.translation;
        *at.lock().unwrap_or_else(PoisonError::into_inner) = control.map(Arc::from);
    }

    /// What was answered since the start.
    pub fn answered(&self) -> Answered {
        self.shared.answered()
    }
}

impl ServerState {
    /// Says that a client cannot be accepted, once a minute.
    fn complain(&self, error: &io::Error) {
        let complaint = self.complaint.lock();
        if complaint.unwrap_or_else(PoisonError::into_inner).is_due() {
            tracing::warn!("a client cannot be accepted: {error}");
        }
    }

    fn clients(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self) -> Arc<Names> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&names)
    }

    /// Takes a client in, in the place of one that stalls if need be;
    /// refuses it when no place is left for its user.
    fn place(&self, stream: UnixStream) -> Option<Arc<Client>> {
        let uid = uid_of(&stream);
        let mut clients = self.clients();
        let taken: Vec<Taken> = clients
            .iter()
            .map(|client| Taken {
                uid: client.uid,
                stalls: self.stalls(client, self.patience.stalled_when_full),
            })
            .collect();
        match places::admit(&taken, uid, &self.patience) {
            Admission::Free => {}
            Admission::InPlaceOf(at) => {
                clients.swap_remove(at).hang_up();
                tracing::info!("a client that took nothing gave its place to another");
            }
            Admission::Refused(why) => {
                drop(clients);
                return self.turn_away(stream, &why);
            }
        }
        let Some(lease) = self.kept.lease(Source::User(uid), CLIENT_BYTES) else {
            drop(clients);
            return self.turn_away(
                stream,
                "other clients take all memory that they may; ask again, or `--direct`",
            );
        };
        let client = Arc::new(Client {
            stream,
            uid,
            waits_since: AtomicU64::new(0),
            _lease: lease,
        });
        clients.push(Arc::clone(&client));
        Some(client)
    }

    fn turn_away(&self, stream: UnixStream, why: &str) -> Option<Arc<Client>> {
        self.refusals.fetch_add(1, Ordering::Relaxed);
        refuse(stream, why);
        None
    }

    fn leave(&self, client: &Arc<Client>) {
        self.clients().retain(|other| !Arc::ptr_eq(other, client));
    }

    fn stalls(&self, client: &Client, longer_than: Duration) -> bool {
        match client.waits_since.load(Ordering::Relaxed) {
            0 => false,
            since => {
                let waits = self.millis().saturating_sub(since);
                u128::from(waits) >= longer_than.as_millis()
            }
        }
    }

    /// Milliseconds since the start, plus one.
    fn millis(&self) -> u64 {
        1 + self.started.elapsed().as_millis() as u64
    }

    fn count(&self, took_micros: u64) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.last_micros.store(took_micros, Ordering::Relaxed);
        self.slowest_micros
            .fetch_max(took_micros, Ordering::Relaxed);
    }

    fn answered(&self) -> Answered {
        Answered {
            clients: self.clients().len(),
            answers: self.answers.load(Ordering::Relaxed),
            refusals: self.refusals.load(Ordering::Relaxed),
            last_micros: self.last_micros.load(Ordering::Relaxed),
            slowest_micros: self.slowest_micros.load(Ordering::Relaxed),
        }
    }
}

impl Client {
    fn hang_up(&self) {
        if let Err(error) = self.stream.shutdown(std::net::Shutdown::Both) {
            tracing::debug!("a client was gone before it was let go: {error}");
        }
    }
}

/// Has the thread run as soon as it can, whatever others are at.
fn hurry() {
    if let Err(error) = dataplane::slice::set(SLICE) {
        tracing::debug!("root may wait for others: no slice: {error}");
    }
}

/// Whether the other end is closed, for both directions: who only sends no
/// more still reads.
fn has_hung_up(stream: &UnixStream) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::empty())];
    let polled = poll(&mut fds, Some(&Timespec::default()));
    let [fd] = fds;
    polled.is_ok() && fd.revents().contains(PollFlags::HUP)
}

/// Whose process connected. One that the kernel does not tell is nobody's.
fn uid_of(stream: &UnixStream) -> u32 {
    let peer = rustix::net::sockopt::socket_peercred(stream);
    peer.map_or(u32::MAX, |peer| peer.uid.as_raw())
}

/// Says why, as far as the client's buffer takes it without waiting.
fn refuse(mut stream: UnixStream, message: &str) {
    let said = stream
        .set_nonblocking(true)
        .and_then(|()| protocol::write_frame(&mut stream, protocol::BUSY, message.as_bytes()));
    if let Err(error) = said {
        tracing::debug!("a client was refused and not told: {error}");
    }
}

#[cfg(test)]
mod tests;
