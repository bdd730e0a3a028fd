//! What a line of the ARP table says.

use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};
use table::row::link::{flag as link_flag, hardware};
use table::row::neighbour::state;
use table::{Address, Link, LinkLayerAddress, Neighbour, NeighbourAges};

/// How long an entry stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until somebody removes it.
    Permanent,
    /// For so many seconds, unless it is confirmed or used again.
    Seconds(u64),
    /// It is being asked for, or nobody answered: it says nothing.
    Unknown,
}

/// The kernel's timers that [`Lifetime`] is reckoned from
/// (`net.ipv4.neigh.default.*`), in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timers {
    /// `base_reachable_time_ms`. The kernel draws each link's own time from
    /// half to one and a half of it, so that a second or fifteen may be
    /// missing or left.
    pub reachable_millis: u64,
    /// `gc_stale_time`: an entry that was not used for so long may go.
    pub stale_millis: u64,
}

impl Default for Timers {
    /// The kernel's defaults: 30 s and 60 s.
    fn default() -> Self {
        Self {
            reachable_millis: 30_000,
            stale_millis: 60_000,
        }
    }
}

/// An entry, as a line shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The host's name, when names are shown and it has one.
    pub host: Option<&'a str>,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its link-layer address: none while incomplete, and on a link that
    /// needs none. Of a proxy entry: the link's own, which is what Linux
    /// answers with.
    pub lladdr: LinkLayerAddress,
    /// Whether the link-layer address is known (the kernel's `NUD_VALID`,
    /// `ATF_COM` of old).
    pub complete: bool,
    /// Whether we answer for it (`ATF_PUBL` of old): a proxy entry.
    pub published: bool,
    /// How long it stays.
    pub lifetime: Lifetime,
    /// Name of its link; `*` for a proxy entry of every link.
    pub link: &'a str,
    /// `ARPHRD_…` of its link; 0 for a proxy entry of every link.
    pub hardware: u16,
}

/// `NUD_VALID`.
const VALID: u16 =
    state::PERMANENT | state::NOARP | state::REACHABLE | state::PROBE | state::STALE | state::DELAY;

impl<'a> Entry<'a> {
    /// The entry of a neighbour; `None` for what is not in an ARP table:
    /// IPv6 neighbours, and those that need no resolution (`NUD_NOARP`,
    /// multicast mostly) or have not begun with it.
    ///
    /// `link` is the neighbour's link, none for a proxy entry of every
    /// link. `ages` are as sampled just now; without them, entries that end
    /// are shown with all their time left.
    pub fn of(
        neighbour: &Neighbour,
        link: Option<&'a Link>,
        ages: Option<&NeighbourAges>,
        timers: &Timers,
    ) -> Option<Self> {
        let IpAddr::V4(address) = neighbour.address else {
            return None;
        };
        if !neighbour.proxy && neighbour.state & !state::NOARP == 0 {
            return None;
        }
        Some(Self {
            host: None,
            address,
            lladdr: match link {
                Some(link) if neighbour.proxy => link.address,
                _ => neighbour.lladdr,
            },
            complete: !neighbour.proxy && neighbour.state & VALID != 0,
            published: neighbour.proxy,
            lifetime: lifetime(neighbour, ages, timers),
            link: link.map_or(if neighbour.link == 0 { "*" } else { "?" }, |link| {
                &link.name
            }),
            hardware: link.map_or(0, |link| link.hardware),
        })
    }

    /// The entry of an address of our own, as the BSDs list it: permanent,
    /// with the link's own link-layer address. `None` where ARP has no say:
    /// IPv6, links without ARP or without a link-layer address, loopback.
    pub fn own(address: &Address, link: &'a Link) -> Option<Self> {
        let IpAddr::V4(local) = address.local else {
            return None;
        };
        let without_arp = link_flag::NOARP | link_flag::LOOPBACK | link_flag::POINTOPOINT;
        if link.flags & without_arp != 0
            || link.hardware == hardware::LOOPBACK
            || link.address.is_none()
        {
            return None;
        }
        Some(Self {
            host: None,
            address: local,
            lladdr: link.address,
            complete: true,
            published: false,
            lifetime: Lifetime::Permanent,
            link: &link.name,
            hardware: link.hardware,
        })
    }

