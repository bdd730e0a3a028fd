//! The control socket: questions to what forwards, one line of JSON each, and
//! one as the answer. Each client has a thread, without any rights, and time
//! for its question and its answer; root, the user who runs it and a group are
//! answered.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use dataplane::xdp::Forwarding;
use dataplane::xdp::standing::Standing;
use rustix::process::Gid;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use translation::within::Within;

use super::tell;
use crate::control_socket::{self, Refusals};
use crate::peers::{Peer, Places};

/// Bytes of a question at most, and how long all of it may take to come.
const QUESTION_BYTES: u64 = 4_096;
const PATIENCE: Duration = Duration::from_millis(500);
/// How long an answer may take to be taken.
const TAKEN: Duration = Duration::from_secs(5);

const REFUSALS: Refusals = Refusals {
    other: "something else than a socket is there",
    answered: "another `fingerpost router` answers there: give it another --control",
};

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asked {
    /// How ports and obstacles stand.
    Status,
    /// Packets by port.
    Counters,
    /// Packets by port and reason.
    Reasons,
    /// All of it at once.
    Report,
}

/// A question.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub ask: Asked,
}

/// What is answered from.
#[derive(Debug, Clone)]
pub struct Answers {
    pub forwarding: Arc<Forwarding>,
    pub standing: Arc<Mutex<Standing>>,
    /// When it began.
    pub began: Instant,
    /// Whether whoever can open the socket's file is answered: it is for a
    /// group. Else root and the own user are.
    pub is_for_group: bool,
}

/// The socket, before anybody is answered; its file goes with it.
#[derive(Debug)]
pub struct Door {
    path: PathBuf,
    listener: UnixListener,
}

impl Door {
    /// Opens it. One that somebody answers at stays his; one that was left
    /// behind is replaced.
    /// The group may ask as well.
    pub fn open(path: &Path, group: Option<Gid>) -> Result<Self> {
        let opening = || format!("opening {}", path.display());
        let listener = control_socket::bind(path, REFUSALS).with_context(opening)?;
        let door = Self {
            path: path.to_owned(),
            listener,
        };
        if let Some(group) = group {
            control_socket::open_to(path, group).with_context(opening)?;
        }
        Ok(door)
    }

    /// Answers from now on, on a thread of its own.
    pub fn serve(&self, answers: Answers) -> Result<()> {
        let listener = self.listener.try_clone().context("the control socket")?;
        thread::Builder::new()
            .name("router-control".to_owned())
            .spawn(move || accept(&listener, &answers))
            .context("starting the control socket's thread")?;
        Ok(())
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn accept(listener: &UnixListener, answers: &Answers) {
    if let Err(error) = privileges::drop_all() {
        tell(format_args!(
            "the control socket: giving up rights: {error}"
        ));
        return;
    }
    let places = Places::default();
    for client in listener.incoming() {
        let Ok(client) = client else {
            // Out of descriptors, say: not a reason to spin.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let peer = Peer::of(&client, answers.is_for_group);
        let taken = match peer.and_then(|peer| places.take(peer)) {
            Ok(taken) => taken,
            Err(refusal) => {
                // This thread waits for nobody.
                let _ = client.set_nonblocking(true);
                let _ = (&client).write_all(&line_of(&Err(refusal)));
                continue;
            }
        };
        let answers = answers.clone();
        let spawned = thread::Builder::new()
            .name("router-client".to_owned())
            .spawn(move || {
                let _taken = taken;
                let line = line_of(&answer(&client, &answers));
                // Who has gone needs no answer.
                let _ = Within::new(&client, Some(TAKEN)).write_all(&line);
            });
        if let Err(error) = spawned {
            tell(format_args!("a client's thread: {error}"));
        }
    }
}

/// An answer as a line.
fn line_of(answer: &Result<Value>) -> Vec<u8> {
    let line = match answer {
        Ok(answer) => answer.to_string(),
        Err(error) => json!({"error": format!("{error:#}")}).to_string(),
    };
    (line + "\n").into_bytes()
}

fn answer(client: &UnixStream, answers: &Answers) -> Result<Value> {
    let mut line = Vec::new();
    let within = Within::new(client, Some(PATIENCE));
    let mut bounded = BufReader::new(within.take(QUESTION_BYTES));
    bounded
        .read_until(b'\n', &mut line)
        .context("reading the question")?;
    let question: Question = serde_json::from_slice(&line).context("reading the question")?;
    let standing = answers.standing.lock();
    let standing = standing.unwrap_or_else(PoisonError::into_inner).clone();
    let forwarding = &answers.forwarding;
    Ok(match question.ask {
        Asked::Status => serde_json::to_value(standing)?,
        Asked::Counters => serde_json::to_value(standing.counters(forwarding)?)?,
        Asked::Reasons => serde_json::to_value(standing.reasons(forwarding)?)?,
        Asked::Report => {
            let millis = answers.began.elapsed().as_millis() as u64;
            serde_json::to_value(standing.report(forwarding, millis)?)?
        }
    })
}
