//! What route(8) changes: `add`, `del`, and `flush`, which it has never had.
//!
//! Words are read whole before anything is done ([`inet`], [`inet6`]); the
//! route goes to the kernel as one request, with the caller's own rights.

mod inet;
mod inet6;

use anyhow::Result;
use linux::Namespace;
use netlink::decode::Operation;

use crate::foreign::failed::Failed;
use crate::foreign::kernel::Kernel;

/// The status of words that are wrong.
const WRONG_WORDS: u8 = 3;
/// The status of a host that has no address.
const NO_HOST: u8 = 6;
/// The status of what the kernel refused.
const REFUSED: u8 = 7;

/// What may follow the verb.
pub const USAGE: &str = "\
usage: route add [-net|-host] TARGET[/LEN] [netmask MASK] [gw GATEWAY] [metric N]
                 [mss BYTES] [window BYTES] [irtt MILLISECONDS] [reject]
                 [mod] [dyn] [reinstate] [[dev] LINK]
       route del [-net|-host] TARGET[/LEN] [netmask MASK] [gw GATEWAY] [metric N] [[dev] LINK]
       route -6 add|del TARGET[/LEN] [gw GATEWAY] [metric N] [[dev] LINK]
flush is no change that route makes: `fingerpost ip route flush` does it";

/// A route that is to be made or deleted.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// Of IPv4.
    Inet(inet::Wanted),
    /// Of IPv6.
    Inet6(inet6::Wanted),
}

/// Reads the words from the verb on. `is_cache`: it was to be the cache.
pub fn read(words: &[String], is_v6: bool, is_cache: bool) -> Result<Change, Failed> {
    let Some((verb, words)) = words.split_first() else {
        return Err(usage());
    };
    let operation = match verb.as_str() {
        "add" => Operation::New,
        "del" | "delete" => Operation::Delete,
        "flush" => {
            let family = if is_v6 { "inet6" } else { "inet" };
            let text = format!("Flushing `{family}' routing table not supported\n{USAGE}");
            return Err(Failed::new(WRONG_WORDS, text));
        }
        _ => return Err(usage()),
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match (is_v6, is_cache) {
        (true, _) => Ok(Change::Inet6(inet6::read(operation, &words)?)),
        (false, true) => {
            let text = format!("Modifying `inet' routing cache not supported\n{USAGE}");
            Err(Failed::new(WRONG_WORDS, text))
        }
        (false, false) => Ok(Change::Inet(inet::read(operation, &words)?)),
    }
}

/// Makes the change.
pub fn run(change: &Change, namespace: &Namespace) -> Result<Result<(), Failed>> {
    let mut kernel = Kernel::open(namespace)?;
    let (operation, route) = match change {
        Change::Inet(wanted) => (wanted.operation, wanted.route(&kernel)?),
        Change::Inet6(wanted) => (wanted.operation, wanted.route(&kernel)?),
    };
    let route = match route {
        Ok(route) => route,
        Err(failed) => return Ok(Err(failed)),
    };
    let answered = kernel.route(operation, route)?;
    Ok(answered.map_err(|why| refused(operation, &why)))
}

fn usage() -> Failed {
    Failed::new(WRONG_WORDS, USAGE)
}

fn wrong(why: &str) -> Failed {
    Failed::new(WRONG_WORDS, format!("route: {why}\n{USAGE}"))
}

/// What the kernel says to a request, or would say to net-tools'.
fn refused(operation: Operation, why: &str) -> Failed {
    let call = match operation {
        Operation::New => "SIOCADDRT",
        Operation::Delete => "SIOCDELRT",
    };
    Failed::new(REFUSED, format!("{call}: {why}"))
}

/// A metric: digits to begin with.
fn metric(word: Option<&str>) -> Result<i64, Failed> {
    match word {
        Some(word) if word.starts_with(|one: char| one.is_ascii_digit()) => {
            Ok(crate::foreign::inet::leading_number(word))
        }
        _ => Err(usage()),
    }
}
