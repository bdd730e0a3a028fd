//! Writing entries, as they come.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::entry::{Entry, Lifetime};
use super::hardware::{bsd_type, linux_type};
use crate::fields;
use crate::format;
use crate::put::{self, Pieces};

/// Who is imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// FreeBSD's `arp -a`:
    /// `? (10.0.5.80) at 00:0c:29:65:4d:48 on em1 permanent [ethernet]`.
    Bsd,
    /// The table of Linux net-tools' `arp` and `arp -e`.
    LinuxTable,
    /// The lines of Linux net-tools' `arp -a`:
    /// `? (10.0.0.2) at 02:00:00:00:00:02 [ether] PERM on v0`.
    LinuxLines,
    /// One JSON array with the keys of FreeBSD's `arp --libxo json`.
    Json,
}

/// Writes entries in a style. Nothing is kept but up to 64 KiB of text.
#[derive(Debug)]
pub struct Printer<W: Write> {
    style: Style,
    pieces: Pieces<W>,
    rows: u64,
}

impl<W: Write> Printer<W> {
    /// A printer that has written nothing yet.
    pub fn new(style: Style, out: W) -> Self {
        Self {
            style,
            pieces: Pieces::new(out),
            rows: 0,
        }
    }

    /// Entries so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes one entry.
    pub fn entry(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        let first = self.rows == 0;
        let text = &mut self.pieces.text;
        match self.style {
            Style::Bsd => bsd(entry, text),
            Style::LinuxLines => linux_line(entry, text),
            Style::LinuxTable => {
                if first {
                    text.extend_from_slice(LINUX_HEADER);
                }
                linux_row(entry, text);
            }
            Style::Json => {
                text.push(if first { b'[' } else { b',' });
                json(entry, text);
            }
        }
        self.rows += 1;
        self.pieces.row_done()
    }

    /// Writes what is left, closes the JSON array (an empty answer is
    /// `[]`), flushes, and gives the writer back.
    pub fn finish(mut self) -> io::Result<W> {
        if self.style == Style::Json {
            let end: &[u8] = if self.rows == 0 { b"[]\n" } else { b"]\n" };
            self.pieces.text.extend_from_slice(end);
        }
        self.pieces.finish()
    }
}

fn bsd(entry: &Entry<'_>, text: &mut Vec<u8>) {
    host_and_address(entry, text);
    if entry.lladdr.is_none() {
        text.extend_from_slice(b"(incomplete)");
    } else {
        format::push_octets(text, entry.lladdr.octets());
    }
    text.extend_from_slice(b" on ");
    text.extend_from_slice(entry.link.as_bytes());
    match entry.lifetime {
        Lifetime::Permanent => text.extend_from_slice(b" permanent"),
        Lifetime::Seconds(0) => text.extend_from_slice(b" expired"),
        Lifetime::Seconds(seconds) => {
            text.extend_from_slice(b" expires in ");
            format::push_u64(text, seconds);
            text.extend_from_slice(b" seconds");
        }
        Lifetime::Unknown => {}
    }
    if entry.published {
        text.extend_from_slice(b" published");
    }
    if let Some(name) = bsd_type(entry.hardware) {
        text.extend_from_slice(b" [");
        text.extend_from_slice(name.as_bytes());
        text.push(b']');
    }
    text.push(b'\n');
}

fn host_and_address(entry: &Entry<'_>, text: &mut Vec<u8>) {
    text.extend_from_slice(entry.host.unwrap_or("?").as_bytes());
    text.extend_from_slice(b" (");
    format::push_ipv4(text, entry.address);
    text.extend_from_slice(b") at ");
}

fn linux_line(entry: &Entry<'_>, text: &mut Vec<u8>) {
    host_and_address(entry, text);
    if entry.published {
        text.extend_from_slice(FROM_INTERFACE);
        text.push(b' ');
    } else if entry.complete {
        format::push_octets(text, entry.lladdr.octets());
        text.extend_from_slice(b" [");
        text.extend_from_slice(linux_type(entry.hardware).as_bytes());
        text.extend_from_slice(b"] ");
    } else {
        text.extend_from_slice(b"<incomplete> ");
    }
    if entry.is_permanent() {
        text.extend_from_slice(b"PERM ");
    }
    if entry.published {
        text.extend_from_slice(b"PUB ");
    }
    text.extend_from_slice(b"on ");
    text.extend_from_slice(entry.link.as_bytes());
    text.push(b'\n');
}

const FROM_INTERFACE: &[u8] = b"<from_interface>";

const LINUX_HEADER: &[u8] =
    b"Address                  HWtype  HWaddress           Flags Mask            Iface\n";

/// Where the columns of [`LINUX_HEADER`] begin.
mod column {
    pub const HARDWARE: usize = 25;
    pub const LLADDR: usize = 33;
    pub const FLAGS: usize = 53;
    pub const LINK: usize = 75;
    /// A name is cut so that two spaces stay.
    pub const HOST_BYTES: usize = HARDWARE - 2;
}

fn linux_row(entry: &Entry<'_>, text: &mut Vec<u8>) {
    let start = text.len();
    match entry.host {
        Some(host) => {
            let cut = host.len().min(column::HOST_BYTES);
            text.extend_from_slice(&host.as_bytes()[..cut]);
        }
        None => format::push_ipv4(text, entry.address),
    }
    put::pad_to(text, start + column::HARDWARE);
    if entry.published {
        text.push(b'*');
        put::pad_to(text, start + column::LLADDR);
        text.extend_from_slice(FROM_INTERFACE);
    } else if entry.complete {
        text.extend_from_slice(linux_type(entry.hardware).as_bytes());
        put::pad_to(text, start + column::LLADDR);
        format::push_octets(text, entry.lladdr.octets());
    } else {
        put::pad_to(text, start + column::LLADDR);
        text.extend_from_slice(b"(incomplete)");
    }
    put::pad_to(text, start + column::FLAGS);
    if entry.complete {
        text.push(b'C');
    }
    if entry.is_permanent() {
        text.push(b'M');
    }
    if entry.published {
        text.push(b'P');
    }
    put::pad_to(text, start + column::LINK);
    text.extend_from_slice(entry.link.as_bytes());
    text.push(b'\n');
}

fn json(entry: &Entry<'_>, text: &mut Vec<u8>) {
    text.extend_from_slice(b"{\"hostname\":");
    fields::push_json_text(text, entry.host.unwrap_or("?"));
    text.extend_from_slice(b",\"ip-address\":\"");
    format::push_ipv4(text, entry.address);
    text.push(b'"');
    if !entry.lladdr.is_none() {
        text.extend_from_slice(b",\"mac-address\":\"");
        format::push_octets(text, entry.lladdr.octets());
        text.push(b'"');
    } else if !entry.complete && !entry.published {
        text.extend_from_slice(b",\"incomplete\":true");
    }
    text.extend_from_slice(b",\"interface\":");
    fields::push_json_text(text, entry.link);
    match entry.lifetime {
        Lifetime::Permanent => text.extend_from_slice(b",\"permanent\":true"),
        Lifetime::Seconds(seconds) => {
            text.extend_from_slice(b",\"expires\":");
            format::push_u64(text, seconds);
        }
        Lifetime::Unknown => {}
    }
    if entry.published {
        text.extend_from_slice(b",\"published\":true");
    }
    if let Some(name) = bsd_type(entry.hardware) {
        text.extend_from_slice(b",\"type\":");
        fields::push_json_text(text, name);
    }
    text.push(b'}');
}

#[cfg(test)]
mod tests;
