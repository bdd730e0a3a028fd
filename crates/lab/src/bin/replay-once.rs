//! Replays a recording once, in memory, and tells how long it took:
//! `check` as `fingerpost replay` does, every check reckoned and the
//! mirror's machine fed; `bare` only takes messages apart and puts their
//! rows into tables, which is the floor. `cargo xtask bench record` runs
//! both in turn. Output: `MS MESSAGES ROUTES`.
//!
//! `replay-once check|bare FILE`

use std::fs;
use std::io::{self, Write};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use linux::mirror::model::Model;
use linux::recording::format::{FRAME_BYTES, HEAD_BYTES, kind};
use linux::recording::{Player, Reader};
use netlink::decode::{Decoded, decode, route};
use netlink::message::{Message, messages};
use table::Source as _;
use table::{AF_INET, AF_INET6, Limits};

const USAGE: &str = "usage: replay-once check|bare FILE";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [how, file] = arguments.as_slice() else {
        bail!(USAGE);
    };
    let bytes = fs::read(file).with_context(|| file.clone())?;
    let start = Instant::now();
    let (messages, routes) = match how.as_str() {
        "check" => check(&bytes)?,
        "bare" => bare(&bytes)?,
        _ => bail!(USAGE),
    };
    let ms = start.elapsed().as_secs_f64() * 1_000.0;
    writeln!(io::stdout().lock(), "{ms} {messages} {routes}")?;
    Ok(())
}

fn check(bytes: &[u8]) -> Result<(u64, usize)> {
    let mut reader = Reader::open(bytes)?;
    let mut player = Player::new(Limits::default());
    player.begin(reader.head());
    while let Some(record) = reader.next_record()? {
        player.take(&record)?;
    }
    player.publish();
    let first = player.take_new().into_iter().next();
    let (_, mirror) = first.context("a recording without a namespace")?;
    let routes = mirror.reader().snapshot().routes.len();
    Ok((player.progress().messages, routes))
}

fn bare(bytes: &[u8]) -> Result<(u64, usize)> {
    let mut model = Model::default();
    model.writer().without_events();
    let mut rest = bytes.get(HEAD_BYTES..).unwrap_or_default();
    let mut count = 0;
    while let Some((frame, after)) = rest.split_first_chunk::<FRAME_BYTES>() {
        let [a, b, c, d, e, f, ..] = *frame;
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        let payload = after.get(..len).context("a recording that is cut off")?;
        if matches!(u16::from_le_bytes([e, f]), kind::ANSWER | kind::EVENT) {
            for message in messages(payload) {
                count += u64::from(put(&mut model, &message?)?);
            }
        }
        rest = after.get(len..).unwrap_or_default();
    }
    model.writer().publish();
    Ok((count, model.tables().routes.len()))
}

/// True when it was a row.
fn put(model: &mut Model, message: &Message<'_>) -> Result<bool> {
    let family = message.payload.first();
    if message.kind == netlink::message::kind::NEWROUTE
        && matches!(family, Some(&(AF_INET | AF_INET6)))
    {
        model.dumped_route(route(message.payload, 0)?)?;
        return Ok(true);
    }
    let Decoded::Announcement(announcement) = decode(message, 0)? else {
        return Ok(false);
    };
    model.dumped(announcement.item)?;
    Ok(true)
}
