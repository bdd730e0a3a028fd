//! What is looked at of three routers: whether routing stands under load, and
//! what hosts notice.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::Routers;
use crate::{Child, Netns, Sshd, wait_until};

const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at adjacencies: less than a neighbour may be silent.
const LOOK: Duration = Duration::from_secs(1);

/// Seconds of a quarter of an hour.
const QUARTER: f64 = 900.0;

/// The far host.
const RIGHT: [&str; 2] = ["172.16.3.2", "2001:db8:3::2"];

/// What stood for how long.
#[derive(Debug, Clone, Default)]
pub struct Stood {
    /// Looks at adjacencies, at all of which all were whole.
    pub looks: u32,
    /// Packets that the three forwarded at XDP meanwhile, and those that went
    /// up.
    pub forwarded: u64,
    /// See above.
    pub up: u64,
    /// Pings sent and answered meanwhile.
    pub pings: [u64; 2],
}

impl Routers {
    /// Adjacencies of OSPF and OSPFv3 and sessions of BGP, all of them whole;
    /// else which are not.
    pub fn stands(&self) -> Result<()> {
        for (at, router) in self.routers.iter().enumerate() {
            let wanted = if at == 1 { 2 } else { 1 };
            let (ospf, ospf6) = (router.frr.ospf_full()?, router.frr.ospf6_full()?);
            ensure!(
                [ospf, ospf6] == [wanted; 2],
                "router {}: {ospf} adjacencies by OSPF and {ospf6} by OSPFv3 instead of {wanted}",
                at + 1
            );
            for family in ["ipv4", "ipv6"] {
                let sessions = router.frr.bgp_established(family)?;
                ensure!(
                    sessions.len() == 2,
                    "router {}: {} sessions by BGP for {family} instead of 2",
                    at + 1,
                    sessions.len()
                );
            }
        }
        Ok(())
    }

    /// How often sessions by BGP went down, all together.
    fn dropped(&self) -> Result<u64> {
        let mut dropped = 0;
        for router in &self.routers {
            for family in ["ipv4", "ipv6"] {
                let sessions = router.frr.bgp_established(family)?;
                dropped += sessions.iter().map(|[_, dropped]| dropped).sum::<u64>();
            }
        }
        Ok(dropped)
    }

    /// Loads the way for so long, and looks again and again whether routing
    /// stands.
    pub fn stand_under_load(&self, time: Duration) -> Result<Stood> {
        wait_until(PATIENCE, "all adjacencies and sessions", || {
            self.stands().ok()
        })
        .with_context(|| format!("{:?}", self.stands()))?;
        let before = self.counts()?;
        let dropped = self.dropped()?;
        let mut loads = Vec::new();
        for to in RIGHT {
            loads.push(ping_for(&self.hosts[0], to, time)?);
        }
        let _bulk = self.bulk(time)?;
        let deadline = Instant::now() + time;
        let mut stood = Stood::default();
        while Instant::now() < deadline {
            self.stands()
                .with_context(|| format!("after {} looks", stood.looks))?;
            stood.looks += 1;
            std::thread::sleep(LOOK);
        }
        for mut load in loads {
            let [sent, answered] = pinged(&mut load)?;
            stood.pings[0] += sent;
            stood.pings[1] += answered;
        }
        ensure!(self.dropped()? == dropped, "sessions by BGP went down");
        let after = self.counts()?;
        stood.forwarded = after[0] - before[0];
        stood.up = after[1] - before[1];
        Ok(stood)
    }

    /// TCP through all of them, from local sockets.
    fn bulk(&self, time: Duration) -> Result<[Child; 2]> {
        let [left, right] = &self.hosts;
        let mut server = right.command("iperf3");
        server.args(["-s", "-1"]).stdout(Stdio::null());
        let server = Child::spawn(server)?;
        wait_until(PATIENCE, "iperf3's server", || {
            let shown = right.run("ss", &["-Hltn", "sport", "=", "5201"]);
            shown.is_ok_and(|shown| !shown.is_empty()).then_some(())
        })?;
        let seconds = time.as_secs().max(1).to_string();
        let mut client = left.command("iperf3");
        client
            .args(["-c", RIGHT[0], "-b", "100M", "-t", &seconds])
            .stdout(Stdio::null());
        Ok([server, Child::spawn(client)?])
    }

    /// Packets forwarded at XDP and handed up, by all three.
    fn counts(&self) -> Result<[u64; 2]> {
        let mut counts = [0; 2];
        for router in &self.routers {
            let rows = router.forwarding.ask("counters");
            let rows = rows.context("a router does not answer")?;
            for row in rows.as_array().into_iter().flatten() {
                for (count, name) in counts.iter_mut().zip(["forwarded_packets", "up_packets"]) {
                    *count += row[name].as_u64().unwrap_or_default();
                }
            }
        }
        Ok(counts)
    }

