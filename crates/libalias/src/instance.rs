//! An instance: an engine, and what libalias keeps beside it. Called by the
//! C functions, each of which finds its instance here.

use std::collections::BTreeMap;
use std::env;
use std::ffi::c_uint;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

use nat::rules::{Handle as Rule, Redirect};
use nat::{Behaviour, Config, Dependence, Hairpin, Limits, Mode, Nat, PortChoice};

use crate::clock::Clock;
use crate::fragments::Fragments;
use crate::modules;
use crate::registry::{Guard, Handle, Registry};
use crate::types::{
    AliasLink, DENY_INCOMING, LibAlias, MAX_LINKS, PROXY_ONLY, RESET_ON_ADDR_CHANGE, REVERSE,
    SAME_PORTS, UDP_EIM, UNREGISTERED_CGN, UNREGISTERED_ONLY, USE_SOCKETS,
};

/// The modes of a new instance.
const FIRST_MODES: c_uint = SAME_PORTS | USE_SOCKETS | RESET_ON_ADDR_CHANGE;

static INSTANCES: Registry<Instance> = Registry::new();

/// What C gets as a `struct alias_link *`: a number of no other instance,
/// and recognisable as no address.
static NEXT_LINK: AtomicUsize = AtomicUsize::new(1);
const LINK_TAG: usize = 0b0110;
const LINK_TAG_BITS: u32 = 4;

/// Where new connections from outside go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// To the address in the packet.
    Addressed,
    /// To the alias address, whatever it is.
    Alias,
    /// To a host.
    Host(Ipv4Addr),
}

/// An engine, and what libalias keeps beside it.
pub struct Instance {
    /// The engine.
    pub nat: Nat,
    /// Fragments kept for the caller.
    pub fragments: Fragments,
    /// Redirects by what C calls them.
    pub links: Links,
    /// All mode bits, those without effect too.
    modes: c_uint,
    /// Where Skinny's call managers are; 0: they are not helped.
    skinny_port: u16,
    target: Target,
    clock: Clock,
    /// How many links had been made when this was asked last.
    links_seen: u64,
}

impl Instance {
    /// A new one; `None` when there is no address space for it.
    pub fn new(max_links: usize) -> Option<Self> {
        let max_links = match max_links {
            0 => usual_links(env::var(LINKS_VARIABLE).ok().as_deref()),
            wanted => wanted.min(Limits::MOST_FLOWS),
        };
        let mut config = Config::new(&[]);
        config.hairpin = Hairpin::Caller;
        config.limits.max_flows = max_links;
        config.limits.initial_flows = 0;
        // What comes before its first fragment, the caller keeps.
        config.limits.fragments.held_bytes = 0;
        // Random bits of the system, by way of the standard library.
        config.seed = RandomState::new().hash_one(0);
        config.helpers = modules::helped(0);
        let mut instance = Self {
            nat: Nat::new(config).ok()?,
            fragments: Fragments::default(),
            links: Links::default(),
            modes: 0,
            skinny_port: 0,
            target: Target::Addressed,
            clock: Clock::new(),
            links_seen: 0,
        };
        instance.set_modes(FIRST_MODES, c_uint::MAX);
        Some(instance)
    }

    /// What time it is for this instance.
    #[inline]
    pub fn now(&mut self) -> u64 {
        self.clock.now()
    }

    /// Sets the time, or goes back to the clock.
    pub fn set_time(&mut self, millis: u64) {
        self.clock.set(millis);
    }

    /// Sets the modes of `mask` to those of `flags`; gives all modes.
    pub fn set_modes(&mut self, flags: c_uint, mask: c_uint) -> c_uint {
        self.modes = flags & mask | self.modes & !mask;
        let is_set = |bit| self.modes & bit != 0;
        let deny_incoming = is_set(DENY_INCOMING);
        self.nat.set_mode(Mode {
            deny_incoming,
            unregistered_only: is_set(UNREGISTERED_ONLY),
            carrier_grade: is_set(UNREGISTERED_CGN),
            reset_on_address_change: is_set(RESET_ON_ADDR_CHANGE),
            reverse: is_set(REVERSE),
            proxy_only: is_set(PROXY_ONLY),
        });
        self.nat.set_port_choice(if is_set(SAME_PORTS) {
            PortChoice::Same
        } else {
            PortChoice::Random
        });
        // With one alias port for all remotes, those that were not sent to
        // get in unless they are denied (RFC 4787 §5).
        self.nat.set_udp(match (is_set(UDP_EIM), deny_incoming) {
            (false, _) => Behaviour::SYMMETRIC,
            (true, false) => Behaviour::FULL_CONE,
            (true, true) => Behaviour {
                mapping: Dependence::Endpoint,
                filtering: Dependence::AddressAndPort,
            },
        });
        self.modes
    }

    /// Sets where Skinny's call managers are; 0: they are not helped.
    pub fn set_skinny_port(&mut self, port: u16) {
        self.skinny_port = port;
        self.apply_modules();
    }

