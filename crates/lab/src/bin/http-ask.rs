//! A fast HTTP client for benchmarks, one thread a connection.
//!
//! - `http-ask ask ADDRESS CONNECTIONS PER_SEC SECONDS FILE`: asks for the
//!   paths of a file in turn, so many a second in all (each at its moment,
//!   whether the one before was answered or not: its wait counts); with 0
//!   as fast as answers come. Writes: requests, seconds, the median, 99th
//!   percentile and longest time in microseconds, and the 99th percentile
//!   and longest of how late this program itself woke to ask, which those
//!   times hold.
//! - `http-ask walk ADDRESS PATH FILE`: follows the pages of CSV with one
//!   column; writes rows, rows told twice, lines of the file that were not
//!   told, pages, seconds.
//! - `http-ask hold ADDRESS STALLED STREAMS FILE`: asks for all routes so
//!   many times and takes nothing, watches so many of the paths of a file,
//!   in turn, and reads what they say; writes `held`. When its standard
//!   input ends it writes how many seconds it read, how many octets and
//!   events it heard, and how often one was told that it fell behind.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A server that is silent for so long is not there.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["ask", address, connections, per_sec, seconds, file] => ask(
            address,
            connections.parse()?,
            per_sec.parse()?,
            Duration::from_secs(seconds.parse()?),
            file,
        ),
        ["walk", address, path, file] => walk(address, path, file),
        ["hold", address, stalled, streams, file] => {
            hold(address, stalled.parse()?, streams.parse()?, file)
        }
        _ => bail!("usage: http-ask ask|walk|hold …"),
    }
}

/// A connection that is kept.
struct Client {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
    body: Vec<u8>,
    /// The path of the next page, if the last answer named one.
    next: Option<String>,
}

impl Client {
    fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream: BufReader::with_capacity(256 << 10, stream),
            request: Vec::new(),
            body: Vec::new(),
            next: None,
        })
    }

    fn send(&mut self, path: &str) -> io::Result<()> {
        self.request.clear();
        write!(
            self.request,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )?;
        self.stream.get_mut().write_all(&self.request)
    }

    /// Asks and reads the whole answer into `body`.
    fn ask(&mut self, path: &str) -> Result<()> {
        self.send(path)?;
        let mut line = String::new();
        let mut length = 0;
        let mut chunked = false;
        self.next = None;
        self.stream.read_line(&mut line)?;
        ensure!(line.contains(" 200 "), "{path}: {line}");
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let line = line.trim_end();
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse()?;
            } else if let Some(link) = line.strip_prefix("link: <") {
                self.next = link.split_once('>').map(|(next, _)| next.to_owned());
            }
            chunked |= line == "transfer-encoding: chunked";
            if line.is_empty() {
                break;
            }
        }
        self.body.clear();
        if !chunked {
            return self.read(length);
        }
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim_end(), 16)?;
            self.read(length)?;
            line.clear();
            self.stream.read_line(&mut line)?;
            if length == 0 {
                return Ok(());
            }
        }
    }

    fn read(&mut self, length: usize) -> Result<()> {
        let start = self.body.len();
        self.body.resize(start + length, 0);
        Ok(self.stream.read_exact(&mut self.body[start..])?)
    }
}