    /// Each router's hop is shown on the way to the far host, in both
    /// families.
    pub fn shows_each_hop(&self) -> Result<()> {
        let hops = [
            ["172.16.1.1", "10.12.0.2", "10.23.0.3", RIGHT[0]],
            [
                "2001:db8:1::1",
                "2001:db8:12::2",
                "2001:db8:23::3",
                RIGHT[1],
            ],
        ];
        for hops in hops {
            let to = hops[3];
            let mut shown = String::new();
            let seen = wait_until(PATIENCE, &format!("each hop to {to}"), || {
                let arguments = ["-n", "-q1", "-w2", "-m6", to];
                shown = self.hosts[0].run("traceroute", &arguments).ok()?;
                let lines = shown.lines().skip(1);
                let seen: Vec<&str> = lines
                    .filter_map(|line| line.split_whitespace().nth(1))
                    .collect();
                (seen == hops).then_some(())
            });
            seen.with_context(|| shown)?;
        }
        Ok(())
    }

    /// Packets as long as the cables take go through, in both families.
    pub fn takes_long_packets(&self) -> Result<()> {
        let before = self.routers[1].forwarding.packets(None, "forwarded")?;
        for (to, bytes) in RIGHT.iter().zip(["8972", "8952"]) {
            let ping = ["-c3", "-i0.1", "-W5", "-Mdo", "-s", bytes, to];
            self.hosts[0].run("ping", &ping)?;
        }
        let after = self.routers[1].forwarding.packets(None, "forwarded")?;
        ensure!(
            after >= before + 12,
            "{} were forwarded at XDP",
            after - before
        );
        Ok(())
    }

    /// A narrower cable on the way is found by who sends, in both families,
    /// and used.
    pub fn finds_the_way_s_mtu(&self) -> Result<()> {
        let [left, _] = &self.hosts;
        for (at, link) in [(1, "e3"), (2, "e2")] {
            self.routers[at]
                .netns
                .ip(&["link", "set", link, "mtu", "1400"])?;
        }
        for (to, header) in RIGHT.iter().zip([28, 48]) {
            let ping = |bytes: u32| {
                let bytes = (bytes - header).to_string();
                left.run("ping", &["-c1", "-W5", "-Mdo", "-s", &bytes, to])
            };
            wait_until(PATIENCE, "the way's MTU", || {
                let refused = ping(1_401).is_err();
                let way = left.ip(&["route", "get", to]).ok()?;
                (refused && way.contains("mtu 1400")).then_some(())
            })?;
            ping(1_400)?;
        }
        let too_big = self.routers[1].forwarding.packets(Some("e1"), "too-big")?;
        ensure!(too_big >= 2, "{too_big} packets were too big at XDP");
        Ok(())
    }

    /// The middle router is a host as well: somebody logs in there.
    pub fn is_logged_in_to(&self) -> Result<()> {
        let middle = &self.routers[1].netns;
        let sshd = Sshd::start(middle, &self.directory("ssh")?, None)?;
        for to in ["10.9.9.2", "2001:db8:9::2"] {
            let said = wait_until(PATIENCE, "an answer of sshd", || {
                let mut session = sshd.session(&self.hosts[0], to, &["-o", "ConnectTimeout=10"]);
                let output = session.arg("echo logged in").output().ok()?;
                let said = String::from_utf8_lossy(&output.stdout).into_owned();
                output.status.success().then_some(said)
            });
            let said = said.with_context(|| sshd.log())?;
            ensure!(said.trim() == "logged in", "{said}");
        }
        Ok(())
    }

    /// How long it takes from the moment that the last router's kernel has a
    /// new route until a packet gets through by it, each of some times, in
    /// milliseconds. On a machine with other work it measures that as well.
    pub fn uses_what_is_learnt(&self, times: u8) -> Result<Vec<f64>> {
        let [left, right] = &self.hosts;
        let mut took = Vec::new();
        for number in 0..times {
            let prefix = format!("172.31.{number}.0/24");
            let address = format!("172.31.{number}.1");
            right.ip(&["addr", "add", &format!("{address}/32"), "dev", "lo"])?;
            let last = &self.routers[2];
            last.netns
                .ip(&["route", "add", &prefix, "via", "172.16.3.2"])?;
            let mut monitors = Vec::new();
            for router in &self.routers[..2] {
                let mut command = router.netns.command("ip");
                command.args(["-ts", "-o", "monitor", "route"]);
                let monitor = Lines::start(command)?;
                monitor.listens()?;
                monitors.push(monitor);
            }
            // With a deadline of its own it would end at the first error.
            let mut pings = left.command("timeout");
            pings.args(["60", "ping", "-D", "-n", "-i", "0.002", &address]);
            let mut pings = Lines::start(pings)?;
            last.frr.says(&format!(
                "configure terminal\nrouter bgp 65000\naddress-family ipv4 unicast\n\
                 network {prefix}\n"
            ))?;
            let answered = pings
                .stamp_of(" bytes from ")
                .with_context(|| format!("an answer of {address}"))?;
            let mut learnt: f64 = 0.0;
            for mut monitor in monitors {
                learnt = learnt.max(monitor.stamp_of(&prefix)?);
            }
            // Both are within a quarter of an hour.
            let since = (answered - learnt + QUARTER * 1.5) % QUARTER - QUARTER / 2.0;
            took.push(since * 1_000.0);
        }
        Ok(took)
    }
}

