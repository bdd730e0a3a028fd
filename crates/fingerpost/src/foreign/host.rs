//! Names of hosts and back: all questions at once, in a bounded time.
//!
//! Asked by the C library (`getnameinfo`, `getaddrinfo`), so that the
//! host's own rules hold: /etc/nsswitch.conf, /etc/hosts, DNS, mDNS. It can
//! only be asked one at a time and may take long over it; so some threads
//! ask, and nobody waits longer than agreed. What answers is a stranger's
//! (DNS), and what reads it the C library's: each of these threads gives up
//! every capability first. `dns-lookup` is the wrapper of
//! `getnameinfo` that needs no `unsafe` here; a resolver of our own would
//! know DNS only.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// At most so many questions at a time.
const THREADS: usize = 16;

/// Asks for each key, all together in `patience` at most. What was not
/// answered by then, or has no answer, is missing. Threads that still wait
/// for an answer are left to themselves; they ask no further question.
pub fn ask_all<K, V>(keys: Vec<K>, patience: Duration, ask: fn(&K) -> Option<V>) -> HashMap<K, V>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    V: Send + 'static,
{
    let until = Instant::now() + patience;
    let mut answers = HashMap::new();
    let keys: Arc<[K]> = keys.into();
    let next = Arc::new(AtomicUsize::new(0));
    let (answered, to_keep) = channel();
    for _ in 0..THREADS.min(keys.len()) {
        let (keys, next, answered) = (Arc::clone(&keys), Arc::clone(&next), answered.clone());
        let thread = std::thread::Builder::new().spawn(move || {
            // With rights that it need not have, nobody is asked.
            if privileges::drop_all().is_err() {
                return;
            }
            while Instant::now() < until {
                let Some(key) = keys.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    return;
                };
                if answered.send((key.clone(), ask(key))).is_err() {
                    return;
                }
            }
        });
        // The host has no more of them to give: fewer will do.
        if thread.is_err() {
            break;
        }
    }
    drop(answered);
    while let Ok((key, answer)) =
        to_keep.recv_timeout(until.saturating_duration_since(Instant::now()))
    {
        if let Some(answer) = answer {
            answers.insert(key, answer);
        }
    }
    answers
}

/// The name of an address; `None` if it has none.
pub fn name_of<A: Copy + Into<IpAddr>>(address: &A) -> Option<Box<str>> {
    let name = dns_lookup::lookup_addr(&(*address).into()).ok()?;
    // Without a name, the C library gives the number back.
    (name.parse::<IpAddr>().is_err()).then(|| name.into())
}

/// The first IPv4 address of a host given by name or number.
pub fn address_of(host: &str) -> Option<Ipv4Addr> {
    if let Ok(address) = host.parse() {
        return Some(address);
    }
    let mut addresses = (host, 0).to_socket_addrs().ok()?;
    addresses.find_map(|address| match address {
        SocketAddr::V4(v4) => Some(*v4.ip()),
        SocketAddr::V6(_) => None,
    })
}

/// The first IPv6 address of a host given by name or number.
pub fn v6_address_of(host: &str) -> Option<Ipv6Addr> {
    if let Ok(address) = host.parse() {
        return Some(address);
    }
    let mut addresses = (host, 0).to_socket_addrs().ok()?;
    addresses.find_map(|address| match address {
        SocketAddr::V6(v6) => Some(*v6.ip()),
        SocketAddr::V4(_) => None,
    })
}

/// The IPv4 address of a host, in `patience` at most, with an error that says what is wrong.
pub fn address(host: &str, patience: Duration) -> Result<Ipv4Addr> {
    if let Ok(address) = host.parse() {
        return Ok(address);
    }
    ask_all(vec![Box::from(host)], patience, |host| address_of(host))
        .remove(host)
        .with_context(|| format!("{host}: no host of this name has an IPv4 address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_asked_and_those_without_an_answer_are_missing() {
        let even = |number: &u32| number.is_multiple_of(2).then_some(number * 10);
        let answers = ask_all((0..1000).collect(), Duration::from_secs(60), even);
        assert_eq!(answers.len(), 500);
        assert_eq!(answers.get(&4), Some(&40));
    }

    #[test]
    fn nobody_waits_longer_than_agreed() {
        let begun = Instant::now();
        let stuck = |_: &u32| -> Option<u32> {
            std::thread::sleep(Duration::from_secs(600));
            None
        };
        let answers = ask_all((0..100).collect(), Duration::from_millis(50), stuck);
        assert!(answers.is_empty());
        assert!(begun.elapsed() < Duration::from_secs(300));
    }

    #[test]
    fn who_asks_has_no_capability_and_who_waits_keeps_its_own() {
        let effective = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("CapEff:"));
            line.unwrap().to_owned()
        };
        let before = effective();
        let asked = |_: &u32| {
            let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
            let of = |name: &str| {
                let line = status.lines().find(|line| line.starts_with(name))?;
                u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok()
            };
            Some([of("CapEff:")?, of("CapPrm:")?, of("CapInh:")?])
        };
        let answers = ask_all((0..40).collect(), Duration::from_secs(60), asked);
        assert_eq!(answers.len(), 40);
        assert!(answers.values().all(|sets| *sets == [0; 3]), "{answers:?}");
        assert_eq!(effective(), before);
    }

    #[test]
    fn numbers_are_hosts() {
        let address = address("10.0.5.80", Duration::ZERO).unwrap();
        assert_eq!(address, Ipv4Addr::new(10, 0, 5, 80));
    }
}
