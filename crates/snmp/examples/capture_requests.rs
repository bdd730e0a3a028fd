//! Makes the corpus of the fuzz targets `snmp_message` and `snmp_agent`:
//! net-snmp's tools ask the agent of the targets on loopback, whose clock
//! stands still, and what they send is kept, one file for each datagram.
//! Authenticated messages stay valid, because time stands still in the
//! targets as well.
//!
//! `cargo run -p fingerpost-snmp --example capture_requests`, in the workspace.

#![allow(clippy::expect_used, reason = "the targets' own checks")]

use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use fingerpost_snmp::agent::{ANSWER_BUFFER_BYTES, Agent, Outcome};
use fingerpost_snmp::mib::DefaultContext;

#[allow(dead_code, reason = "the targets use what is not used here")]
#[path = "../../../fuzz/src/snmp.rs"]
mod fixture;

const V1: &str = "-v1 -c public";
const V2C: &str = "-v2c -c public";
const CLEAR: &str = "-v3 -u clear -l noAuthNoPriv";
const SIGNED: &str =
    "-v3 -u signed -l authNoPriv -a SHA -3k 0x5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a";
const SEALED: &str = "-v3 -u sealed -l authPriv -a MD5 -3k 0x5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a \
                      -x DES -3K 0x5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a";

/// Name of a file, tool, who asks, what is asked.
const CASES: &[(&str, &str, &str, &str)] = &[
    (
        "v1-get",
        "snmpget",
        V1,
        ".1.3.6.1.2.1.1.1.0 .1.3.6.1.2.1.1.2.0",
    ),
    (
        "v1-get-missing",
        "snmpget",
        V1,
        ".1.3.6.1.2.1.1.1.0 .1.3.6.1.2.1.9",
    ),
    ("v1-next", "snmpgetnext", V1, ".1.3.6.1.2.1.1.10.1.2.2000"),
    ("v1-set", "snmpset", V1, ".1.3.6.1.2.1.1.1.0 s name"),
    (
        "v2c-get",
        "snmpget",
        V2C,
        ".1.3.6.1.2.1.1.10.1.3.50 .1.3.6.1.2.1.1.99.0",
    ),
    (
        "v2c-next",
        "snmpgetnext",
        V2C,
        ".1.3 .1.3.6.1.2.1.1.3.0 .1.4",
    ),
    (
        "v2c-bulk",
        "snmpbulkget",
        "-v2c -c public -Cn1 -Cr9",
        ".1.3 .1.3.6.1.2.1.1.10.1.1 .1.3.6.1.2.1.1.10.1.2",
    ),
    (
        "v2c-bulk-all",
        "snmpbulkget",
        "-v2c -c public -Cr2147483647",
        ".1.3",
    ),
    (
        "v2c-set",
        "snmpset",
        V2C,
        ".1.3.6.1.2.1.1.7.0 i -5 .1.3.6.1.2.1.1.8.0 a 192.0.2.1 .1.3.6.1.2.1.1.3.0 t 99",
    ),
    (
        "v2c-set-more",
        "snmpset",
        V2C,
        ".1.3.6.1.2.1.1.2.0 o .1.3.6.1.4 .1.3.6.1.2.1.1.10.1.4.50 u 4294967295",
    ),
    ("v3-clear-get", "snmpget", CLEAR, ".1.3.6.1.2.1.1.1.0"),
    (
        "v3-clear-context",
        "snmpget",
        "-v3 -u clear -l noAuthNoPriv -n red",
        ".1.3.6.1.2.1.1.1.0",
    ),
    (
        "v3-unknown",
        "snmpget",
        "-v3 -u eve -l noAuthNoPriv",
        ".1.3.6.1.2.1.1.1.0",
    ),
    ("v3-signed-bulk", "snmpbulkget", SIGNED, ".1.3.6.1.2.1.1.10"),
    ("v3-sealed-next", "snmpgetnext", SEALED, ".1.3.6.1.2.1.1.10"),
    (
        "v3-sealed-set",
        "snmpset",
        SEALED,
        ".1.3.6.1.2.1.1.1.0 s name",
    ),
    (
        "v2c-trap",
        "snmptrap",
        V2C,
        "7 .1.3.6.1.6.3.1.1.5.3 .1.3.6.1.2.1.2.2.1.1.4 i 4",
    ),
    (
        "v1-trap",
        "snmptrap",
        V1,
        ".1.3.6.1.4.1.8072 192.0.2.1 2 0 7 .1.3.6.1.2.1.2.2.1.1.4 i 4",
    ),
];

fn main() -> Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let port = socket.local_addr()?.port();
    socket.set_read_timeout(Some(Duration::from_millis(300)))?;
    for (name, tool, who, what) in CASES {
        let mut command = Command::new(tool);
        command
            .args(["-r", "0", "-t", "1"])
            .args(who.split_whitespace());
        command.arg(format!("127.0.0.1:{port}"));
        command.args(what.split_whitespace());
        command.env("MIBS", "").env("SNMPCONFPATH", "/nonexistent");
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {tool} (package snmp)"))?;
        let waiter = thread::spawn(move || child.wait());
        capture(&socket, name)?;
        let _ = waiter.join();
    }
    Ok(())
}

/// Answers what comes and keeps it, until nothing more comes.
fn capture(socket: &UdpSocket, name: &str) -> Result<()> {
    let mut agent = Agent::new(fixture::config())?;
    let objects = fixture::objects();
    let mut datagram = vec![0; 65_535];
    let mut out = vec![0; ANSWER_BUFFER_BYTES];
    let mut kept = 0;
    while let Ok((len, from)) = socket.recv_from(&mut datagram) {
        let datagram = &datagram[..len];
        for target in ["snmp_message", "snmp_agent"] {
            let directory = format!("fuzz/corpus/{target}");
            fs::create_dir_all(&directory)?;
            fs::write(format!("{directory}/{name}-{kept}"), datagram)?;
        }
        kept += 1;
        let contexts = DefaultContext(&objects);
        let now = fixture::NOW_MILLIS;
        let outcome = agent.answer(datagram, from.ip(), now, &contexts, &mut out);
        writeln!(
            std::io::stdout().lock(),
            "{name} {kept}: {len} bytes, {outcome:?}"
        )?;
        if let Outcome::Answered(len) = outcome {
            socket.send_to(&out[..len], from)?;
        }
    }
    Ok(())
}
