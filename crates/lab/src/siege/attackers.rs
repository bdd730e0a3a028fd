//! Those who attack: threads with the rights of nobody, each of one kind.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use netlink::decode::Operation;
use netlink::encode::{self, Request};
use netlink::message::flag;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sendto, socket_with};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};

use super::besieged::{Besieged, HTTP};
use super::{Force, Siege};
use crate::Netns;
use crate::situation::routes::{self, Family};

/// Users without rights.
pub const USERS: [u32; 4] = [65_534, 65_533, 65_532, 65_531];

/// Questions of HTTP that are long to answer.
const LONG: [&str; 4] = [
    "/v1/routes",
    "/v1/routes?limit=10000",
    "/v1/routes?table=all&format=csv",
    "/v1/changes",
];
/// Those that are asked and not waited for.
const CLOSED: [&str; 3] = [
    "/v1/routes?skip=100000000",
    "/v1/routes?skip=99999&limit=10000",
    "/v1/routes?dev=lo&count",
];

/// GetBulk of v2c: community `public`, `max-repetitions` 2^31-1, of all.
const BULK: &[u8] = &[
    0x30, 0x26, 2, 1, 1, 4, 6, b'p', b'u', b'b', b'l', b'i', b'c', 0xa5, 0x19, 2, 1, 7, 2, 1, 0, 2,
    4, 0x7f, 0xff, 0xff, 0xff, 0x30, 0x0b, 0x30, 0x09, 6, 5, 0x2b, 6, 1, 2, 1, 5, 0,
];

/// What one attack is about.
struct Attack {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    force: Force,
    socket: PathBuf,
}

/// All who attack; they end with the value.
pub struct Attackers {
    stop: Arc<AtomicBool>,
    done: BTreeMap<&'static str, Arc<AtomicU64>>,
    threads: Vec<JoinHandle<()>>,
}

/// An attack.
struct Kind {
    /// What it is chosen by.
    word: &'static str,
    name: &'static str,
    /// Whose it is; none: root's.
    users: &'static [u32],
    does: fn(&Attack),
}

const KINDS: &[Kind] = &[
    Kind {
        word: "closed",
        name: "requests that are closed at once",
        users: &[USERS[0]],
        does: bursts,
    },
    Kind {
        word: "slow",
        name: "slow readers",
        users: &[USERS[1]],
        does: slow_readers,
    },
    Kind {
        word: "quiet",
        name: "quiet clients of the control socket",
        users: &USERS,
        does: quiet,
    },
    Kind {
        word: "connects",
        name: "connects to the control socket",
        users: &[USERS[2]],
        does: connects,
    },
    Kind {
        word: "http",
        name: "connects to HTTP",
        users: &[USERS[3]],
        does: http_connects,
    },
    Kind {
        word: "snmp",
        name: "SNMP requests",
        users: &[USERS[0]],
        does: snmp,
    },
    // The kernel lets nobody else send to another's netlink socket.
    Kind {
        word: "forged",
        name: "forged netlink messages",
        users: &[],
        does: forged,
    },
    Kind {
        word: "churn",
        name: "changes of routes",
        users: &[],
        does: churn,
    },
];

/// The words that attacks are chosen by.
pub fn words() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.word)
}

impl Attackers {
    /// Starts those that are chosen.
    pub fn start(netns: &Netns, besieged: &Besieged, siege: &Siege) -> Result<Self> {
        let mut all = Self {
            stop: Arc::default(),
            done: BTreeMap::new(),
            threads: Vec::new(),
        };
        for kind in KINDS.iter().filter(|kind| siege.has(kind.word)) {
            match kind.users {
                [] => all.begin(kind, None, netns, besieged, siege)?,
                users => users
                    .iter()
                    .try_for_each(|user| all.begin(kind, Some(*user), netns, besieged, siege))?,
            }
        }
        Ok(all)
    }

