//! The socket, and a thread for each client.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueHint};
use privileges::groups;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Gid;
use tracing::warn;
use translation::answer::Line;
use translation::request::Request;
use translation::within::Within;

use super::answers::{self, Waits};
use super::pieces::{Asking, Jobs, pair};
use crate::control_socket::{self, Refusals};
use crate::nat::mib::{Snmp, Subagent};
use crate::peers::{Peer, Places};

/// Bytes of a request at most.
const REQUEST_BYTES: u64 = 64 << 10;
/// How long a request may take to come, all of it.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a client may take nothing of its answer.
const STALLED: Duration = Duration::from_secs(60);

const REFUSALS: Refusals = Refusals {
    other: "there is something else",
    answered: "another translation answers there",
};

/// Where a translation is asked, and by whom.
#[derive(Debug, Clone, Default, Args)]
pub struct Control {
    /// A socket for `nat show`, `nat clear`, `nat reload` and `nat who`, and
    /// for `up`, which looks at /run/fingerpost-nat.sock unless told otherwise
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, requires = "tun")]
    pub control: Option<PathBuf>,
    /// A group that may ask there beside root, and change nothing: that of
    /// the daemon, say
    #[arg(long, value_name = "GROUP", requires = "control")]
    pub control_group: Option<String>,
}

/// Those who ask a translation, and where their questions come in.
#[derive(Default)]
pub struct Askers {
    /// `None`: nobody may ask.
    pub jobs: Option<Jobs>,
    _door: Option<Door>,
    _subagent: Option<Subagent>,
}

impl Askers {
    /// Opens the socket and looks for the master of SNMP, where they are
    /// wanted; their threads ask from then on.
    pub fn open(control: &Control, snmp: &Snmp) -> anyhow::Result<Self> {
        if control.control.is_none() && snmp.agentx.is_none() {
            return Ok(Self::default());
        }
        let (asking, jobs) = pair()?;
        let start = |master: PathBuf| Subagent::start(master, snmp, asking.again()?);
        let subagent = snmp.agentx.clone().map(start).transpose()?;
        let group = control.control_group.as_deref();
        let path = control.control.as_deref();
        let door = path.map(|path| open(path, group, asking)).transpose()?;
        Ok(Self {
            jobs: Some(jobs),
            _door: door,
            _subagent: subagent,
        })
    }
}

/// The socket's file, which goes with this.
#[derive(Debug)]
pub struct Door {
    path: PathBuf,
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// What the socket's thread needs.
struct Answering {
    asking: Asking,
    has_group: bool,
    /// Tells this life of the translation from others.
    life: u64,
}

fn open(path: &Path, group: Option<&str>, asking: Asking) -> anyhow::Result<Door> {
    let named = || format!("opening {}", path.display());
    let listener = control_socket::bind(path, REFUSALS).with_context(named)?;
    let door = Door {
        path: path.to_owned(),
    };
    if let Some(group) = group {
        let group = groups::number(group).with_context(named)?;
        control_socket::open_to(path, Gid::from_raw(group)).with_context(named)?;
    }
    let answering = Answering {
        asking,
        has_group: group.is_some(),
        life: RandomState::new().hash_one(path),
    };
    thread::Builder::new()
        .name("nat-control".to_owned())
        .spawn(move || accept(&listener, &answering))
        .context("starting the control socket's thread")?;
    Ok(door)
}

fn accept(listener: &UnixListener, answering: &Answering) {
    // Clients' threads have no more than this one.
    if let Err(error) = privileges::give_up() {
        warn!("the control socket: giving up privileges: {error}");
    }
    let places = Places::default();
    for client in listener.incoming() {
        let (Ok(client), Ok(asking)) = (client, answering.asking.again()) else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let admitted =
            Peer::of(&client, answering.has_group).and_then(|peer| Ok((peer, places.take(peer)?)));
        let (peer, taken) = match admitted {
            Ok(admitted) => admitted,
            Err(refusal) => {
                let _ = client.set_nonblocking(true);
                refuse(&client, &refusal);
                continue;
            }
        };
        let life = answering.life;
        let spawned = thread::Builder::new()
            .name("nat-client".to_owned())
            .spawn(move || {
                let _taken = taken;
                serve(&client, peer, asking, life);
            });
        if let Err(error) = spawned {
            warn!("a client's thread: {error}");
        }
    }
}

fn refuse(mut client: &UnixStream, why: &anyhow::Error) {
    let line = Line::Refused(format!("{why:#}")).json();
    // Who has gone needs no answer.
    let _ = writeln!(client, "{line}");
}

impl Waits for UnixStream {
    /// One that has closed its side alone still takes an answer.
    fn has_gone(&self) -> bool {
        let mut asked = [PollFd::new(self, PollFlags::empty())];
        let polled = poll(&mut asked, Some(&Timespec::default()));
        polled.is_ok()
            && asked
                .iter()
                .any(|one| one.revents().contains(PollFlags::HUP))
    }
}

/// Answers one request. A client that goes away ends it.
fn serve(client: &UnixStream, peer: Peer, mut asking: Asking, life: u64) {
    let answered = read(client).and_then(|request| {
        peer.check(&request)?;
        let mut out = BufWriter::new(client);
        let next = answers::answer(request, &mut asking, life, client, &mut out)?;
        // So that an answer that was cut off is told from a whole one.
        writeln!(out, "{}", Line::End(next).json())?;
        out.flush().context("writing the answer")
    });
    if let Err(error) = answered {
        refuse(client, &error);
    }
}

fn read(client: &UnixStream) -> anyhow::Result<Request> {
    client.set_write_timeout(Some(STALLED))?;
    let mut line = Vec::new();
    let within = Within::new(client, Some(PATIENCE));
    let mut bounded = BufReader::new(within.take(REQUEST_BYTES));
    let read = bounded.read_until(b'\n', &mut line);
    read.context("reading the request")?;
    if line.last() != Some(&b'\n') {
        bail!("the request has no end, or more than {REQUEST_BYTES} bytes");
    }
    serde_json::from_slice(&line).context("reading the request")
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;

    use super::*;

    #[test]
    fn who_has_closed_its_side_waits_and_who_is_gone_does_not() {
        let (client, other) = UnixStream::pair().unwrap();
        assert!(!client.has_gone());
        other.shutdown(Shutdown::Write).unwrap();
        assert!(!client.has_gone());
        drop(other);
        assert!(client.has_gone());
    }
}