    /// Takes the helpers that are loaded now; links that are there keep theirs.
    pub fn apply_modules(&mut self) {
        self.nat.set_helpers(modules::helped(self.skinny_port));
    }

    /// Whether In and Out are exchanged.
    #[inline]
    pub fn is_reverse(&self) -> bool {
        self.modes & REVERSE != 0
    }

    /// Sets the alias address; `None`: packets keep their own.
    pub fn set_address(&mut self, address: Option<Ipv4Addr>) {
        // One address is never too many.
        let _ = self.nat.set_addresses(address.as_slice());
        self.apply_target();
    }

    /// Sets where new connections from outside go.
    pub fn set_target(&mut self, target: Target) {
        self.target = target;
        self.apply_target();
    }

    fn apply_target(&mut self) {
        let target = match self.target {
            Target::Addressed => None,
            Target::Alias => self.nat.config().addresses.first().copied(),
            Target::Host(host) => Some(host),
        };
        self.nat.set_target(target);
    }

    /// Whether a link was made since this was asked last.
    pub fn take_new_link(&mut self) -> bool {
        let made = self.nat.statistics().flows_made;
        let is_new = made != self.links_seen;
        self.links_seen = made;
        is_new
    }
}

/// Where a redirect lies: what it redirects, whatever from and to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    protocol: Option<u8>,
    alias: Option<Ipv4Addr>,
    alias_port: u16,
}

impl Place {
    /// Of a redirect.
    pub fn of(redirect: &Redirect) -> Self {
        Self {
            protocol: redirect.protocol,
            alias: redirect.alias,
            alias_port: redirect.alias_port,
        }
    }
}

/// The redirects of an instance by what C calls them. A name of a deleted
/// redirect or of another instance is in no table: it is refused.
///
/// A name is given once in the life of the process, with one exception. A
/// redirect laid down in the place of the one deleted last gets its name
/// again, as it would get its memory back from malloc: FreeBSD's own test
/// of port forwarding deletes three redirects in turn by the name of the
/// first, and programs written for it may do so too.
#[derive(Debug, Default)]
pub struct Links {
    rules: BTreeMap<usize, (Rule, Place)>,
    deleted_last: Option<(usize, Place)>,
}

impl Links {
    /// Gives a redirect its name for C.
    pub fn insert(&mut self, rule: Rule, place: Place) -> *mut AliasLink {
        let again = self.deleted_last.take_if(|(_, last)| *last == place);
        let name = again.map_or_else(new_name, |(name, _)| name);
        self.rules.insert(name, (rule, place));
        std::ptr::without_provenance_mut(name)
    }

    /// The redirect of a name.
    pub fn get(&self, link: *mut AliasLink) -> Option<Rule> {
        self.rules.get(&link.addr()).map(|(rule, _)| *rule)
    }

    /// Takes a name away.
    pub fn remove(&mut self, link: *mut AliasLink) -> Option<Rule> {
        let name = link.addr();
        let (rule, place) = self.rules.remove(&name)?;
        self.deleted_last = Some((name, place));
        Some(rule)
    }
}

/// What says how many links an instance has at most, where the program does
/// not: one that was written for another libalias cannot.
const LINKS_VARIABLE: &str = "LIBALIAS_MAX_LINKS";

/// How many links an instance has at most by that variable; without it, or
/// where it is no number, as many as ever.
fn usual_links(said: Option<&str>) -> usize {
    let number = said.and_then(|said| said.trim().parse().ok());
    let number = number.filter(|number| *number > 0);
    number.map_or(MAX_LINKS, |number: usize| number.min(Limits::MOST_FLOWS))
}

fn new_name() -> usize {
    let number = NEXT_LINK.fetch_add(1, Ordering::Relaxed);
    number.wrapping_shl(LINK_TAG_BITS) | LINK_TAG
}

/// Registers an instance; NULL when there are too many.
pub fn register(instance: Instance) -> *mut LibAlias {
    INSTANCES
        .insert(Box::new(instance))
        .map_or(std::ptr::null_mut(), |handle| {
            std::ptr::without_provenance_mut(handle.address())
        })
}

/// Frees an instance; nothing when there is none.
pub fn unregister(la: *mut LibAlias) {
    drop(INSTANCES.remove(Handle::from_address(la.addr())));
}

/// Does something to each instance that there is.
pub fn for_each(change: impl Fn(&mut Instance)) {
    INSTANCES.for_each(change);
}

/// The instance that C means, for this call alone.
#[inline]
pub fn find(la: *mut LibAlias) -> Option<Guard<Instance>> {
    INSTANCES.lock(Handle::from_address(la.addr()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_says_how_many_links_where_the_program_does_not() {
        assert_eq!(usual_links(None), MAX_LINKS);
        assert_eq!(usual_links(Some(" 5000000\n")), 5_000_000);
        assert_eq!(usual_links(Some("7")), 7);
        assert_eq!(usual_links(Some("99999999999")), Limits::MOST_FLOWS);
        for nonsense in ["", "0", "-1", "many"] {
            assert_eq!(usual_links(Some(nonsense)), MAX_LINKS, "{nonsense}");
        }
    }
}
