//! Who shares what there is for all: a user of this host, or an address of
//! elsewhere (of IPv6 a /64). For `budget`, the control socket and HTTP.

use std::net::IpAddr;

use rustix::process::geteuid;

/// Whose clients share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// A user of this host, by its number.
    User(u32),
    /// A host, or a network of IPv6.
    Address(IpAddr),
    /// All who watch changes: what is rendered once for them.
    Watchers,
}

impl Source {
    /// The host's own administrator, whose share is never anybody else's.
    pub const ROOT: Self = Self::User(0);

    /// Whether it is root, or who runs the daemon: who is told what is not
    /// everybody's.
    pub fn is_own(self) -> bool {
        matches!(self, Self::User(user) if user == 0 || user == geteuid().as_raw())
    }

    /// Of an address alone.
    pub fn of(from: IpAddr) -> Self {
        // An IPv6 host has a whole /64 of addresses, a host all of 127/8.
        Self::Address(match from.to_canonical() {
            IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) >> 64 << 64).into()),
            IpAddr::V4(v4) if v4.is_loopback() => IpAddr::from([127, 0, 0, 1]),
            v4 => v4,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_the_daemon_s_own_user_are_own() {
        let own = geteuid().as_raw();
        assert!(Source::ROOT.is_own() && Source::User(own).is_own());
        assert!(!Source::User(own + 1).is_own() && !Source::Watchers.is_own());
        assert!(!Source::of(IpAddr::from([127, 0, 0, 1])).is_own());
    }

    #[test]
    fn hosts_of_one_ipv6_network_are_one_source() {
        let of = |text: &str| Source::of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_eq!(of("127.0.0.1"), of("127.9.9.9"));
    }
}
