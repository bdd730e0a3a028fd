//! `ip -batch FILE`: a line each, in order; none is done after one that
//! failed, unless `-force` says so. Called by [`super`].

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd as _;

use privileges::CapabilitySet;
use words::batch::{UNTERMINATED, split};

use super::session::{Session, complain};
use super::stop::{FAILED, Stop, WRONG_WORDS, reason};
use super::{commands, deletions};

/// What lines may need: to change the network, to enter and name namespaces
/// of it, and to read those of other users' processes.
const NEEDED: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::SYS_ADMIN)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::SYS_PTRACE);

/// Bytes that are read at a time.
const READ_BYTES: usize = 1 << 17;
/// Bytes of a line at most, with those that continue it.
const MAX_LINE: usize = 1 << 16;

/// Runs the lines of a file; gives the exit status.
pub fn run(session: &mut Session, file: &str, out: &mut impl Write) -> Result<u8, Stop> {
    let opened = if file == "-" {
        File::from(io::stdin().as_fd().try_clone_to_owned()?)
    } else {
        File::open(file).map_err(|error| {
            Stop::failed(format!(
                "Cannot open file \"{file}\" for reading: {}",
                reason(&error)
            ))
        })?
    };
    let kind = opened.metadata()?;
    if kind.is_dir() {
        return Err(Stop::NotBuilt(format!("-batch {file}, a directory")));
    }
    // Who wrote the lines may be another than who runs them.
    privileges::keep(NEEDED).map_err(io::Error::from)?;
    let input = &mut BufReader::with_capacity(READ_BYTES, opened);
    let ended = each_line(session, file, input, !kind.is_file(), out);
    session.settle()?;
    match ended {
        Ok(0) if session.has_failed => Ok(FAILED),
        ended => ended,
    }
}

fn each_line(
    session: &mut Session,
    file: &str,
    input: &mut BufReader<impl Read>,
    may_wait: bool,
    out: &mut impl Write,
) -> Result<u8, Stop> {
    let force = session.options.force;
    let (mut text, mut number, mut status) = (String::new(), 0_u64, 0);
    let mut words = Vec::new();
    loop {
        // Nothing is left undone while it waits for lines.
        if may_wait && !input.buffer().contains(&b'\n') {
            session.settle()?;
        }
        if !next_line(input, &mut text, &mut number)? {
            return Ok(status);
        }
        session.line = number;
        if let Err(why) = split(&text, &mut words) {
            session.settle()?;
            complain(why);
            return Ok(match why {
                UNTERMINATED => FAILED,
                _ => WRONG_WORDS,
            });
        }
        if words.is_empty() {
            continue;
        }
        // What has been read already is looked at, and nothing waited for.
        let passed = together(session, &words, input.buffer())?;
        if let Some((bytes, lines)) = passed {
            input.consume(bytes);
            number += lines;
            continue;
        }
        let Err(stop) = commands::line(session, &words, out) else {
            if session.begins_to_wait() {
                out.flush()?;
            }
            continue;
        };
        // What was answered before stands before the complaint.
        session.settle()?;
        out.flush()?;
        tell(session, stop)?;
        complain(&format!("Command failed {file}:{number}"));
        status = FAILED;
        if !force {
            return Ok(status);
        }
    }
}

/// Says why a line failed, where the batch may go on after it.
fn tell(session: &Session, stop: Stop) -> Result<(), Stop> {
    match stop {
        Stop::Said { text, .. } => {
            if !text.is_empty() {
                complain(&text);
            }
            Ok(())
        }
        Stop::NotBuilt(what) => {
            complain(&format!(
                "fingerpost: {}: `{what}` is not built here, and this line was not done",
                session.tool.name()
            ));
            Ok(())
        }
        left => Err(left),
    }
}

/// Deletes the link of a line and those of the lines behind it together.
/// Gives the bytes and lines that were done with it; `None`: none was.
fn together(
    session: &mut Session,
    words: &[String],
    ahead: &[u8],
) -> Result<Option<(usize, u64)>, Stop> {
    let Some(first) = deletions::link_of(words) else {
        return Ok(None);
    };
    session.settle()?;
    let mut names = vec![first.to_owned()];
    let (mut bytes, mut words) = (0, Vec::new());
    for line in ahead.split_inclusive(|byte| *byte == b'\n') {
        let text = table::text::of_octets(line);
        if !line.ends_with(b"\n") || line.ends_with(b"\\\n") || split(&text, &mut words).is_err() {
            break;
        }
        let Some(name) = deletions::link_of(&words) else {
            break;
        };
        names.push(name.to_owned());
        bytes += line.len();
    }
    let lines = names.len() as u64 - 1;
    Ok(deletions::together(session, &names)?.then_some((bytes, lines)))
}

/// The next line, those that a backslash continues joined; false at the end.
fn next_line(input: &mut impl BufRead, text: &mut String, number: &mut u64) -> Result<bool, Stop> {
    text.clear();
    loop {
        let before = text.len();
        let mut bytes = Vec::new();
        io::Read::take(&mut *input, MAX_LINE as u64).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(before > 0);
        }
        *number += 1;
        let is_cut = bytes.len() == MAX_LINE && bytes.last() != Some(&b'\n');
        if is_cut || before + bytes.len() > MAX_LINE {
            return Err(Stop::wrong(format!(
                "line {number} is longer than {MAX_LINE} bytes, with those that it continues"
            )));
        }
        table::text::push_octets(&bytes, text);
        // A comment ends with its line, whatever it ends with.
        if let Some(line) = text.strip_suffix("\\\n").map(str::len) {
            text.truncate(line);
            text.push(' ');
            continue;
        }
        return Ok(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        split(text, &mut words).unwrap();
        words
    }

    #[test]
    fn a_backslash_joins_lines() {
        let mut input = "link set x \\\n up\nnext".as_bytes();
        let (mut text, mut number) = (String::new(), 0);
        assert!(next_line(&mut input, &mut text, &mut number).unwrap());
        assert_eq!(
            (words(&text).join(" ").as_str(), number),
            ("link set x up", 2)
        );
        assert!(next_line(&mut input, &mut text, &mut number).unwrap());
        assert_eq!((text.as_str(), number), ("next", 3));
        assert!(!next_line(&mut input, &mut text, &mut number).unwrap());
    }

    #[test]
    fn lines_that_continue_each_other_have_a_bound() {
        let piece = format!("{}\\\n", "x".repeat(1022));
        let read = |pieces: usize, last: &str| {
            let input = piece.repeat(pieces) + last;
            let (mut text, mut number) = (String::new(), 0);
            let read = next_line(&mut input.as_bytes(), &mut text, &mut number);
            (read.map(|_| text.len()), number)
        };
        // Each piece becomes one byte shorter: a blank for two.
        let (whole, number) = read(63, "y\n");
        assert_eq!((whole.unwrap(), number), (63 * 1023 + 2, 64));
        let (long, number) = read(200, "y\n");
        let Err(Stop::Left { text, .. }) = long else {
            panic!("{long:?}");
        };
        assert!(
            text.contains(&format!("line {number} ")) && text.contains("65536"),
            "{text}"
        );
        let alone = "x".repeat(MAX_LINE - 1) + "\n";
        let read =
            |input: &str| next_line(&mut input.as_bytes(), &mut String::new(), &mut 0).is_ok();
        assert!(read(&alone) && !read(&format!("x{alone}")));
    }
}
