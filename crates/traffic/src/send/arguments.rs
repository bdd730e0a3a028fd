//! The command line of `send`, and the plan that comes of it. What would
//! send where nobody meant it to is refused here.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueHint};
use linux::{Namespace, once};
use netlink::request::RouteQuery;
use table::row::route::kind;

use super::flows::{Flows, Vary};
use super::plan::{Into, Plan, Stage, Way};
use crate::payload;
use crate::values::{amount, mac, seconds};

/// Threads that may be asked for on any host.
const FEW_CORES: usize = 8;
/// How long it sends unless told otherwise.
const USUAL_SECS: f64 = 10.0;
/// Packets between two looks at the clock.
const USUAL_BATCH: usize = 64;
/// Trains are cheap for the kernel: with four of them the system call itself
/// is no longer seen.
const USUAL_BATCH_OF_TRAINS: usize = 256;
const MAX_BATCH: usize = 1_024;
/// Streams that a payload can tell apart.
const MAX_FLOWS: u32 = 65_536;

const AFTER_HELP: &str = "\
Values of --by: sendto, connected, sendmmsg, segments (UDP_SEGMENT), af-packet,
af-packet-ring, af-xdp, own. af-packet, af-packet-ring and af-xdp build whole frames by
the kernel's route and neighbour, and need root (CAP_NET_RAW). `own` is our own
stack: with the port `memory` it measures each stage and sends nothing.
  fingerpost send 192.0.2.1:9000 --rate 100k --duration 10
  fingerpost send 192.0.2.1 9000 --by af-packet --count 1M --flows 64
  fingerpost send 192.0.2.1 9000 --by own --profile
  fingerpost receive 9000        on the receiving host
Ctrl-C ends the run and prints the report. Exit status: 0 done, 1 it failed, 2 the command
line is wrong.";

/// Send UDP packets, and report what each costs
#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// Destination: an address and a port (IPv6 in brackets), or an address
    /// with the port as the next word
    #[arg(value_name = "ADDRESS[:PORT]")]
    to: String,
    /// Destination port, if it is not given with the address
    #[arg(value_name = "PORT")]
    port: Option<u16>,
    /// How packets are sent
    #[arg(long, value_enum, default_value_t = Way::Sendmmsg)]
    by: Way,
    /// Bytes of UDP payload; 18 at least to be counted by `receive`
    #[arg(long, short = 's', value_name = "BYTES", default_value_t = 64)]
    payload: usize,
    /// Packets per second, all cores together [default: as many as possible]
    #[arg(long, short, value_name = "PPS", value_parser = amount)]
    rate: Option<f64>,
    /// Total number of packets
    #[arg(long, short = 'n', value_name = "N", value_parser = amount)]
    count: Option<f64>,
    /// Duration in seconds [default: 10, unless --count is given]
    #[arg(long, short, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,
    /// Flows; at least one for each core
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_FLOWS)))]
    flows: Option<u32>,
    /// What differs between flows
    #[arg(long, value_enum, default_value_t = Vary::SourcePort)]
    vary: Vary,
    /// Threads, each bound to a core of its own
    #[arg(long, short, value_name = "N", default_value_t = 1)]
    cores: usize,
    /// Packets per batch [default: 64; with segments 256]
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// Source address, and port if given
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    source: Option<String>,
    /// Outgoing interface, regardless of the routes
    #[arg(long, short, value_name = "NAME")]
    interface: Option<String>,
    /// Destination link-layer address of frames, regardless of the neighbours
    #[arg(long, value_name = "MAC", value_parser = mac)]
    next_hop: Option<[u8; 6]>,
    /// The address may be a broadcast address
    #[arg(long)]
    allow_broadcast: bool,
    /// The address may be a multicast address
    #[arg(long)]
    allow_multicast: bool,
    /// Port of our own stack: memory, tun:NAME, af-packet, af-packet-ring or
    /// af-xdp [default: memory]
    #[arg(long, value_name = "PORT", help_heading = "Our own stack (--by own)")]
    into: Option<Into>,
    /// Stop after this stage
    #[arg(
        long,
        value_enum,
        value_name = "STAGE",
        help_heading = "Our own stack (--by own)"
    )]
    stop_after: Option<Stage>,
    /// Measure each stage, on one core and on all
    #[arg(
        long,
        conflicts_with = "stop_after",
        help_heading = "Our own stack (--by own)"
    )]
    pub profile: bool,
    /// File for the plot of --profile
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        requires = "profile",
        default_value = "send-profile.svg",
        help_heading = "Our own stack (--by own)"
    )]
    pub svg: PathBuf,
    /// The report as one JSON object
    #[arg(long, short)]
    pub json: bool,
}