    /// Whether it stays until somebody removes it.
    pub fn is_permanent(&self) -> bool {
        self.lifetime == Lifetime::Permanent
    }
}

/// The BSDs give an entry 20 minutes from its last confirmation. Linux has
/// no such clock: an entry is believed for the reachable time since it was
/// confirmed, then it is stale, and a stale one may be collected when it was
/// not used for `gc_stale_time`. So what is left is: of the reachable time
/// since confirmation, while reachable; of the stale time since the last
/// use, from then on. Never below 0: the kernel collects when it has
/// reason to.
fn lifetime(neighbour: &Neighbour, ages: Option<&NeighbourAges>, timers: &Timers) -> Lifetime {
    if neighbour.proxy || neighbour.state & (state::PERMANENT | state::NOARP) != 0 {
        return Lifetime::Permanent;
    }
    if neighbour.state & VALID == 0 {
        return Lifetime::Unknown;
    }
    let (limit, age) = if neighbour.state & state::REACHABLE != 0 {
        let age = ages.map_or(0, |ages| ages.confirmed_millis);
        (timers.reachable_millis, age)
    } else {
        let age = ages.map_or(0, |ages| ages.used_millis);
        (timers.stale_millis, age)
    };
    Lifetime::Seconds(limit.saturating_sub(age) / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbour(state: u16, proxy: bool) -> Neighbour {
        Neighbour {
            link: 3,
            address: Ipv4Addr::new(10, 0, 0, 2).into(),
            proxy,
            lladdr: LinkLayerAddress::new(&[2, 0, 0, 0, 0, 2]).unwrap(),
            state,
            flags: 0,
            protocol: 0,
            kind: 1,
        }
    }

    #[test]
    fn what_is_left_depends_on_the_state() {
        let ages = NeighbourAges {
            confirmed_millis: 12_300,
            used_millis: 70_000,
            ..NeighbourAges::default()
        };
        let timers = Timers::default();
        for (state, expected) in [
            (state::PERMANENT, Lifetime::Permanent),
            (state::REACHABLE, Lifetime::Seconds(17)),
            (state::STALE, Lifetime::Seconds(0)),
            (state::FAILED, Lifetime::Unknown),
            (state::INCOMPLETE, Lifetime::Unknown),
        ] {
            let row = neighbour(state, false);
            let entry = Entry::of(&row, None, Some(&ages), &timers).unwrap();
            assert_eq!(entry.lifetime, expected, "state {state:#x}");
        }
    }

    #[test]
    fn what_needs_no_resolution_is_not_listed_but_proxies_are() {
        let timers = Timers::default();
        for state in [state::NOARP, state::NONE] {
            assert!(Entry::of(&neighbour(state, false), None, None, &timers).is_none());
        }
        let mut six = neighbour(state::REACHABLE, false);
        six.address = std::net::Ipv6Addr::LOCALHOST.into();
        assert!(Entry::of(&six, None, None, &timers).is_none());
        let proxy = neighbour(state::NONE, true);
        let proxy = Entry::of(&proxy, None, None, &timers).unwrap();
        assert!(proxy.published && proxy.is_permanent() && !proxy.complete);
    }

    #[test]
    fn own_addresses_are_listed_where_arp_has_a_say() {
        let address = Address::new(3, Ipv4Addr::new(10, 0, 0, 1).into(), 30);
        let mut link = Link {
            index: 3,
            name: "em1".into(),
            hardware: hardware::ETHER,
            address: LinkLayerAddress::new(&[2, 0, 0, 0, 0, 1]).unwrap(),
            ..Link::default()
        };
        assert!(Entry::own(&address, &link).unwrap().is_permanent());
        link.flags = link_flag::NOARP;
        assert!(Entry::own(&address, &link).is_none());
        link.flags = 0;
        link.address = LinkLayerAddress::NONE;
        assert!(Entry::own(&address, &link).is_none());
    }
}