    fn begin(
        &mut self,
        kind: &'static Kind,
        user: Option<u32>,
        netns: &Netns,
        besieged: &Besieged,
        siege: &Siege,
    ) -> Result<()> {
        let about = Attack {
            stop: Arc::clone(&self.stop),
            done: Arc::clone(self.done.entry(kind.name).or_default()),
            force: siege.force,
            socket: besieged.socket().to_owned(),
        };
        let netns = Netns::open(netns.name())?;
        self.threads.push(thread::spawn(move || {
            let _ = netns.inside(|| {
                if user.is_none_or(|user| become_user(user).is_ok()) {
                    (kind.does)(&about);
                }
            });
        }));
        Ok(())
    }

    /// Ends all; how often each did what it does.
    pub fn stop(mut self) -> Vec<(&'static str, u64)> {
        self.end();
        let done = self.done.iter();
        done.map(|(name, done)| (*name, done.load(Ordering::Relaxed)))
            .collect()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Attackers {
    fn drop(&mut self) {
        self.end();
    }
}

/// Gives this thread another user, and no rights.
pub fn become_user(user: u32) -> Result<()> {
    set_thread_groups(&[]).context("leaving groups")?;
    set_thread_gid(Gid::from_raw(user)).context("another group")?;
    set_thread_uid(Uid::from_raw(user)).context("another user")
}

impl Attack {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn did(&self, times: usize) {
        self.done.fetch_add(times as u64, Ordering::Relaxed);
    }

    /// Does something so many times a second, in twenty goes.
    fn paced(&self, per_sec: usize, mut once: impl FnMut()) {
        let pause = Duration::from_millis(50);
        while self.goes_on() {
            let next = Instant::now() + pause;
            let times = per_sec.div_ceil(20);
            (0..times).for_each(|_| once());
            self.did(times);
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }

    /// Keeps so many clients that stay: a piece of what each is sent is
    /// looked for, and those that were let go come again.
    fn hold<C>(
        &self,
        most: usize,
        come: impl Fn(usize) -> Option<C>,
        is_there: impl Fn(&C) -> bool,
    ) {
        let mut clients = Vec::new();
        let mut number = 0;
        while self.goes_on() {
            clients.retain(&is_there);
            while clients.len() < most && self.goes_on() {
                number += 1;
                match come(number) {
                    Some(client) => clients.push(client),
                    None => break,
                }
                self.did(1);
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

fn connect() -> Option<TcpStream> {
    TcpStream::connect_timeout(&HTTP, Duration::from_secs(1)).ok()
}

fn asks(path: &str) -> Option<TcpStream> {
    let mut stream = connect()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    Some(stream)
}

fn bursts(attack: &Attack) {
    while attack.goes_on() {
        let paths = CLOSED.iter().cycle().take(attack.force.burst);
        let burst: Vec<_> = paths.filter_map(|path| asks(path)).collect();
        attack.did(burst.len());
        drop(burst);
        thread::sleep(Duration::from_millis(100));
    }
}

fn slow_readers(attack: &Attack) {
    let come = |number: usize| asks(LONG[number % LONG.len()]);
    attack.hold(attack.force.slow, come, is_open);
}

/// Whether the other end has not hung up, found without reading.
fn is_open(stream: &TcpStream) -> bool {
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut fds = [PollFd::new(stream, PollFlags::RDHUP)];
    matches!(poll(&mut fds, Some(&at_once)), Ok(0))
}

fn quiet(attack: &Attack) {
    let asked = [
        "{\"v\":2,\"ask\":{\"watch\":{\"object\":\"route\"}}}\n",
        "{\"v\":2,\"ask\":{\"question\":{\"object\":\"route\"}}}\n",
        "{\"v\":2,\"ask\":{\"question\":{\"object\":\"route\",\"output\":{\"sort\":\"dst\"}}}}\n",
        "{\"v\":2,",
    ];
    let come = |number: usize| {
        let mut stream = UnixStream::connect(&attack.socket).ok()?;
        let asked = asked[number % asked.len()];
        stream.write_all(asked.as_bytes()).ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(stream)
    };
    // An octet now and then: what it is sent is all but not taken.
    let is_there = |mut stream: &UnixStream| !matches!(stream.read(&mut [0]), Ok(0));
    attack.hold(attack.force.quiet, come, |stream| is_there(stream));
}

fn connects(attack: &Attack) {
    attack.paced(attack.force.connects, || {
        let _ = UnixStream::connect(&attack.socket);
    });
}

fn http_connects(attack: &Attack) {
    attack.paced(attack.force.connects, || drop(connect()));
}

fn snmp(attack: &Attack) {
    // 127.0.0.0/8 is all ours.
    let sockets: Vec<UdpSocket> = (1..=50)
        .filter_map(|source| UdpSocket::bind((Ipv4Addr::new(127, 1, 0, source), 0)).ok())
        .collect();
    let mut sockets = sockets.iter().cycle();
    attack.paced(attack.force.snmp, || {
        if let Some(socket) = sockets.next() {
            let _ = socket.send_to(BULK, (Ipv4Addr::LOCALHOST, 1161));
        }
    });
}

/// Tells every netlink socket of the namespace of routes that there are
/// not, as another process may that has the right to.
fn forged(attack: &Attack) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let kind = SocketType::RAW;
    let Ok(socket) = socket_with(AddressFamily::NETLINK, kind, flags, None) else {
        return;
    };
    // The links of the situation are numbered from 2 on.
    let rows = routes::rows(Family::V4, 500, &[2, 4]).unwrap_or_default();
    let mut rows = rows.iter().cycle();
    let mut message = Vec::new();
    let mut ports = Vec::new();
    let mut looked = Instant::now();
    attack.paced(attack.force.forged, || {
        if ports.is_empty() || looked.elapsed() > Duration::from_secs(1) {
            ports = netlink_ports();
            looked = Instant::now();
        }
        let Some(row) = rows.next() else { return };
        let request = Request {
            operation: Operation::New,
            flags: flag::CREATE,
            sequence: 0,
            now_millis: 0,
        };
        message.clear();
        if encode::route(&mut message, &request, row).is_ok() {
            for port in &ports {
                let to = SocketAddrNetlink::new(*port, 0);
                let _ = sendto(&socket, &message, SendFlags::DONTWAIT, &to);
            }
        }
    });
}

/// The ports of all rtnetlink sockets of this thread's namespace.
fn netlink_ports() -> Vec<u32> {
    let text = fs::read_to_string("/proc/thread-self/net/netlink").unwrap_or_default();
    let sockets = text.lines().map(|line| line.split_whitespace());
    sockets
        .filter_map(|mut words| {
            let (_, protocol, port) = (words.next()?, words.next()?, words.next()?);
            (protocol == "0").then(|| port.parse().ok())?
        })
        .filter(|port| *port != 0)
        .collect()
}

/// Routes that come and go.
fn churn(attack: &Attack) {
    let mut ip = std::process::Command::new("ip");
    ip.args(["-force", "-batch", "-"]);
    ip.stdin(std::process::Stdio::piped());
    let Ok(mut ip) = super::besieged::quiet(ip) else {
        return;
    };
    let Some(mut stdin) = ip.process().stdin.take() else {
        return;
    };
    let mut number = 0_u32;
    attack.paced(attack.force.changes, || {
        let word = if (number / 1_000).is_multiple_of(2) {
            "replace"
        } else {
            "del"
        };
        let at = number % 1_000;
        let line = format!(
            "route {word} 203.0.{}.{}/32 dev up0 table 77 proto static\n",
            at / 256,
            at % 256
        );
        number += 1;
        let _ = stdin.write_all(line.as_bytes());
    });
    drop(stdin);
    let _ = ip.wait(super::PATIENCE);
}
