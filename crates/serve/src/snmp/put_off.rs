//! Requests that are put off until a sample comes, so that nobody else waits
//! for it. Each has an end, behind which it is answered from what there is.
//! For [`super::listener`] alone.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use table::Fresh;

use super::fair::{Datagram, source};
use super::socket::Way;

/// Requests that are put off at most; of a source at most. Further ones are
/// answered from what there is.
const MOST: usize = 512;
const MOST_OF_SOURCE: usize = 32;

/// Requests that are put off.
#[derive(Debug)]
pub struct PutOff {
    bell: Arc<Bell>,
    waker: Waker,
    waiting: Vec<Request>,
    /// To be asked again now.
    ready: VecDeque<Request>,
}

/// A request that is put off.
#[derive(Debug)]
pub struct Request {
    /// As it came.
    pub datagram: Datagram,
    /// It is put off no longer than this.
    pub until: Instant,
    /// What it waits for; while this is held the bell is rung for it.
    _waits: Vec<Fresh>,
}

/// Rung by whoever takes a sample, from any thread.
#[derive(Debug)]
struct Bell {
    event: OwnedFd,
    is_rung: AtomicBool,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.is_rung.store(true, Ordering::Release);
        // A counter that is full wakes as well.
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }
}

impl PutOff {
    /// None is put off.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let bell = Arc::new(Bell {
            event,
            is_rung: AtomicBool::new(false),
        });
        Ok(Self {
            waker: Waker::from(Arc::clone(&bell)),
            bell,
            waiting: Vec::new(),
            ready: VecDeque::new(),
        })
    }

    /// Rings when it is time to look again.
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Whether none is put off.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.ready.is_empty()
    }

    /// Whether there is room for one more of whoever asks.
    pub fn has_room_for(&self, way: Way) -> bool {
        let of_source = |one: &&Request| source(one.datagram.way.from) == source(way.from);
        self.waiting.len() < MOST && self.waiting.iter().filter(of_source).count() < MOST_OF_SOURCE
    }

    /// Puts a request off.
    pub fn add(&mut self, octets: &[u8], way: Way, waits: Vec<Fresh>, until: Instant) {
        self.waiting.push(Request {
            datagram: Datagram {
                octets: octets.into(),
                way,
            },
            until,
            _waits: waits,
        });
    }

    /// Waits until one may be answered, something else is there to be read,
    /// or the patience is over.
    pub fn wait(&self, socket: &impl AsFd, patience: Duration) -> io::Result<()> {
        if !self.ready.is_empty() || self.bell.is_rung.load(Ordering::Acquire) {
            return Ok(());
        }
        let now = Instant::now();
        let ends = self.waiting.iter().map(|one| one.until);
        let next = ends.map(|until| until.saturating_duration_since(now)).min();
        let patience = next.map_or(patience, |next| next.min(patience));
        let timeout = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: i64::from(patience.subsec_nanos()),
        };
        let mut fds = [
            PollFd::new(socket, PollFlags::IN),
            PollFd::new(&self.bell.event, PollFlags::IN),
        ];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The next that is to be asked again: all, when the bell was rung, else
    /// those whose time is over.
    pub fn take(&mut self) -> Option<Request> {
        if self.ready.is_empty() {
            self.look();
        }
        self.ready.pop_front()
    }

    fn look(&mut self) {
        if self.bell.is_rung.swap(false, Ordering::AcqRel) {
            let mut count = [0; 8];
            // Nothing in it: it was read before.
            let _ = rustix::io::read(&self.bell.event, &mut count);
            self.ready.extend(self.waiting.drain(..));
            return;
        }
        let now = Instant::now();
        let over = self.waiting.extract_if(.., |one| one.until <= now);
        self.ready.extend(over);
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn way(text: &str) -> Way {
        Way::of(text.parse().unwrap())
    }

    #[test]
    fn who_is_put_off_comes_back_with_the_bell_or_at_the_end() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut put_off = PutOff::new().unwrap();
        let now = Instant::now();
        put_off.add(b"later", way("192.0.2.1:1"), Vec::new(), now + LONG);
        assert!(put_off.take().is_none());
        let waker = put_off.waker().clone();
        let ringing = std::thread::spawn(move || waker.wake());
        put_off.wait(&socket, LONG).unwrap();
        let back = put_off.take().unwrap();
        assert_eq!(
            (&*back.datagram.octets, back.until),
            (&b"later"[..], now + LONG)
        );
        assert!(put_off.is_empty());
        ringing.join().unwrap();
        put_off.add(b"over", way("192.0.2.1:1"), Vec::new(), now);
        put_off.add(b"later", way("192.0.2.1:1"), Vec::new(), now + LONG);
        put_off.wait(&socket, LONG).unwrap();
        assert_eq!(&*put_off.take().unwrap().datagram.octets, b"over");
        assert!(put_off.take().is_none() && !put_off.is_empty());
    }

    #[test]
    fn a_source_has_its_share_and_all_have_a_bound() {
        let mut put_off = PutOff::new().unwrap();
        let until = Instant::now() + LONG;
        let flood = way("192.0.2.1:1");
        let mut put = |from: Way| {
            let has_room = put_off.has_room_for(from);
            if has_room {
                put_off.add(b"", from, Vec::new(), until);
            }
            has_room
        };
        assert_eq!((0..1_000).filter(|_| put(flood)).count(), MOST_OF_SOURCE);
        let others = (1..=250).flat_map(|host| (0..10).map(move |_| host));
        let others = others.filter(|host| put(way(&format!("198.51.100.{host}:1"))));
        assert_eq!(others.count(), MOST - MOST_OF_SOURCE);
        put_off.waker().wake_by_ref();
        assert!(put_off.take().is_some());
        assert!(put_off.has_room_for(flood));
    }
}
