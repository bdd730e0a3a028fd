//! Building messages at the end of a buffer. Lengths are written when a
//! message or a nest ends. For [`crate::request`] and [`crate::encode`].

use std::net::IpAddr;

use table::LinkLayerAddress;

use crate::malformed::TooLong;

/// A message being built. [`Build::end`] gives it its length.
pub(crate) struct Build<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    too_long: Option<TooLong>,
}

/// An attribute, or a `struct rtnexthop`, whose value is being written.
#[must_use = "it gets its length from Build::close"]
pub(crate) struct Open {
    start: usize,
    kind: u16,
}

impl<'a> Build<'a> {
    /// `struct nlmsghdr`, then the kind's own structure. The port is the
    /// kernel's business: 0.
    pub(crate) fn start(
        out: &'a mut Vec<u8>,
        kind: u16,
        flags: u16,
        sequence: u32,
        structure: &[u8],
    ) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&kind.to_ne_bytes());
        out.extend_from_slice(&flags.to_ne_bytes());
        out.extend_from_slice(&sequence.to_ne_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(structure);
        Self {
            out,
            start,
            too_long: None,
        }
    }

    /// The message is complete; or taken back, because part of it is too
    /// long.
    pub(crate) fn end(self) -> Result<(), TooLong> {
        if let Some(too_long) = self.too_long {
            self.out.truncate(self.start);
            return Err(too_long);
        }
        self.end_small();
        Ok(())
    }

    /// The message is complete; for one of numbers and addresses, which
    /// are never too long.
    pub(crate) fn end_small(self) {
        let len = (self.out.len() - self.start) as u32;
        write_at(self.out, self.start, &len.to_ne_bytes());
    }

    /// Opens an attribute; what is appended until it is closed is its
    /// value.
    pub(crate) fn open(&mut self, kind: u16) -> Open {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 2]);
        self.out.extend_from_slice(&kind.to_ne_bytes());
        Open { start, kind }
    }

    /// Opens a `struct rtnexthop`, whose first field is its length, too.
    pub(crate) fn open_hop(&mut self, flags: u8, hops: u8, link: u32) -> Open {
        let start = self.out.len();
        self.out.extend_from_slice(&[0, 0, flags, hops]);
        self.out.extend_from_slice(&link.to_ne_bytes());
        Open { start, kind: 0 }
    }

    /// Writes the length of what was opened, then its padding.
    pub(crate) fn close(&mut self, open: &Open) {
        let bytes = self.out.len() - open.start;
        match u16::try_from(bytes) {
            Ok(len) => write_at(self.out, open.start, &len.to_ne_bytes()),
            Err(_) => self.refuse(open.kind, bytes),
        }
        // Attributes start at multiples of four counted from the message:
        // what the buffer holds before it is the caller's.
        let len = self.out.len() - self.start;
        self.out.resize(self.start + len.next_multiple_of(4), 0);
    }

    /// The message is taken back when it ends, because something of it is
    /// too long.
    pub(crate) fn refuse(&mut self, kind: u16, bytes: usize) {
        self.too_long.get_or_insert(TooLong { kind, bytes });
    }

    /// Bytes as they are: part of an open attribute's value, or attributes
    /// as they were kept.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(crate) fn put(&mut self, kind: u16, value: &[u8]) {
        let open = self.open(kind);
        self.append(value);
        self.close(&open);
    }

    pub(crate) fn put_u8(&mut self, kind: u16, value: u8) {
        self.put(kind, &[value]);
    }

    pub(crate) fn put_u16(&mut self, kind: u16, value: u16) {
        self.put(kind, &value.to_ne_bytes());
    }

    pub(crate) fn put_u32(&mut self, kind: u16, value: u32) {
        self.put(kind, &value.to_ne_bytes());
    }

    /// With its NUL.
    pub(crate) fn put_text(&mut self, kind: u16, value: &str) {
        let open = self.open(kind);
        self.append(&table::text::octets(value));
        self.append(&[0]);
        self.close(&open);
    }

    pub(crate) fn put_address(&mut self, kind: u16, value: IpAddr) {
        match value {
            IpAddr::V4(v4) => self.put(kind, &v4.octets()),
            IpAddr::V6(v6) => self.put(kind, &v6.octets()),
        }
    }

    /// Nothing if there is no address.
    pub(crate) fn put_lladdr(&mut self, kind: u16, value: &LinkLayerAddress) {
        if !value.is_none() {
            self.put(kind, value.octets());
        }
    }
}

fn write_at(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = out.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}
