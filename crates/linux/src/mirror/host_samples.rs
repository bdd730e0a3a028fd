//! Samples of what stands beside the tables: which file takes which, and
//! where readers find it. Taken by `sampler`, put there by the worker.

use netlink::decode::PortVlans;
use table::row::counters::Unannounced;
use table::{Host, IpInterface, Links, Machine, Sample, Sampled, Sockets};

use super::sampling::Meanwhile;
use super::{bridge_timers, bridge_vlans, ip_interfaces, now_millis, sockets};
use crate::error::Error;
use crate::host::Observer;
use crate::namespace::Namespace;

/// A sample.
pub(super) enum Taken {
    Sockets(Sockets),
    Machine(Box<Machine>),
    IpInterfaces(Vec<(u32, IpInterface)>),
    BridgeVlans(Vec<PortVlans>),
    BridgeTimers(Vec<(u32, Unannounced)>),
}

/// Whether a sample is one of these, and not of a table's rows.
pub(super) fn is_of_host(what: Sampled) -> bool {
    match what {
        Sampled::Links
        | Sampled::Counters
        | Sampled::Addresses
        | Sampled::Neighbours
        | Sampled::Fdb => false,
        Sampled::Sockets
        | Sampled::Machine
        | Sampled::IpInterfaces
        | Sampled::BridgeVlans
        | Sampled::BridgeTimers => true,
    }
}

/// Takes a sample; an error where it is one of a table's rows. `meanwhile` is
/// called now and then.
pub(super) fn take(
    what: Sampled,
    namespace: &Namespace,
    observer: &mut Observer,
    meanwhile: &mut Meanwhile<'_>,
) -> Result<Taken, Error> {
    Ok(match what {
        Sampled::Sockets => Taken::Sockets(sockets::read(namespace, meanwhile)?),
        Sampled::Machine => Taken::Machine(Box::new(observer.observe(now_millis()))),
        Sampled::IpInterfaces => Taken::IpInterfaces(ip_interfaces::read(namespace, meanwhile)?),
        Sampled::BridgeVlans => Taken::BridgeVlans(bridge_vlans::read(namespace, meanwhile)?),
        Sampled::BridgeTimers => Taken::BridgeTimers(bridge_timers::read(namespace, meanwhile)?),
        Sampled::Links
        | Sampled::Counters
        | Sampled::Addresses
        | Sampled::Neighbours
        | Sampled::Fdb => {
            let why = std::io::Error::other("a table's rows are no sample of the host");
            return Err(Error::System {
                what: "take a sample",
                source: why,
            });
        }
    })
}

impl Taken {
    /// Puts it where readers see it.
    pub(super) fn put(self, links: &Links, host: &mut Host) {
        let now = now_millis();
        match self {
            Self::Sockets(sockets) => host.sockets = sockets.into(),
            Self::Machine(machine) => host.machine = Some((*machine).into()),
            Self::IpInterfaces(links) => host.ip_interfaces = Sample::new(now, links).into(),
            Self::BridgeVlans(told) => bridge_vlans::put(&told, links, now, host),
            Self::BridgeTimers(links) => host.unannounced = Sample::new(now, links).into(),
        }
    }
}