fn ask(address: &str, connections: usize, per_sec: f64, time: Duration, file: &str) -> Result<()> {
    let text = fs::read_to_string(file)?;
    let paths: Arc<Vec<String>> = Arc::new(text.lines().map(str::to_owned).collect());
    ensure!(!paths.is_empty(), "{file} names no paths");
    let start = Instant::now();
    let threads: Vec<_> = (0..connections)
        .map(|number| {
            let (paths, address) = (Arc::clone(&paths), address.to_owned());
            thread::spawn(move || {
                let mut client = Client::connect(&address)?;
                let (mut took, mut late) = (Vec::new(), Vec::new());
                let between = Duration::from_secs_f64(connections as f64 / per_sec.max(1e-9));
                let mut due = start + between.mul_f64(number as f64 / connections as f64);
                let mut at = number * paths.len() / connections;
                while start.elapsed() < time {
                    let mut from = Instant::now();
                    if per_sec > 0.0 {
                        if let Some(left) = due.checked_duration_since(from) {
                            thread::sleep(left);
                            late.push(due.elapsed().as_nanos() as u64);
                        }
                        from = due;
                        due += between;
                    }
                    client.ask(&paths[at % paths.len()])?;
                    at += 1;
                    took.push(from.elapsed().as_nanos() as u64);
                }
                anyhow::Ok((took, late))
            })
        })
        .collect();
    let (mut all, mut lates) = (Vec::new(), Vec::new());
    for thread in threads {
        match thread.join() {
            Ok(asked) => {
                let (took, late) = asked?;
                all.extend(took);
                lates.extend(late);
            }
            Err(_) => bail!("a connection panicked"),
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    all.sort_unstable();
    lates.sort_unstable();
    writeln!(
        io::stdout(),
        "{} {seconds} {} {} {} {} {}",
        all.len(),
        micros(&all, 0.5),
        micros(&all, 0.99),
        micros(&all, 1.0),
        micros(&lates, 0.99),
        micros(&lates, 1.0)
    )?;
    Ok(())
}

/// A percentile of times in order.
fn micros(nanos: &[u64], part: f64) -> f64 {
    let at = ((nanos.len() as f64 * part) as usize).min(nanos.len().saturating_sub(1));
    nanos.get(at).map_or(0.0, |nanos| *nanos as f64 / 1000.0)
}

fn walk(address: &str, path: &str, file: &str) -> Result<()> {
    let expected = fs::read_to_string(file)?;
    let mut client = Client::connect(address)?;
    let mut told: HashMap<Box<[u8]>, u32> = HashMap::new();
    let (mut rows, mut pages) = (0_u64, 0);
    let mut elapsed = Duration::ZERO;
    let mut next = Some(path.to_owned());
    while let Some(path) = next {
        let start = Instant::now();
        client.ask(&path)?;
        elapsed += start.elapsed();
        pages += 1;
        for row in client.body.split(|octet| *octet == b'\n').skip(1) {
            if !row.is_empty() {
                rows += 1;
                *told.entry(row.into()).or_default() += 1;
            }
        }
        next = client.next.take();
    }
    let twice = told.values().filter(|times| **times > 1).count();
    let missing = expected
        .lines()
        .filter(|line| !told.contains_key(line.as_bytes()))
        .count();
    let seconds = elapsed.as_secs_f64();
    writeln!(io::stdout(), "{rows} {twice} {missing} {pages} {seconds}")?;
    Ok(())
}

/// What all streams together heard.
#[derive(Default)]
struct Heard {
    octets: AtomicU64,
    events: AtomicU64,
    fell_behind: AtomicU64,
}

impl Heard {
    /// Reads a stream to its end. Silence is none: nothing may have changed.
    fn listen(&self, stream: &mut BufReader<TcpStream>) {
        let mut line = Vec::new();
        loop {
            line.clear();
            match stream.read_until(b'\n', &mut line) {
                Ok(0) => return,
                Ok(octets) => self.octets.fetch_add(octets as u64, Ordering::Relaxed),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(_) => return,
            };
            if line.starts_with(b"event: fell_behind") {
                self.fell_behind.fetch_add(1, Ordering::Relaxed);
            } else if line.starts_with(b"event: ") {
                self.events.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

fn hold(address: &str, stalled: usize, streams: usize, file: &str) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).context("raising the limit of descriptors")?;
    let paths = fs::read_to_string(file)?;
    let paths: Vec<&str> = paths.lines().collect();
    ensure!(!paths.is_empty(), "{file} names no paths");
    let start = Instant::now();
    let mut held = Vec::new();
    for _ in 0..stalled {
        let mut client = Client::connect(address)?;
        client.send("/v1/routes")?;
        held.push(client);
    }
    let heard = Arc::new(Heard::default());
    for path in paths.iter().cycle().take(streams) {
        let mut client = Client::connect(address)?;
        client.send(path)?;
        let heard = Arc::clone(&heard);
        // A small stack: there are many, and they do nothing but read.
        let reader = thread::Builder::new().stack_size(64 << 10);
        reader.spawn(move || heard.listen(&mut client.stream))?;
    }
    writeln!(io::stdout(), "held")?;
    io::stdout().flush()?;
    let mut end = Vec::new();
    io::stdin().read_to_end(&mut end)?;
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    writeln!(
        io::stdout(),
        "{} {} {} {}",
        start.elapsed().as_secs_f64(),
        of(&heard.octets),
        of(&heard.events),
        of(&heard.fell_behind)
    )?;
    drop(held);
    Ok(())
}