impl Arguments {
    /// Checks what was asked for.
    pub fn plan(&self) -> Result<Plan> {
        let to = destination(&self.to, self.port)?;
        self.refuse_many(to.ip())?;
        let source = match &self.source {
            Some(text) => source(text)?,
            None => unspecified(to.ip()),
        };
        ensure!(
            source.is_ipv4() == to.is_ipv4(),
            "--source {} and {} are of two families",
            source.ip(),
            to.ip()
        );
        let is_own = self.by == Way::Own;
        ensure!(
            is_own || (self.into.is_none() && self.stop_after.is_none() && !self.profile),
            "--into, --stop-after and --profile are of our own stack: say --by own"
        );
        ensure!(self.cores >= 1, "--cores: at least one");
        let most = thread::available_parallelism().map_or(1, usize::from);
        let most = most.max(FEW_CORES);
        ensure!(
            self.cores <= most,
            "--cores: {} are more than this host can use: {most} at most",
            self.cores
        );
        let least = u32::try_from(self.cores).unwrap_or(MAX_FLOWS);
        let flows = self.flows.unwrap_or(1).max(least);
        if self.vary.is_destination() && self.flows.unwrap_or(1) < least {
            bail!("each core needs a flow of its own: say --flows {least} or more");
        }
        let usual_batch = match self.by {
            Way::Segments => USUAL_BATCH_OF_TRAINS,
            _ => USUAL_BATCH,
        };
        let payload_bytes = self.payload;
        ensure!(
            payload_bytes <= payload::MAX_BYTES,
            "--payload: {} bytes at most",
            payload::MAX_BYTES
        );
        let rate = self.rate;
        ensure!(
            rate.is_none_or(|rate| rate > 0.0),
            "--rate: more than nothing"
        );
        let count = self.count.map(|count| count as u64);
        let duration = match (self.duration, count) {
            (None, None) => Some(Duration::from_secs_f64(USUAL_SECS)),
            (duration, _) => duration,
        };
        let count = match (count, rate, duration) {
            // Both are a number of packets: the smaller one.
            (count, Some(rate), Some(duration)) => {
                let by_time = (rate * duration.as_secs_f64()).round() as u64;
                Some(count.unwrap_or(u64::MAX).min(by_time.max(1)))
            }
            (count, ..) => count,
        };
        Ok(Plan {
            way: self.by,
            flows: Flows::new(source, to, self.vary, flows)?,
            payload_bytes,
            rate,
            count,
            duration,
            cores: self.cores,
            batch: self.batch.unwrap_or(usual_batch).clamp(1, MAX_BATCH),
            interface: self.interface.clone(),
            next_hop: self.next_hop,
            broadcast: self.allow_broadcast,
            into: self.into.clone().unwrap_or(Into::Memory),
            stop_after: self.stop_after,
            profile: self.profile,
            is_timed: self.duration.is_some(),
            run: payload::run_number(),
        })
    }

    /// Refuses an address that reaches more than one host, unless it is
    /// meant.
    fn refuse_many(&self, to: IpAddr) -> Result<()> {
        if to.is_multicast() {
            ensure!(
                self.allow_multicast,
                "{to} is a multicast address: say --allow-multicast if that is meant"
            );
        } else if self.is_broadcast(to) {
            ensure!(
                self.allow_broadcast,
                "{to} is a broadcast address: say --allow-broadcast if that is meant"
            );
        }
        ensure!(!to.is_unspecified(), "{to} is no address to send to");
        Ok(())
    }

