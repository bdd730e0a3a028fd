//! Where the lines come from: the command line, a pattern, a prefix to be
//! split, a file of `ip`'s lines or of JSON objects. One line at a time,
//! whatever the length of the file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use ipnet::IpNet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use words::{Listing, Object, json};

use crate::pattern::{self, Numbers};

/// Octets read at once.
const BUFFER: usize = 256 << 10;
/// How often is looked whether to stop while nothing comes.
const LOOK_AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};
/// A longer line is none.
const MAX_LINE: usize = 64 << 10;
/// A longer JSON object is none: a link with some hundred thousand
/// addresses.
const MAX_OBJECT: usize = 64 << 20;

/// Lines, or where they come from.
pub enum Source {
    /// One, as it was said.
    Once(Option<String>),
    /// One for each number.
    Pattern {
        pattern: String,
        numbers: Numbers,
    },
    /// The first address of each part of a prefix.
    Split(Split),
    File(Lines),
}

/// A prefix split into parts: `--split 10.0.0.0/18 --len 30`.
pub struct Split {
    parts: ipnet::IpSubnets,
    /// What is said of each.
    words: String,
    done: u64,
}

/// The lines of a file.
pub struct Lines {
    reader: BufReader<Input>,
    object: Object,
    is_json: Option<bool>,
    /// Number of the line that was read last.
    number: u64,
    read: u64,
    bytes: Vec<u8>,
    /// Lines of what `ip` prints, put together.
    listing: Listing,
    /// Lines that are ready, with their numbers.
    queue: VecDeque<(u64, String)>,
}

/// A file or pipe whose reading ends when it is told to stop: a pipe may
/// have nothing to say for ever.
struct Input {
    descriptor: OwnedFd,
    stop: Arc<AtomicBool>,
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(0);
            }
            let mut ready = [PollFd::new(&self.descriptor, PollFlags::IN)];
            match poll(&mut ready, Some(&LOOK_AGAIN)) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(errno) => return Err(errno.into()),
            }
            match read(&self.descriptor, &mut *buffer) {
                Err(Errno::INTR) => {}
                result => return Ok(result?),
            }
        }
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// A line that cannot be read, which does not hinder the next.
pub struct Unreadable {
    pub why: String,
}

impl Split {
    /// `words` are what is said of each address: its link.
    pub fn new(prefix: IpNet, len: u8, words: String) -> Result<Self> {
        let parts = prefix.subnets(len).with_context(|| {
            format!(
                "--len {len}: a length from {} on is expected",
                prefix.prefix_len()
            )
        })?;
        if u32::from(len) - u32::from(prefix.prefix_len()) > 24 {
            bail!("{prefix} has more than 16,777,216 parts of length {len}; split fewer");
        }
        Ok(Self {
            parts,
            words,
            done: 0,
        })
    }
}

impl Source {
    /// A file, `-` for standard input, that ends early when `stop` is set.
    /// Its length too, if it is known.
    pub fn file(
        path: &Path,
        object: Object,
        stop: &Arc<AtomicBool>,
    ) -> Result<(Self, Option<u64>)> {
        let (descriptor, len): (OwnedFd, Option<u64>) = if path == Path::new("-") {
            let stdin = io::stdin().as_fd().try_clone_to_owned();
            (stdin.context("standard input")?, None)
        } else {
            let file = File::open(path).with_context(|| path.display().to_string())?;
            let data = file
                .metadata()
                .with_context(|| path.display().to_string())?;
            if data.is_dir() {
                bail!("{}: a directory; a file is wanted", path.display());
            }
            (file.into(), data.is_file().then_some(data.len()))
        };
        let lines = Lines {
            reader: BufReader::with_capacity(
                BUFFER,
                Input {
                    descriptor,
                    stop: Arc::clone(stop),
                },
            ),
            object,
            is_json: None,
            number: 0,
            read: 0,
            bytes: Vec::new(),
            listing: Listing::new(object),
            queue: VecDeque::new(),
        };
        Ok((Self::File(lines), len))
    }

    /// The next line, in place of what `line` was, and its number; `None`
    /// at the end.
    pub fn next(&mut self, line: &mut String) -> Result<Option<(u64, Result<(), Unreadable>)>> {
        line.clear();
        match self {
            Self::Once(once) => Ok(once.take().map(|said| {
                *line = said;
                (1, Ok(()))
            })),
            Self::Pattern { pattern, numbers } => Ok(numbers.0.next().map(|number| {
                let filled = pattern::fill(pattern, number, line);
                (number, filled.map_err(|why| Unreadable { why }))
            })),
            Self::Split(split) => Ok(split.next(line).map(|number| (number, Ok(())))),
            Self::File(lines) => lines.next(line),
        }
    }

    /// Bytes of the file that were read.
    pub fn read(&self) -> u64 {
        match self {
            Self::File(lines) => lines.read,
            _ => 0,
        }
    }
}

impl Split {
    fn next(&mut self, line: &mut String) -> Option<u64> {
        let part = self.parts.next()?;
        let has_own = part.max_prefix_len() - part.prefix_len() >= 2;
        let first = if has_own {
            part.hosts().next().unwrap_or(part.network())
        } else {
            part.network()
        };
        *line = match part {
            IpNet::V4(part) if has_own => format!(
                "{first}/{} brd {} {}",
                part.prefix_len(),
                part.broadcast(),
                self.words
            ),
            _ => format!("{first}/{} {}", part.prefix_len(), self.words),
        };
        self.done += 1;
        Some(self.done)
    }
}

