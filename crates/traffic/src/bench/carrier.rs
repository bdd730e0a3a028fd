//! The shapes of carriers: 63 ports for each of many inside hosts, and one
//! client port to many remotes.

use std::net::Ipv4Addr;

use anyhow::Result;

use super::growth::{Start, Subject};
use super::load::Random;
use super::measure::{How, Row, reference};

/// Ports of each host, as CSIT's tests of NAT have them.
const PORTS: usize = 63;
const HOSTS: [usize; 5] = [1_024, 4_096, 16_384, 65_536, 262_144];
/// Remotes of the one port.
const REMOTES: usize = 30_000;

/// All numbers of hosts.
pub fn measure(quick: bool) -> Result<Vec<Row>> {
    let most = if quick { 16_384 } else { usize::MAX };
    let mut rows = Vec::new();
    for hosts in HOSTS.into_iter().filter(|hosts| *hosts <= most) {
        let flows = hosts * PORTS;
        let mut subject = Subject::new(flows, Start::Given)?;
        rows.push(reference(flows));
        let new = subject.grow(|_, place| {
            let (host, port) = (place / PORTS, place % PORTS);
            let inside = Ipv4Addr::from(0x6440_0000 | host as u32);
            let remote = Ipv4Addr::from(0x1400_0000 | host as u32);
            (inside, 1_024 + port as u16, (remote, 80))
        })?;
        for (how, values) in How::BOTH.into_iter().zip(new) {
            let a_second = values.iter().map(|ns| 1e9 / ns).collect();
            rows.push(Row::ns(how, "new flow", flows, values));
            rows.push(Row::new(
                how.who(),
                "new flows",
                flows,
                "a_second",
                a_second,
            ));
        }
        rows.push(Row::bytes_per_flow(&subject.nat, flows));
        subject.answer()?;
        for how in How::BOTH {
            let uniform = |random: &mut Random, flows: usize| random.below(flows);
            rows.push(subject.existing(how, true, "uniform out", uniform)?);
            rows.push(subject.existing(how, false, "uniform in", uniform)?);
            rows.push(subject.existing(how, true, "Zipf out", Random::zipf)?);
            rows.push(subject.existing(how, false, "Zipf in", Random::zipf)?);
        }
    }
    Ok(rows)
}

/// One client port to 30,000 remotes, beside as many flows of many hosts.
pub fn one_port() -> Result<Vec<Row>> {
    // What comes first would pay for memory that is touched for the first
    // time: it is measured once more behind, and forgotten here.
    one_port_or_many(&mut Vec::new(), "warm", false)?;
    let mut rows = vec![reference(REMOTES)];
    for (name, alike) in [("one port", true), ("many hosts", false)] {
        one_port_or_many(&mut rows, name, alike)?;
    }
    Ok(rows)
}

fn one_port_or_many(rows: &mut Vec<Row>, name: &str, alike: bool) -> Result<()> {
    let mut subject = Subject::new(REMOTES, Start::Given)?;
    let new = subject.grow(|_, place| {
        let remote = (Ipv4Addr::from(0x1234_0000 + place as u32), 443);
        let host = if alike { 0 } else { place as u32 };
        (Ipv4Addr::from(0x0a00_0001 + host), 40_000, remote)
    })?;
    for (how, values) in How::BOTH.into_iter().zip(new) {
        rows.push(Row::ns(how, &format!("{name}: new flow"), REMOTES, values));
    }
    subject.answer()?;
    let uniform = |random: &mut Random, flows: usize| random.below(flows);
    for how in How::BOTH {
        for (out, what) in [(true, "out"), (false, "in")] {
            rows.push(subject.existing(how, out, &format!("{name}: {what}"), uniform)?);
        }
        let what = format!("{name}: unknown in");
        rows.push(subject.unknown(how, &what, |random, _| {
            let mut ends = random.outside();
            ends.destination_port = 40_000;
            ends
        })?);
    }
    Ok(())
}
