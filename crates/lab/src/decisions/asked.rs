//! The daemon asked over its control socket, without a process for each
//! question: hundreds take a moment. What is sent is what the program sends
//! (`serve::control::protocol`), made by hand, because that room leans on
//! this one in its tests.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

use super::{Answer, answer};
use crate::Netns;

/// Where root's daemons listen.
const DIRECTORY: &str = "/run/fingerpost";
/// The protocol's version, and its types of frames.
const VERSION: u32 = 2;
const DATA: u8 = 1;
const END: u8 = 2;
const ERROR: u8 = 3;
const HELLO: u8 = 4;
/// Octets that follow a frame's head at most.
const MAX_FRAME_BYTES: usize = 1 << 20;
/// Frames of an answer at most.
const MAX_FRAMES: usize = 16;
const PATIENCE: Duration = Duration::from_secs(10);

/// The place of a namespace's daemon.
pub(super) fn socket(netns: &Netns) -> Result<PathBuf> {
    let inode = netns
        .inside(|| fs::metadata("/proc/thread-self/ns/net"))??
        .ino();
    Ok(PathBuf::from(DIRECTORY).join(format!("{inode}.sock")))
}

/// What the daemon answers by itself; `None` where it leaves a part to the
/// kernel, which the program then asks.
pub(super) fn ask(socket: &PathBuf, question: &str) -> Result<Option<Answer>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let ask = json!({"v": VERSION, "ask": {"route_get": request(question)?}});
    stream.write_all(format!("{ask}\n").as_bytes())?;
    let mut text = Vec::new();
    for _ in 0..MAX_FRAMES {
        let (kind, payload) = frame(&mut stream)?;
        match kind {
            HELLO => {
                let hello: Value = serde_json::from_slice(&payload)?;
                if !hello["incomplete"].is_null() {
                    return Ok(None);
                }
            }
            DATA => text.extend(payload),
            ERROR => return Ok(Some(Err(String::from_utf8_lossy(&payload).into_owned()))),
            END => {
                let end: Value = serde_json::from_slice(&payload)?;
                let is_open = end["open"] == true;
                return Ok((!is_open).then(|| answer(&String::from_utf8_lossy(&text))));
            }
            other => bail!("a frame of type {other}"),
        }
    }
    bail!("an answer without an end")
}

fn frame(stream: &mut UnixStream) -> Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    stream.read_exact(&mut head)?;
    let [kind, len @ ..] = head;
    let len = u32::from_le_bytes(len) as usize;
    ensure!(len <= MAX_FRAME_BYTES, "a frame of {len} octets");
    let mut payload = vec![0; len];
    stream.read_exact(&mut payload)?;
    Ok((kind, payload))
}

/// A question as the program asks it; a word that is not known here is an
/// error, never left out.
fn request(question: &str) -> Result<Value> {
    let mut words = question.split_whitespace();
    let to = words.next().context("a destination")?;
    let mut request = Map::new();
    request.insert("to".into(), to.into());
    request.insert("output".into(), json!({"format": "json"}));
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("a value of {word}"))?;
        let value = match word {
            "from" | "iif" | "oif" => value.into(),
            "ipproto" if value == "tcp" => 6.into(),
            "ipproto" if value == "udp" => 17.into(),
            "mark" | "uid" | "sport" | "dport" | "tos" => number(value)?.into(),
            other => bail!("`{other} {value}` of a question"),
        };
        request.insert(word.into(), value);
    }
    Ok(request.into())
}

fn number(text: &str) -> Result<u32> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    };
    number.with_context(|| format!("`{text}` is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_of_a_seed_can_be_asked() {
        for question in crate::soak::questions(1, 2_000) {
            request(&question).unwrap();
        }
        let asked = request("10.0.0.1 iif v0 tos 0x08 ipproto tcp").unwrap();
        let output = json!({"format": "json"});
        let wanted =
            json!({"to": "10.0.0.1", "iif": "v0", "tos": 8, "ipproto": 6, "output": output});
        assert_eq!(asked, wanted);
        assert!(request("10.0.0.1 via 10.0.0.2").is_err());
    }
}