    /// Whether the kernel's route to it is a broadcast one. Where it finds
    /// none, the way says so when it is opened.
    fn is_broadcast(&self, to: IpAddr) -> bool {
        if to == IpAddr::V4(Ipv4Addr::BROADCAST) {
            return true;
        }
        let Ok(namespace) = Namespace::current() else {
            return false;
        };
        let route = once::route(to, &RouteQuery::default(), &namespace);
        route.is_ok_and(|route| route.body.kind == kind::BROADCAST)
    }
}

fn destination(text: &str, port: Option<u16>) -> Result<SocketAddr> {
    let to = match (text.parse::<SocketAddr>(), port) {
        (Ok(to), None) => to,
        (Ok(_), Some(_)) => bail!("the port is said twice"),
        (Err(_), Some(port)) => SocketAddr::new(bare(text)?, port),
        (Err(_), None) => {
            bare(text)?;
            bail!("to which port? fingerpost send {text} PORT");
        }
    };
    ensure!(to.port() != 0, "port 0 is no port to send to");
    Ok(to)
}

fn bare(text: &str) -> Result<IpAddr> {
    let inner = text.trim_start_matches('[').trim_end_matches(']');
    inner
        .parse()
        .with_context(|| format!("`{text}` is no address like 192.0.2.1 or 2001:db8::1"))
}

fn source(text: &str) -> Result<SocketAddr> {
    match text.parse::<SocketAddr>() {
        Ok(source) => Ok(source),
        Err(_) => Ok(SocketAddr::new(bare(text)?, 0)),
    }
}

fn unspecified(family_of: IpAddr) -> SocketAddr {
    match family_of {
        IpAddr::V4(_) => ([0_u8; 4], 0).into(),
        IpAddr::V6(_) => ([0_u8; 16], 0).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches;

    fn plan(line: &str) -> Result<Plan> {
        let words = std::iter::once("send").chain(line.split_whitespace());
        let command = Arguments::augment_args(clap::Command::new("send"));
        let matches = command.try_get_matches_from(words)?;
        Arguments::from_arg_matches(&matches)?.plan()
    }

    fn refusal(line: &str) -> String {
        plan(line).unwrap_err().to_string()
    }

    #[test]
    fn addresses_and_ports_are_read_in_both_forms() {
        for line in ["127.0.0.1:9000", "127.0.0.1 9000"] {
            let (_, to) = plan(line).unwrap().flows.get(0);
            assert_eq!(to, "127.0.0.1:9000".parse().unwrap());
        }
        for line in ["[::1]:9", "::1 9", "[::1] 9"] {
            let (_, to) = plan(line).unwrap().flows.get(0);
            assert_eq!(to, "[::1]:9".parse().unwrap());
        }
    }

    #[test]
    fn what_is_not_meant_is_refused() {
        for (line, part) in [
            ("127.0.0.1:0", "port 0"),
            ("127.0.0.1", "which port"),
            ("nowhere 9", "no address"),
            ("127.0.0.1:9 9", "twice"),
            ("224.0.0.1 9", "--allow-multicast"),
            ("ff02::1 9", "--allow-multicast"),
            ("255.255.255.255 9", "--allow-broadcast"),
            ("0.0.0.0 9", "no address"),
            ("127.0.0.1 9 --payload 65508", "65507"),
            ("127.0.0.1 9 --source ::1", "two families"),
            ("127.0.0.1 9 --cores 2 --vary destination-port", "--flows 2"),
            ("127.0.0.1 9 --cores 0", "at least one"),
            ("127.0.0.1 9 --cores 99999", "at most"),
        ] {
            let said = refusal(line);
            assert!(said.contains(part), "{line}: {said}");
        }
        assert!(plan("224.0.0.1 9 --allow-multicast").is_ok());
    }

    #[test]
    fn rate_and_duration_make_an_exact_count() {
        let made = plan("127.0.0.1 9 --rate 2.5k --duration 3").unwrap();
        assert_eq!((made.count, made.rate), (Some(7_500), Some(2_500.0)));
        let both = plan("127.0.0.1 9 -r 1k -d 3 -n 10").unwrap();
        assert_eq!(both.count, Some(10));
        let usual = plan("127.0.0.1 9").unwrap();
        assert_eq!(usual.duration, Some(Duration::from_secs(10)));
        assert_eq!(plan("127.0.0.1 9 -n 1M").unwrap().duration, None);
    }
}
