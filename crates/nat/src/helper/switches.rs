//! Which helpers there are, and which of them are switched on. For the engine
//! and for who sets it.

use packet::protocol;

use super::{Kind, ftp, irc, nbt, pptp, rtsp, sip, skinny, tftp};

/// A helper's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// What it is called where helpers are switched on and off.
    pub name: &'static str,
    /// What it is for.
    pub kind: Kind,
    /// The protocol of its connections.
    pub protocol: u8,
    /// The servers' ports; Skinny's can be set ([`Helped::skinny_at`]).
    pub ports: &'static [u16],
}

/// All helpers that are found by a port.
pub const REGISTRY: &[Entry] = &[
    Entry {
        name: "ftp",
        kind: Kind::Ftp,
        protocol: protocol::TCP,
        ports: &[ftp::PORT],
    },
    Entry {
        name: "pptp",
        kind: Kind::Pptp,
        protocol: protocol::TCP,
        ports: &[pptp::PORT],
    },
    Entry {
        name: "irc",
        kind: Kind::Irc,
        protocol: protocol::TCP,
        ports: &[irc::PORT],
    },
    Entry {
        name: "tftp",
        kind: Kind::Tftp,
        protocol: protocol::UDP,
        ports: &[tftp::PORT],
    },
    Entry {
        name: "rtsp",
        kind: Kind::Rtsp,
        protocol: protocol::TCP,
        ports: &rtsp::PORTS,
    },
    Entry {
        name: "nbt",
        kind: Kind::Nbt,
        protocol: protocol::UDP,
        ports: &[nbt::NAMES, nbt::DATAGRAMS],
    },
    Entry {
        name: "sip",
        kind: Kind::Sip,
        protocol: protocol::UDP,
        ports: &[sip::PORT],
    },
    Entry {
        name: "skinny",
        kind: Kind::Skinny,
        protocol: protocol::TCP,
        ports: &[],
    },
];

/// A bit for each port of [`REGISTRY`], by the port's low bits: nearly all
/// other ports are told by it alone.
const SOME_PORTS: u64 = some_ports();

const fn some_ports() -> u64 {
    let (mut bits, mut entry) = (0, 0);
    while entry < REGISTRY.len() {
        let ports = REGISTRY[entry].ports;
        let mut at = 0;
        while at < ports.len() {
            bits |= 1 << (ports[at] & 63);
            at += 1;
        }
        entry += 1;
    }
    bits
}

/// Which helpers are switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Helped {
    on: u32,
    skinny_port: u16,
}

impl Helped {
    /// None of them.
    pub const NONE: Self = Self {
        on: 0,
        skinny_port: skinny::PORT,
    };
    /// Those that are on where nothing is said: all but SIP's, for most phones
    /// find their own way and are disturbed by a helper, and Skinny's, as
    /// libalias has it.
    pub const USUAL: Self = Self {
        on: !(Kind::Sip.bit() | Kind::Skinny.bit()),
        skinny_port: skinny::PORT,
    };

    /// The helper of this name ([`Entry::name`]) switched on or off; `None`:
    /// there is none of that name.
    #[must_use]
    pub fn switched(self, name: &str, on: bool) -> Option<Self> {
        let entry = REGISTRY.iter().find(|entry| entry.name == name)?;
        let bit = entry.kind.bit();
        let on = if on { self.on | bit } else { self.on & !bit };
        Some(Self { on, ..self })
    }

    /// Skinny's helper on, for call managers at this port; at 0: off.
    #[must_use]
    pub fn skinny_at(self, port: u16) -> Self {
        let bit = Kind::Skinny.bit();
        match port {
            0 => Self {
                on: self.on & !bit,
                ..self
            },
            port => Self {
                on: self.on | bit,
                skinny_port: port,
            },
        }
    }

    /// Whether it is switched on.
    pub fn has(self, kind: Kind) -> bool {
        self.on & kind.bit() != 0
    }

    /// The helper for a new flow, by either side's port. O(helpers).
    #[inline]
    pub fn kind_of(self, protocol: u8, inside_port: u16, remote_port: u16) -> Option<Kind> {
        let bit = |port: u16| 1_u64 << (port & 63);
        let some = SOME_PORTS | bit(self.skinny_port);
        if (bit(inside_port) | bit(remote_port)) & some == 0 {
            return None;
        }
        self.find(protocol, [inside_port, remote_port])
    }

    #[inline(never)]
    fn find(self, protocol: u8, ports: [u16; 2]) -> Option<Kind> {
        let fits = |entry: &&Entry| {
            let is_at = |port| match entry.kind {
                // Its call manager is outside.
                Kind::Skinny => port == self.skinny_port && ports[1] == port,
                _ => entry.ports.contains(&port),
            };
            entry.protocol == protocol && self.has(entry.kind) && ports.into_iter().any(is_at)
        };
        REGISTRY.iter().find(fits).map(|entry| entry.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_helper_is_for_which_ports() {
        let all = Helped::USUAL.switched("sip", true).unwrap();
        let all = all.skinny_at(2_000);
        for entry in REGISTRY {
            for port in entry.ports {
                let of = |inside, remote: &u16| all.kind_of(entry.protocol, inside, *remote);
                assert_eq!(of(40_000, port), Some(entry.kind));
                assert_eq!(all.kind_of(entry.protocol, *port, 1), Some(entry.kind));
                let off = all.switched(entry.name, false).unwrap();
                assert_eq!(off.kind_of(entry.protocol, 40_000, *port), None);
            }
        }
        assert_eq!(all.kind_of(protocol::TCP, 40_000, 5_060), None);
        let skinny = |helped: Helped, inside, remote| helped.kind_of(protocol::TCP, inside, remote);
        assert_eq!(skinny(all, 40_000, 2_000), Some(Kind::Skinny));
        assert_eq!(skinny(all, 2_000, 40_000), None);
        assert_eq!(skinny(all.skinny_at(2_443), 40_000, 2_000), None);
        assert_eq!(
            skinny(all.skinny_at(2_443), 40_000, 2_443),
            Some(Kind::Skinny)
        );
        assert_eq!(skinny(all.skinny_at(0), 40_000, 2_000), None);
        let usual = Helped::USUAL;
        assert!(!usual.has(Kind::Sip) && !usual.has(Kind::Skinny) && usual.has(Kind::Nbt));
        assert_eq!(usual.switched("none", true), None);
        assert_eq!(Helped::NONE.kind_of(protocol::TCP, 1, 21), None);
    }
}
