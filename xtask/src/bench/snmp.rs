//! Case `snmp`: the tables of SNMP that hurt, from Fingerpost and from
//! net-snmp's snmpd, with net-snmp's own clients and with a fast one of
//! ours, so that the agent and not the client is the limit.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ::lab::Netns;
use ::lab::bench::Samples;
use ::lab::situation::routes::{self, Family};
use ::lab::situation::{links, neighbours};
use anyhow::{Context, Result, bail};

use super::Setting;
use super::command::{Contender, Daemon, in_turn};
use crate::host::say;

const OURS: &str = "fingerpost";
const THEIRS: &str = "snmpd";
/// Where each listens.
const PORTS: [(&str, u16); 2] = [(OURS, 1161), (THEIRS, 1163)];
/// One who needs longer has lost.
const PATIENCE: &str = "60";
/// How long idleness is measured.
const IDLE: Duration = Duration::from_secs(5);

/// A table, and how it is walked.
struct Table {
    name: &'static str,
    oid: &'static str,
    /// A column, and the part of its index before addresses: for the fast
    /// client, which divides it by the first octet.
    column: (&'static str, Option<&'static str>),
    /// More rows than this snmpd does not answer in any bearable time.
    theirs_up_to: u64,
}

const ROUTES: [Table; 2] = [
    Table {
        name: "inetCidrRouteTable",
        oid: ".1.3.6.1.2.1.4.24.7",
        column: ("1.3.6.1.2.1.4.24.7.1.7", Some("1.4")),
        theirs_up_to: 10_000,
    },
    Table {
        name: "ipCidrRouteTable",
        oid: ".1.3.6.1.2.1.4.24.4",
        column: ("1.3.6.1.2.1.4.24.4.1.5", None),
        theirs_up_to: 10_000,
    },
];

const NEIGHBOURS: Table = Table {
    name: "ipNetToMediaTable",
    oid: ".1.3.6.1.2.1.4.22",
    column: ("1.3.6.1.2.1.4.22.1.2", None),
    theirs_up_to: 4_000,
};

const LINKS: [Table; 2] = [
    Table {
        name: "ifTable",
        oid: ".1.3.6.1.2.1.2.2",
        column: ("1.3.6.1.2.1.2.2.1.10", None),
        theirs_up_to: 4_000,
    },
    Table {
        name: "ipAddrTable",
        oid: ".1.3.6.1.2.1.4.20",
        column: ("1.3.6.1.2.1.4.20.1.1", None),
        theirs_up_to: 1_000,
    },
];

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    let sizes = |all: &[usize]| {
        let largest = if setting.quick {
            all.len() - 1
        } else {
            all.len()
        };
        all[..largest].to_vec()
    };
    for size in sizes(&[1_000, 10_000, 100_000, 1_000_000]) {
        say(format_args!("snmp: {size} routes"));
        let netns = Netns::new("bench")?;
        routes::build(&netns, Family::V4, size)?;
        compare(setting, &netns, size as u64, &ROUTES, samples)?;
    }
    for size in sizes(&[4_000, 20_000, 100_000]) {
        say(format_args!("snmp: {size} neighbours"));
        let netns = Netns::new("bench")?;
        neighbours::build(&netns, size)?;
        compare(setting, &netns, size as u64, &[NEIGHBOURS], samples)?;
    }
    for size in sizes(&[100, 1_000, 4_000, 20_000]) {
        say(format_args!("snmp: {size} interfaces"));
        let netns = Netns::new("bench")?;
        links::build(&netns, size)?;
        compare(setting, &netns, size as u64, &LINKS, samples)?;
    }
    Ok(())
}

fn compare(
    setting: &Setting,
    netns: &Netns,
    size: u64,
    tables: &[Table],
    samples: &mut Samples,
) -> Result<()> {
    let daemon = Daemon::start(setting, netns)?;
    first_answer(netns, size, samples)?;
    for table in tables {
        let theirs = if size <= table.theirs_up_to {
            Some(Snmpd::start(netns)?)
        } else {
            None
        };
        walks(setting, netns, size, table, theirs.is_some(), samples)?;
        fast(setting, netns, &daemon, size, table, samples)?;
    }
    let before = daemon.cpu_ms();
    sleep(IDLE);
    let idle = (daemon.cpu_ms() - before) / IDLE.as_secs_f64();
    samples.add(OURS, "idle", size, "cpu_ms_per_s", idle);
    Ok(())
}

