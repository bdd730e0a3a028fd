//! A network manager's way of asking: `GetBulk` of version 2c, sent again
//! when no answer comes. It walks columns beside each other, so that each
//! answer has the time and the age of its counters, as no tool of net-snmp
//! does for more than one request.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use snmp::Value;
use snmp::ber::{Writer, tag};
use snmp::message::{Message, V2C};
use snmp::pdu::{OpenPdu, Pdu, PduKind};

use crate::Netns;

/// As net-snmp's tools have it.
const TIMEOUT: Duration = Duration::from_secs(1);
const TRIES: usize = 6;
const PORT: u16 = 1161;
const COMMUNITY: &[u8] = b"public";
/// No datagram is longer.
const DATAGRAM_BYTES: usize = 65_536;

/// A name and its number.
pub type Binding = (Vec<u32>, u64);

/// Somebody who asks an agent on the loopback.
#[derive(Debug)]
pub struct Manager {
    socket: UdpSocket,
    last_id: i32,
    /// Requests that had to be sent again.
    pub again: usize,
}

impl Manager {
    /// Inside a namespace.
    pub fn new(netns: &Netns) -> Result<Self> {
        let socket = netns.inside(|| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            socket.connect((Ipv4Addr::LOCALHOST, PORT))?;
            Ok::<_, std::io::Error>(socket)
        })??;
        Ok(Self {
            socket,
            last_id: 0,
            again: 0,
        })
    }

    /// The first name once, the others so often: what is behind them. Values
    /// that are no numbers end it.
    pub fn bulk(&mut self, names: &[&[u32]], repetitions: i32) -> Result<Vec<Binding>> {
        self.last_id += 1;
        let request = request(self.last_id, names, repetitions)?;
        let mut answer = vec![0; DATAGRAM_BYTES];
        for _ in 0..TRIES {
            self.socket.send(&request)?;
            loop {
                let len = match self.socket.recv(&mut answer) {
                    Ok(len) => len,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error).context("no answer"),
                };
                // What answers a request of before came too late.
                if let Some(bindings) = bindings(&answer[..len], self.last_id)? {
                    return Ok(bindings);
                }
            }
            self.again += 1;
        }
        bail!("no answer to {TRIES} requests")
    }
}

fn request(id: i32, names: &[&[u32]], repetitions: i32) -> Result<Vec<u8>> {
    let mut bytes = vec![0; DATAGRAM_BYTES];
    let mut out = Writer::new(&mut bytes);
    let message = out.open(tag::SEQUENCE)?;
    out.integer(V2C)?;
    out.octets(COMMUNITY)?;
    let pdu = OpenPdu::begin(&mut out, PduKind::GetBulk, id, 1, repetitions)?;
    for name in names {
        out.binding(name, &Value::Null)?;
    }
    pdu.end(&mut out);
    out.close(message);
    let len = out.len();
    bytes.truncate(len);
    Ok(bytes)
}

/// What an answer says; `None`: it answers another request.
fn bindings(answer: &[u8], id: i32) -> Result<Option<Vec<Binding>>> {
    let Message::Community(mut message) = Message::read(answer)? else {
        bail!("an answer of another version");
    };
    let pdu = Pdu::read(&mut message.pdu)?;
    if pdu.request_id != id {
        return Ok(None);
    }
    ensure!(
        pdu.error_status == 0,
        "error {} in an answer",
        pdu.error_status
    );
    let mut bindings = Vec::new();
    let mut has_ended = false;
    pdu.bindings.for_each(|name, value| {
        let number = match value {
            Value::Counter64(number) => Some(number),
            Value::Gauge32(number) | Value::TimeTicks(number) | Value::Counter32(number) => {
                Some(number.into())
            }
            _ => None,
        };
        has_ended |= number.is_none();
        if let Some(number) = number.filter(|_| !has_ended) {
            bindings.push((name.to_vec(), number));
        }
    })?;
    Ok(Some(bindings))
}
