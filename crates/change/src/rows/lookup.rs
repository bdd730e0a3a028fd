//! Names of links to indexes, each asked for once: one question to the
//! kernel for a name, never a listing.

use std::collections::HashMap;

use linux::Namespace;
use linux::socket::{DATAGRAM_BYTES, Received, Socket};
use netlink::decode::{Decoded, Item, decode};
use netlink::message::messages;
use netlink::request::get_link_by_name;

use words::{Links, ParseError};

/// So many names are remembered; then it begins anew.
const MAX_NAMES: usize = 1 << 20;

/// The links of a namespace's kernel.
pub struct Lookup {
    socket: Socket,
    known: HashMap<Box<str>, Known>,
    last: Option<(Box<str>, u32)>,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Known {
    /// `None`: there is no such link.
    index: Option<u32>,
    /// The table of a VRF.
    table: Option<u32>,
}

impl Lookup {
    /// Of this namespace.
    pub fn new(namespace: &Namespace) -> Result<Self, linux::Error> {
        Ok(Self {
            socket: Socket::open(namespace)?,
            known: HashMap::new(),
            last: None,
            buffer: vec![0; DATAGRAM_BYTES],
        })
    }

    /// Names may lead elsewhere: each is asked for again.
    pub fn forget(&mut self) {
        self.known.clear();
        self.last = None;
    }

    fn known(&mut self, name: &str) -> Result<Known, ParseError> {
        if let Some(known) = self.known.get(name) {
            return Ok(*known);
        }
        let known = self.ask(name)?;
        if self.known.len() == MAX_NAMES {
            self.known.clear();
        }
        self.known.insert(name.into(), known);
        Ok(known)
    }

    fn ask(&mut self, name: &str) -> Result<Known, ParseError> {
        let failed = |error: &dyn std::fmt::Display| format!("looking up link `{name}`: {error}");
        let mut request = Vec::new();
        get_link_by_name(name, 1, &mut request).map_err(|error| failed(&error))?;
        self.socket.send(&request).map_err(|error| failed(&error))?;
        let received = self
            .socket
            .receive(&mut self.buffer, "a link's name")
            .map_err(|error| failed(&error))?;
        let Received::Bytes(len) = received else {
            return Err(failed(&"the answer was lost"));
        };
        let bytes = self.buffer.get(..len).unwrap_or_default();
        let message = messages(bytes)
            .next()
            .ok_or_else(|| failed(&"an empty answer"))?
            .map_err(|error| failed(&error))?;
        match decode(&message, 0).map_err(|error| failed(&error))? {
            Decoded::Announcement(announcement) => match announcement.item {
                Item::Link(link) => Ok(Known {
                    index: Some(link.index),
                    table: link.vrf_table,
                }),
                _ => Err(failed(&"an answer about something else")),
            },
            _ => Ok(Known {
                index: None,
                table: None,
            }),
        }
    }
}

impl Links for Lookup {
    /// The index of a link. O(1) but for the first time.
    fn index(&mut self, name: &str) -> Result<u32, ParseError> {
        if let Some((last, index)) = &self.last
            && **last == *name
        {
            return Ok(*index);
        }
        let index = self.known(name)?.index;
        // Where no link has it, a name like `if7` is a number, as to `ip`.
        let numbered = || {
            let digits = name.strip_prefix("if")?;
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits
                .parse()
                .ok()
                .filter(|index: &u32| is_number && *index > 0)
        };
        let index = index.or_else(numbered);
        let index = index.ok_or_else(|| format!("no link is named `{name}`"))?;
        self.last = Some((name.into(), index));
        Ok(index)
    }

    /// The table of a VRF.
    fn vrf_table(&mut self, name: &str) -> Result<u32, ParseError> {
        self.index(name)?;
        let table = self.known(name)?.table;
        table.ok_or_else(|| format!("`{name}` is no VRF"))
    }
}
