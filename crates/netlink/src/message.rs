//! Netlink messages in a received buffer (`struct nlmsghdr`,
//! `linux/netlink.h`, RFC 3549 section 2.3.2).

use crate::malformed::Malformed;

/// Bytes of `struct nlmsghdr`.
pub(crate) const HEADER: usize = 16;

/// A message, not interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// `nlmsg_type`: [`kind`].
    pub kind: u16,
    /// `nlmsg_flags`: [`flag`].
    pub flags: u16,
    /// `nlmsg_seq`: that of the request it answers, 0 for an event.
    pub sequence: u32,
    /// `nlmsg_pid`: port of the socket it answers, or of the one whose
    /// request caused the event.
    pub port: u32,
    /// What follows the header, without padding.
    pub payload: &'a [u8],
}

/// The messages of a buffer, in order. O(1) a message, no allocation.
/// After an error it ends: a length that cannot be trusted leaves nothing
/// to go on from.
pub fn messages(buffer: &[u8]) -> Messages<'_> {
    Messages { buffer, offset: 0 }
}

/// Iterator made by [`messages`].
#[derive(Debug, Clone)]
pub struct Messages<'a> {
    buffer: &'a [u8],
    offset: usize,
}

impl<'a> Messages<'a> {
    fn split(&mut self) -> Option<Message<'a>> {
        let rest = self.buffer.get(self.offset..)?;
        let (header, _) = rest.split_first_chunk::<HEADER>()?;
        let [
            l0,
            l1,
            l2,
            l3,
            k0,
            k1,
            f0,
            f1,
            s0,
            s1,
            s2,
            s3,
            p0,
            p1,
            p2,
            p3,
        ] = *header;
        let len = usize::try_from(u32::from_ne_bytes([l0, l1, l2, l3])).ok()?;
        let payload = rest.get(HEADER..len)?;
        self.offset += len.next_multiple_of(4).min(rest.len());
        Some(Message {
            kind: u16::from_ne_bytes([k0, k1]),
            flags: u16::from_ne_bytes([f0, f1]),
            sequence: u32::from_ne_bytes([s0, s1, s2, s3]),
            port: u32::from_ne_bytes([p0, p1, p2, p3]),
            payload,
        })
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.offset >= self.buffer.len() {
            return None;
        }
        if let Some(message) = self.split() {
            return Some(Ok(message));
        }
        let rest = self.buffer.get(self.offset..).unwrap_or_default();
        let claimed = match rest.first_chunk::<HEADER>() {
            Some([a, b, c, d, ..]) => u32::from_ne_bytes([*a, *b, *c, *d]),
            None => 0,
        };
        let error = Malformed::MessageLength {
            offset: self.offset,
            claimed,
            left: rest.len(),
        };
        self.offset = self.buffer.len();
        Some(Err(error))
    }
}

/// `NLMSG_…` and `RTM_…`, `linux/netlink.h` and `linux/rtnetlink.h`: those
/// that Fingerpost reads or writes.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod kind {
    pub const NOOP: u16 = 1;
    pub const ERROR: u16 = 2;
    pub const DONE: u16 = 3;
    pub const NEWLINKPROP: u16 = 108;
    pub const DELLINKPROP: u16 = 109;
    pub const NEWLINK: u16 = 16;
    pub const DELLINK: u16 = 17;
    pub const GETLINK: u16 = 18;
    pub const NEWADDR: u16 = 20;
    pub const DELADDR: u16 = 21;
    pub const GETADDR: u16 = 22;
    pub const NEWROUTE: u16 = 24;
    pub const DELROUTE: u16 = 25;
    pub const GETROUTE: u16 = 26;
    pub const NEWNEIGH: u16 = 28;
    pub const DELNEIGH: u16 = 29;
    pub const GETNEIGH: u16 = 30;
    pub const NEWRULE: u16 = 32;
    pub const DELRULE: u16 = 33;
    pub const GETRULE: u16 = 34;
    pub const NEWNEIGHTBL: u16 = 64;
    pub const GETNEIGHTBL: u16 = 66;
    pub const NEWPREFIX: u16 = 52;
    pub const SETLINK: u16 = 19;
    pub const NEWNETCONF: u16 = 80;
    pub const DELNETCONF: u16 = 81;
    pub const GETNETCONF: u16 = 82;
    pub const NEWMDB: u16 = 84;
    pub const DELMDB: u16 = 85;
    pub const GETMDB: u16 = 86;
    pub const NEWNSID: u16 = 88;
    pub const DELNSID: u16 = 89;
    pub const GETNSID: u16 = 90;
    pub const NEWSTATS: u16 = 92;
    pub const GETSTATS: u16 = 94;
    pub const NEWNEXTHOP: u16 = 104;
    pub const DELNEXTHOP: u16 = 105;
    pub const GETNEXTHOP: u16 = 106;
    pub const NEWNEXTHOPBUCKET: u16 = 116;
    pub const GETNEXTHOPBUCKET: u16 = 118;
}

/// `NLM_F_…`, `linux/netlink.h`. Their meaning depends on the message:
/// numbers repeat.
#[allow(missing_docs, reason = "the kernel's own names and meanings")]
pub mod flag {
    pub const REQUEST: u16 = 1;
    pub const MULTI: u16 = 2;
    pub const ACK: u16 = 4;
    pub const ECHO: u16 = 8;
    /// The dump is not of one moment: the table changed meanwhile.
    pub const DUMP_INTR: u16 = 0x10;
    /// The dump was filtered as asked.
    pub const DUMP_FILTERED: u16 = 0x20;
    pub const ROOT: u16 = 0x100;
    pub const MATCH: u16 = 0x200;
    pub const DUMP: u16 = ROOT | MATCH;
    /// Of a change: replace what is there.
    pub const REPLACE: u16 = 0x100;
    /// Of a change: fail if it is there.
    pub const EXCL: u16 = 0x200;
    /// Of a change: create it if it is not there.
    pub const CREATE: u16 = 0x400;
    /// Of a change: add at the end of the list.
    pub const APPEND: u16 = 0x800;
    /// Of an acknowledgement: the request is not repeated in it.
    pub const CAPPED: u16 = 0x100;
    /// Of an acknowledgement: attributes follow (`NLMSGERR_ATTR_…`).
    pub const ACK_TLVS: u16 = 0x200;
}
