//! Rows that are in no table, listed as `ip` and `bridge` list them: straight
//! from the kernel. Called by the objects' files beside this one.

use std::io::Write;

use linux::mirror::now_millis;
use netlink::message::Message;
use netlink::request::Dump;
use table::Links;
use view::{BridgeRow, Context, Format, Output};

use super::session::{Session, complain};
use super::stop::Stop;
use super::{pretty, show};
use crate::ask;

/// A listing that is being put together.
pub struct Listing {
    output: Output,
    /// Names of links.
    links: Links,
    now_millis: u64,
    text: Vec<u8>,
}

impl Listing {
    /// Begins one. What is left to do is to read and to write.
    pub fn begin(session: &Session) -> Result<Self, Stop> {
        if !session.is_batch {
            ask::give_up(session.options.netns.is_some())?;
        }
        let output = show::output(session);
        let is_json = output.format == Format::Json;
        Ok(Self {
            output,
            links: linux::once::links(&session.namespace)?,
            now_millis: now_millis(),
            text: if is_json { b"[".to_vec() } else { Vec::new() },
        })
    }

    /// Whether it is one of JSON.
    pub fn is_json(&self) -> bool {
        self.output.format == Format::Json
    }

    /// What is shown beside the rows themselves.
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// Adds a row.
    pub fn row(&mut self, session: &Session, row: &BridgeRow<'_>) {
        let is_first = matches!(self.text.last(), None | Some(b'[' | b'{'));
        if self.is_json() && !is_first {
            self.text.push(b',');
        }
        let context = Context {
            links: &self.links,
            tables: None,
            now_millis: self.now_millis,
            names: &session.names,
        };
        row.write(&self.output, &context, &mut self.text);
    }

    /// Adds what stands around rows in JSON.
    pub fn json(&mut self, text: &str) {
        if self.is_json() {
            self.text.extend_from_slice(text.as_bytes());
        }
    }

    /// Adds what stands around rows in text.
    pub fn text(&mut self, text: &str) {
        if !self.is_json() {
            self.text.extend_from_slice(text.as_bytes());
        }
    }

    /// Writes it.
    pub fn finish(mut self, session: &Session, out: &mut impl Write) -> Result<(), Stop> {
        self.json("]\n");
        match self.is_json() && session.options.pretty {
            true => pretty::write(&self.text, out)?,
            false => out.write_all(&self.text)?,
        }
        Ok(())
    }
}

/// Hands the messages of a table to `each`. What the kernel refuses to list
/// is told as `ip` tells it.
pub fn each(
    session: &Session,
    dump: &Dump,
    each: &mut dyn FnMut(&Message<'_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    match linux::once::rows(&session.namespace, dump, each) {
        Ok(end) => {
            if end.interrupted {
                complain("Dump was interrupted and may be inconsistent.");
            }
            Ok(())
        }
        Err(Stop::Broken(error)) => Err(refused(error)),
        Err(stop) => Err(stop),
    }
}

fn refused(error: anyhow::Error) -> Stop {
    match error.downcast_ref() {
        Some(linux::Error::Refused {
            source, message, ..
        }) => {
            let why = match message {
                Some(message) => format!("Error: {message}"),
                None => format!("RTNETLINK answers: {}", super::stop::reason(source)),
            };
            Stop::Said {
                status: super::stop::REFUSED,
                text: format!("{why}\nDump terminated"),
            }
        }
        _ => Stop::Broken(error),
    }
}
