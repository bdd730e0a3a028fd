//! Which flows there are: from one address and port to another, one of the
//! four counted up.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Result, ensure};
use clap::ValueEnum;

/// What differs between flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Vary {
    /// The source port: all reach one receiver
    SourcePort,
    /// The source address
    SourceAddress,
    /// The destination port
    DestinationPort,
    /// The destination address
    DestinationAddress,
}

impl Vary {
    /// Whether flows go to different places.
    pub fn is_destination(self) -> bool {
        matches!(self, Self::DestinationPort | Self::DestinationAddress)
    }
}

/// Where packets come from and go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flows {
    source: SocketAddr,
    to: SocketAddr,
    vary: Vary,
    count: u32,
}

impl Flows {
    /// So many flows. Refuses what would count beyond the last address or
    /// port.
    pub fn new(source: SocketAddr, to: SocketAddr, vary: Vary, count: u32) -> Result<Self> {
        let flows = Self {
            source,
            to,
            vary,
            count: count.max(1),
        };
        let last = flows.count - 1;
        let fits = match vary {
            Vary::SourcePort if source.port() == 0 => true,
            Vary::SourcePort => u32::from(source.port()) + last <= 65_535,
            Vary::DestinationPort => u32::from(to.port()) + last <= 65_535,
            Vary::SourceAddress if source.ip().is_unspecified() => {
                ensure!(
                    last == 0,
                    "--vary source-address: from which on? say --source"
                );
                true
            }
            Vary::SourceAddress => counted(source.ip(), last).is_some(),
            Vary::DestinationAddress => counted(to.ip(), last).is_some_and(|last| {
                last.is_multicast() == to.ip().is_multicast() && !last.is_unspecified()
            }),
        };
        ensure!(
            fits,
            "--flows {count}: more than there is room for from there on"
        );
        Ok(flows)
    }

    /// How many.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// What differs.
    pub fn vary(&self) -> Vary {
        self.vary
    }

    /// Where the first one goes.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// Where the first one comes from; unspecified where the kernel is to
    /// choose.
    pub fn source(&self) -> SocketAddr {
        self.source
    }

    /// The same from another source.
    pub fn with_source(&self, source: SocketAddr) -> Result<Self> {
        Self::new(source, self.to, self.vary, self.count)
    }

    /// The same with another number of flows.
    pub fn with_count(&self, count: u32) -> Result<Self> {
        Self::new(self.source, self.to, self.vary, count)
    }

    /// Source and destination of a flow.
    pub fn get(&self, flow: u32) -> (SocketAddr, SocketAddr) {
        let (mut source, mut to) = (self.source, self.to);
        match self.vary {
            Vary::SourcePort if source.port() == 0 => {}
            Vary::SourcePort => source.set_port(source.port().wrapping_add(flow as u16)),
            Vary::DestinationPort => to.set_port(to.port().wrapping_add(flow as u16)),
            Vary::SourceAddress => {
                source.set_ip(counted(source.ip(), flow).unwrap_or(source.ip()));
            }
            Vary::DestinationAddress => to.set_ip(counted(to.ip(), flow).unwrap_or(to.ip())),
        }
        (source, to)
    }

    /// The flows of a core: every so many-th.
    pub fn of_core(&self, core: usize, cores: usize) -> Vec<u32> {
        (0..self.count).skip(core).step_by(cores.max(1)).collect()
    }
}

fn counted(address: IpAddr, by: u32) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(v4) => IpAddr::V4(u32::from(v4).checked_add(by)?.into()),
        IpAddr::V6(v6) => IpAddr::V6(u128::from(v6).checked_add(by.into())?.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows(vary: Vary, count: u32) -> Result<Flows> {
        let (source, to) = ("10.0.0.1:65000", "10.0.0.254:9000");
        Flows::new(source.parse().unwrap(), to.parse().unwrap(), vary, count)
    }

    #[test]
    fn one_of_the_four_counts_up() {
        let third = |vary| {
            let (source, to) = flows(vary, 3).unwrap().get(2);
            format!("{source} {to}")
        };
        assert_eq!(third(Vary::SourcePort), "10.0.0.1:65002 10.0.0.254:9000");
        assert_eq!(third(Vary::SourceAddress), "10.0.0.3:65000 10.0.0.254:9000");
        assert_eq!(
            third(Vary::DestinationPort),
            "10.0.0.1:65000 10.0.0.254:9002"
        );
        assert_eq!(
            third(Vary::DestinationAddress),
            "10.0.0.1:65000 10.0.1.0:9000"
        );
    }

    #[test]
    fn counting_ends_before_the_last() {
        assert!(flows(Vary::SourcePort, 536).is_ok());
        assert!(flows(Vary::SourcePort, 537).is_err());
        let (source, to) = (
            "[::]:0".parse().unwrap(),
            "223.255.255.255:9".parse().unwrap(),
        );
        assert!(Flows::new(source, to, Vary::DestinationAddress, 2).is_err());
        assert!(Flows::new(source, to, Vary::SourceAddress, 2).is_err());
    }

    #[test]
    fn cores_share_the_flows() {
        let flows = flows(Vary::SourcePort, 5).unwrap();
        assert_eq!(flows.of_core(0, 2), [0, 2, 4]);
        assert_eq!(flows.of_core(1, 2), [1, 3]);
    }
}