impl Lines {
    fn next(&mut self, line: &mut String) -> Result<Option<(u64, Result<(), Unreadable>)>> {
        if let Some((number, next)) = self.queue.pop_front() {
            *line = next;
            return Ok(Some((number, Ok(()))));
        }
        let is_json = match self.is_json {
            Some(is_json) => is_json,
            None => self.look()?,
        };
        if is_json {
            self.next_object(line)
        } else {
            self.next_line(line)
        }
    }

    /// Whether it begins as JSON does.
    fn look(&mut self) -> Result<bool> {
        let first = loop {
            let bytes = self.reader.fill_buf().context("reading")?;
            let blank = bytes.iter().take_while(|b| b.is_ascii_whitespace()).count();
            let first = bytes.get(blank).copied();
            if first.is_some() || bytes.is_empty() {
                break first;
            }
            self.skip(blank)?;
        };
        let is_json = matches!(first, Some(b'{' | b'['));
        self.is_json = Some(is_json);
        Ok(is_json)
    }

    /// Passes over octets that are in the buffer.
    fn skip(&mut self, len: usize) -> Result<()> {
        let bytes = self.reader.fill_buf().context("reading")?;
        let skipped = bytes.get(..len).unwrap_or(bytes);
        self.number += skipped.iter().filter(|b| **b == b'\n').count() as u64;
        self.read += len as u64;
        self.reader.consume(len);
        Ok(())
    }

    fn next_line(&mut self, line: &mut String) -> Result<Option<(u64, Result<(), Unreadable>)>> {
        loop {
            self.bytes.clear();
            let mut limited = (&mut self.reader).take(MAX_LINE as u64 + 1);
            let len = limited
                .read_until(b'\n', &mut self.bytes)
                .with_context(|| format!("reading line {}", self.number + 1))?;
            if len == 0 {
                let open = self.listing.end();
                return Ok(open.map(|(number, text)| {
                    *line = text;
                    (number, Ok(()))
                }));
            }
            self.number += 1;
            self.read += len as u64;
            if len > MAX_LINE {
                bail!(
                    "line {} is longer than {MAX_LINE} octets: is it text?",
                    self.number
                );
            }
            let Ok(text) = std::str::from_utf8(&self.bytes) else {
                let why = "the line is not UTF-8".to_owned();
                return Ok(Some((self.number, Err(Unreadable { why }))));
            };
            let text = text.split('#').next().unwrap_or_default();
            if text.trim().is_empty() {
                continue;
            }
            self.queue.extend(self.listing.take(self.number, text));
            if let Some((number, next)) = self.queue.pop_front() {
                *line = next;
                return Ok(Some((number, Ok(()))));
            }
        }
    }

    fn next_object(&mut self, line: &mut String) -> Result<Option<(u64, Result<(), Unreadable>)>> {
        loop {
            if !self.frame()? {
                return Ok(None);
            }
            let mut lines = Vec::new();
            if let Err(why) = json::lines(self.object, &self.bytes, &mut lines) {
                return Ok(Some((self.number + 1, Err(Unreadable { why }))));
            }
            let number = self.number + 1;
            self.queue
                .extend(lines.into_iter().map(|line| (number, line)));
            if let Some((number, next)) = self.queue.pop_front() {
                *line = next;
                return Ok(Some((number, Ok(()))));
            }
        }
    }

    /// Puts the next object of an array, or of a sequence, into `bytes`;
    /// false at the end.
    fn frame(&mut self) -> Result<bool> {
        self.bytes.clear();
        let (mut depth, mut in_string, mut escaped) = (0u32, false, false);
        loop {
            let bytes = self.reader.fill_buf().context("reading")?;
            if bytes.is_empty() {
                if depth > 0 {
                    bail!(
                        "line {}: the file ends inside a JSON object",
                        self.number + 1
                    );
                }
                return Ok(false);
            }
            let (mut start, mut used, mut whole) = (0, 0, false);
            for byte in bytes {
                used += 1;
                if depth == 0 && *byte != b'{' {
                    if !(byte.is_ascii_whitespace() || matches!(byte, b'[' | b']' | b',')) {
                        let before = bytes.get(..used).unwrap_or(bytes);
                        bail!(
                            "line {}: a JSON object is expected, not `{}`",
                            self.number + 1 + newlines(before),
                            byte.escape_ascii()
                        );
                    }
                    start = used;
                    continue;
                }
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if in_string => escaped = true,
                    b'"' => in_string = !in_string,
                    b'{' if !in_string => depth += 1,
                    b'}' if !in_string => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    whole = true;
                    break;
                }
            }
            let (passed, object) = bytes.get(..used).unwrap_or(bytes).split_at(start.min(used));
            self.bytes.extend_from_slice(object);
            self.number += newlines(passed) + newlines(object);
            self.reader.consume(used);
            self.read += used as u64;
            if whole {
                return Ok(true);
            }
            if self.bytes.len() > MAX_OBJECT {
                bail!(
                    "line {}: a JSON object of more than {MAX_OBJECT} octets",
                    self.number + 1
                );
            }
        }
    }
}
