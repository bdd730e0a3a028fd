//! Lists tables of the kernel for the mirror's machine.

use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use netlink::message::Message;
use netlink::request::Dump;
use table::{AF_INET, AF_INET6};

use super::difference::CompleteTables;
use crate::dump::{Rows, SEQUENCE, ask};
use crate::error::Error;
use crate::namespace::Namespace;
use crate::recording::{Listed, Which};
use crate::socket::Socket;

/// `RTNL_FAMILY_IPMR`, `RTNL_FAMILY_IP6MR`, `AF_MPLS`, and the file that
/// shows that the kernel has them. (A kernel without lists everything.)
const OTHER_FAMILIES: [(u8, &str); 3] = [
    (28, "/proc/sys/net/mpls/platform_labels"),
    (128, "/proc/thread-self/net/ip_mr_vif"),
    (129, "/proc/thread-self/net/ip6_mr_vif"),
];

/// A listing that the kernel calls interrupted is done again so often.
const ATTEMPTS: usize = 3;

/// Who takes in what a listing brings.
pub(crate) trait Listener {
    /// A table is asked for, with these bytes.
    fn asked(&mut self, request: &[u8]);
    /// A datagram of the answer, before its messages, and when the kernel had
    /// just written it.
    fn datagram(&mut self, datagram: &[u8], written: Instant);
    /// A message of it.
    fn message(&mut self, message: &Message<'_>) -> Result<(), Error>;
    /// An IPv4 address of the host's own, of those listed, that is in no VRF.
    fn own_address(&self) -> Option<Ipv4Addr>;
    /// Called now and then, so that events do not pile up.
    fn meanwhile(&mut self) -> Result<(), Error>;
}

/// Lists tables.
pub(crate) struct Load<'a> {
    pub namespace: &'a Namespace,
    pub to: &'a mut dyn Listener,
}

/// Messages between two looks at the events: some 20 µs of work.
pub(crate) const MESSAGES_BETWEEN_LOOKS: usize = 128;

impl Load<'_> {
    pub(crate) fn run(&mut self, which: Which) -> Result<Listed, Error> {
        let mut listed = Listed {
            whole: CompleteTables::NONE,
            complete: true,
            interrupted: 0,
        };
        let asked = |table| which == table || which == Which::All;
        if asked(Which::Links) {
            // Nobody asks for all tables to see counters.
            let counters = which == Which::Links;
            for family in [AF_INET, AF_INET6] {
                self.list(&mut listed, &Dump::SettingsOfAll { family })?;
            }
            listed.whole.links = self.list(&mut listed, &Dump::Links { counters })?;
        }
        if asked(Which::Addresses) {
            listed.whole.addresses = self.list(&mut listed, &ADDRESSES)?;
        }
        if asked(Which::Neighbours) {
            listed.whole.neighbours = self.list(&mut listed, &neighbours(false))?
                & self.list(&mut listed, &neighbours(true))?;
        }
        if asked(Which::Fdb) {
            listed.whole.fdb = self.list(&mut listed, &FDB)?;
        }
        if which == Which::All {
            // Of links that came meanwhile their messages tell.
            let family = AF_INET;
            self.list(&mut listed, &Dump::NeighbourTables { family })?;
            self.routing(&mut listed)?;
        }
        Ok(listed)
    }

    fn routing(&mut self, listed: &mut Listed) -> Result<(), Error> {
        listed.whole.nexthops = self.list(listed, &Dump::Nexthops)?;
        listed.whole.rules = self.list(listed, &Dump::Rules { family: AF_INET })?
            & self.list(listed, &Dump::Rules { family: AF_INET6 })?;
        self.look_at_tables(listed)?;
        listed.whole.v4_routes = self.list(listed, &routes(AF_INET))?;
        listed.whole.v6_routes = self.list(listed, &routes(AF_INET6))?;
        for (family, sign) in OTHER_FAMILIES {
            if self.namespace.run(|| Path::new(sign).exists())? {
                self.list(listed, &routes(family))?;
            }
        }
        Ok(())
    }

    /// Whether the kernel keeps the IPv4 tables local and main as one, no
    /// listing tells: in which of them it finds an address of its own does.
    fn look_at_tables(&mut self, listed: &mut Listed) -> Result<(), Error> {
        let Some(address) = self.to.own_address() else {
            return Ok(());
        };
        match self.list(listed, &Dump::TableOfOwn { address }) {
            // It may have gone meanwhile.
            Err(Error::Refused { .. }) => Ok(()),
            asked => asked.map(drop),
        }
    }

    /// Lists one table; true when it was read whole.
    fn list(&mut self, listed: &mut Listed, request: &Dump) -> Result<bool, Error> {
        for _ in 0..ATTEMPTS {
            match self.list_once(request) {
                Ok(false) => return Ok(true),
                Ok(true) => listed.interrupted += 1,
                Err(error) if is_unsupported(&error) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        listed.complete = false;
        Ok(false)
    }

    /// True when the kernel called it interrupted.
    fn list_once(&mut self, request: &Dump) -> Result<bool, Error> {
        let socket = Socket::open(self.namespace)?;
        let mut bytes = Vec::with_capacity(128);
        request.encode(SEQUENCE, &mut bytes);
        self.to.asked(&bytes);
        let mut taking = Taking {
            to: self.to,
            seen: 0,
            outcome: Ok(()),
        };
        let end = ask(&socket, &bytes, &mut taking)?;
        taking.outcome?;
        Ok(end.interrupted)
    }
}

/// Hands an answer on, until something goes wrong.
struct Taking<'a> {
    to: &'a mut dyn Listener,
    seen: usize,
    outcome: Result<(), Error>,
}

impl Rows for Taking<'_> {
    fn datagram(&mut self, datagram: &[u8], written: Instant) {
        self.to.datagram(datagram, written);
    }

    fn message(&mut self, message: &Message<'_>) -> ControlFlow<()> {
        self.seen += 1;
        self.outcome = self.to.message(message);
        if self.outcome.is_ok() && self.seen.is_multiple_of(MESSAGES_BETWEEN_LOOKS) {
            self.outcome = self.to.meanwhile();
        }
        match self.outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

const ADDRESSES: Dump = Dump::Addresses {
    family: 0,
    link: None,
};

const FDB: Dump = Dump::Fdb {
    link: None,
    master: None,
};

fn neighbours(proxy: bool) -> Dump {
    Dump::Neighbours {
        family: 0,
        link: None,
        master: None,
        proxy,
    }
}

fn routes(family: u8) -> Dump {
    Dump::Routes {
        family,
        table: None,
        link: None,
        protocol: None,
        kind: None,
    }
}

/// A kernel without the feature has none of its rows.
fn is_unsupported(error: &Error) -> bool {
    matches!(error, Error::Refused { source, .. }
        if source.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error()))
}