/// How long the first question after the start takes, the client's own
/// start included.
fn first_answer(netns: &Netns, size: u64, samples: &mut Samples) -> Result<()> {
    let socket = netns.inside(|| -> Result<_> {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(("127.0.0.1", PORTS[0].1))?;
        socket.set_read_timeout(Some(Duration::from_secs(5)))?;
        Ok(socket)
    })??;
    // GetNext of inetCidrRouteTable, v2c, community `public`.
    let ask = [
        &[0x30, 0x29, 2, 1, 1, 4, 6][..],
        b"public",
        &[
            0xa1, 0x1c, 2, 1, 1, 2, 1, 0, 2, 1, 0, 0x30, 0x11, 0x30, 0x0f,
        ],
        &[6, 0x0b, 0x2b, 6, 1, 2, 1, 4, 24, 7, 1, 7, 1, 5, 0],
    ]
    .concat();
    let mut answer = [0; 2_048];
    let start = Instant::now();
    socket.send(&ask)?;
    socket.recv(&mut answer).context("no first answer")?;
    let micros = start.elapsed().as_secs_f64() * 1_000_000.0;
    samples.add(OURS, "first answer", size, "wall_us", micros);
    Ok(())
}

/// With net-snmp's clients.
fn walks(
    setting: &Setting,
    netns: &Netns,
    size: u64,
    table: &Table,
    with_theirs: bool,
    samples: &mut Samples,
) -> Result<()> {
    let mut contenders = Vec::new();
    for (who, port) in PORTS {
        if who == THEIRS && !with_theirs {
            continue;
        }
        let patience = if who == THEIRS { PATIENCE } else { "1" };
        let common = format!(
            "-v2c -c public -On -t {patience} 127.0.0.1:{port} {}",
            table.oid
        );
        let bulk = format!("{}: snmpbulkwalk -Cr50", table.name);
        let words = format!("-Cr50 {common}");
        contenders.push(Contender::new(who, &bulk, "snmpbulkwalk", &words));
        // A million one by one tell nothing new.
        if size <= 10_000 {
            let steps = format!("{}: snmpwalk", table.name);
            contenders.push(Contender::new(who, &steps, "snmpwalk", &common));
        }
    }
    in_turn(setting, netns, size, &mut contenders, samples)
}

/// With the fast client: what the agent itself can do.
fn fast(
    setting: &Setting,
    netns: &Netns,
    daemon: &Daemon,
    size: u64,
    table: &Table,
    samples: &mut Samples,
) -> Result<()> {
    let what = format!("{}: fast client", table.name);
    let program = setting.programs.join("snmp-walk");
    let program = program.to_str().context("a path that is not UTF-8")?;
    let (column, prefix) = table.column;
    // A small table many times over; a large one in parts.
    let (repetitions, walks) = if size <= 20_000 {
        ("100", (400_000 / size).to_string())
    } else {
        ("500", "0".to_owned())
    };
    let mut words = vec!["127.0.0.1:1161", repetitions, "32", &walks, column];
    words.extend(prefix.filter(|_| walks == "0"));
    for _ in 0..setting.rounds {
        let before = daemon.cpu_ms();
        let line = netns.run(program, &words)?;
        let cpu_ns = (daemon.cpu_ms() - before) * 1_000_000.0;
        let numbers: Vec<f64> = line
            .split_whitespace()
            .filter_map(|number| number.parse().ok())
            .collect();
        let [_rows, bindings, _answers, seconds] = numbers[..] else {
            bail!("snmp-walk wrote {line:?}");
        };
        samples.add(OURS, &what, size, "bindings_per_s", bindings / seconds);
        samples.add(OURS, &what, size, "agent_ns_per_binding", cpu_ns / bindings);
    }
    Ok(())
}

/// A running snmpd; ended when dropped.
struct Snmpd(Child);

impl Snmpd {
    fn start(netns: &Netns) -> Result<Self> {
        let directory = std::env::temp_dir();
        let config = directory.join(format!("fingerpost-bench-{}.conf", std::process::id()));
        std::fs::write(
            &config,
            "rocommunity public\nagentAddress udp:127.0.0.1:1163\n",
        )?;
        let started = netns.inside(|| Self::spawn(&config))?;
        let snmpd = started?;
        let deadline = Instant::now() + Duration::from_secs(60);
        let words = "-v2c -c public -t 1 -r 0 127.0.0.1:1163 .1.3.6.1.2.1.1.3.0";
        let words: Vec<&str> = words.split(' ').collect();
        while netns.run("snmpget", &words).is_err() {
            if Instant::now() > deadline {
                bail!("snmpd does not answer");
            }
        }
        std::fs::remove_file(config)?;
        Ok(snmpd)
    }

    fn spawn(config: &Path) -> Result<Self> {
        let mut command = Command::new("snmpd");
        command.args(["-f", "-Ln", "-C", "-c"]).arg(config);
        command.env("SNMP_PERSISTENT_DIR", std::env::temp_dir());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::null()).spawn();
        Ok(Self(child.context("starting snmpd")?))
    }
}

impl Drop for Snmpd {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