/// What a command says line by line, each with a time in front.
struct Lines {
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
    process: Child,
}

impl Lines {
    fn start(mut command: std::process::Command) -> Result<Self> {
        use std::io::BufRead;
        command.stdout(Stdio::piped());
        let mut process = Child::spawn(command)?;
        let out = process.process().stdout.take().context("a pipe")?;
        Ok(Self {
            lines: std::io::BufReader::new(out).lines(),
            process,
        })
    }

    /// Waits until it listens to the kernel.
    fn listens(&self) -> Result<()> {
        let id = self.process.id().to_string();
        let sockets = format!("/proc/{id}/net/netlink");
        wait_until(PATIENCE, "a listener to the kernel", || {
            let sockets = std::fs::read_to_string(&sockets).ok()?;
            let mut sockets = sockets.lines().map(str::split_whitespace);
            let listens = |mut socket: std::str::SplitWhitespace<'_>| {
                socket.nth(2) == Some(&id) && socket.next() != Some("00000000")
            };
            sockets.any(listens).then_some(())
        })
    }

    /// The time of the first line that has a text, [`seconds`].
    fn stamp_of(&mut self, text: &str) -> Result<f64> {
        for line in self.lines.by_ref() {
            let line = line?;
            if !line.contains(text) {
                continue;
            }
            let stamp = line
                .strip_prefix('[')
                .and_then(|rest| rest.split(']').next());
            return stamp.and_then(seconds).context("a time in front");
        }
        bail!("it has ended without a word of{text}")
    }
}

/// A time of day as `ip -ts` (`2026-11-24T12:45:02.538458`) or `ping -D`
/// (seconds since 1970) has it, in seconds of its quarter of an hour: no time
/// zone changes that.
fn seconds(stamp: &str) -> Option<f64> {
    let Some((_, time)) = stamp.split_once('T') else {
        return Some(stamp.parse::<f64>().ok()? % QUARTER);
    };
    let mut parts = time.split(':').skip(1);
    let minutes: f64 = parts.next()?.parse().ok()?;
    let seconds: f64 = parts.next()?.parse().ok()?;
    Some((minutes * 60.0 + seconds) % QUARTER)
}

/// Pings for a time, some hundreds a second.
fn ping_for(from: &Netns, to: &str, time: Duration) -> Result<Child> {
    let seconds = time.as_secs().max(1).to_string();
    let mut command = from.command("ping");
    command
        .args(["-q", "-i", "0.005", "-w", &seconds, to])
        .stdout(Stdio::piped());
    Child::spawn(command)
}

/// How many were sent, and answered.
fn pinged(ping: &mut Child) -> Result<[u64; 2]> {
    use std::io::Read;
    let mut said = String::new();
    let out = ping.process().stdout.take().context("a pipe")?;
    std::io::BufReader::new(out).read_to_string(&mut said)?;
    counts_of_ping(&said).with_context(|| format!("no counts in {said}"))
}

/// How many ping sent, and how many were answered: the numbers right before
/// these words.
fn counts_of_ping(said: &str) -> Option<[u64; 2]> {
    let number = |what: &str| {
        let (before, _) = said.split_once(what)?;
        before.split_whitespace().last()?.parse().ok()
    };
    Some([number(" packets transmitted")?, number(" received")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ping_counted_is_not_the_length_of_a_packet() {
        let said = "PING 2001:db8::1(2001:db8::1) 56 data bytes\n\n\
             --- 2001:db8::1 ping statistics ---\n\
             1600 packets transmitted, 0 received, 100% packet loss, time 8001ms\n";
        assert_eq!(counts_of_ping(said), Some([1600, 0]));
        assert_eq!(counts_of_ping("ping: unknown host"), None);
    }

    #[test]
    fn both_ways_to_write_a_time_are_read() {
        assert_eq!(seconds("2026-11-24T12:45:02.500000"), Some(2.5));
        assert_eq!(seconds("1795524302.500000"), Some(2.5));
        assert_eq!(seconds("noon"), None);
    }
}
