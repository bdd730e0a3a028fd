//! A small BGP speaker (RFC 4271): it announces as many IPv4 prefixes as are
//! wanted, for tests and measurements with a real bgpd. It holds the session
//! without keepalives (hold time 0) and does not look at what it is told.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::ops::Range;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// Bytes of a message's header.
const HEADER: usize = 19;
/// A message has at most 4,096 bytes (§4); so many prefixes of /24 fit.
const PREFIXES: usize = 900;
/// Path attribute flags: well-known and transitive (§4.3).
const TRANSITIVE: u8 = 0x40;
/// For the other side to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// An established session. Dropped, it ends, and what it announced goes.
#[derive(Debug)]
pub struct Speaker {
    stream: TcpStream,
    local_as: u16,
    ear: Option<JoinHandle<()>>,
}

/// The n-th prefix that a speaker announces: /24s from 20.0.0.0 on.
pub fn prefix(number: u32) -> Ipv4Addr {
    Ipv4Addr::from((20 << 24) + (number << 8))
}

impl Speaker {
    /// Opens a session from the calling thread's namespace.
    pub fn open(bgpd: SocketAddr, local_as: u16, id: Ipv4Addr) -> Result<Self> {
        let mut stream = TcpStream::connect_timeout(&bgpd, PATIENCE)
            .with_context(|| format!("connecting to bgpd at {bgpd}"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let [high, low] = local_as.to_be_bytes();
        let mut open = vec![4, high, low, 0, 0];
        open.extend(id.octets());
        open.push(0);
        send(&mut stream, 1, &open)?;
        ensure!(receive(&mut stream)? == 1, "bgpd sent no OPEN");
        send(&mut stream, 4, &[])?;
        ensure!(receive(&mut stream)? == 4, "bgpd sent no KEEPALIVE");
        stream.set_read_timeout(None)?;
        let mut heard = stream.try_clone()?;
        let ear = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while heard.read(&mut bytes).is_ok_and(|read| read > 0) {}
        });
        Ok(Self {
            stream,
            local_as,
            ear: Some(ear),
        })
    }

    /// Announces prefixes by their numbers, all via one next hop.
    pub fn announce(&mut self, numbers: Range<u32>, next_hop: Ipv4Addr) -> Result<()> {
        let [high, low] = self.local_as.to_be_bytes();
        // ORIGIN IGP; AS_PATH of one sequence with one AS; NEXT_HOP.
        let mut attributes = vec![TRANSITIVE, 1, 1, 0, TRANSITIVE, 2, 4, 2, 1, high, low];
        attributes.extend([TRANSITIVE, 3, 4]);
        attributes.extend(next_hop.octets());
        let len = u16::try_from(attributes.len())?.to_be_bytes();
        self.update(numbers, |prefixes| {
            [&[0, 0][..], &len, &attributes, prefixes].concat()
        })
    }

    /// Takes prefixes back.
    pub fn withdraw(&mut self, numbers: Range<u32>) -> Result<()> {
        self.update(numbers, |prefixes| {
            let len = (prefixes.len() as u16).to_be_bytes();
            [&len[..], prefixes, &[0, 0]].concat()
        })
    }

    fn update(&mut self, numbers: Range<u32>, body: impl Fn(&[u8]) -> Vec<u8>) -> Result<()> {
        let numbers: Vec<u32> = numbers.collect();
        for some in numbers.chunks(PREFIXES) {
            let prefixes: Vec<u8> = some
                .iter()
                .flat_map(|number| {
                    let [a, b, c, _] = prefix(*number).octets();
                    [24, a, b, c]
                })
                .collect();
            send(&mut self.stream, 2, &body(&prefixes))?;
        }
        Ok(())
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        // It fails where bgpd has closed already.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        if let Some(ear) = self.ear.take() {
            let _ = ear.join();
        }
    }
}

fn send(stream: &mut TcpStream, kind: u8, body: &[u8]) -> Result<()> {
    let len = u16::try_from(HEADER + body.len())?.to_be_bytes();
    let message = [&[0xff; 16][..], &len, &[kind], body].concat();
    stream.write_all(&message).context("sending to bgpd")
}

/// The kind of the next message.
fn receive(stream: &mut TcpStream) -> Result<u8> {
    let mut header = [0; HEADER];
    stream
        .read_exact(&mut header)
        .context("waiting for bgpd's answer")?;
    let [.., high, low, kind] = header;
    let len = usize::from(u16::from_be_bytes([high, low]));
    let mut body = vec![0; len.saturating_sub(HEADER)];
    stream
        .read_exact(&mut body)
        .context("reading bgpd's answer")?;
    ensure!(kind != 3, "bgpd refuses: notification {body:?}");
    Ok(kind)
}
