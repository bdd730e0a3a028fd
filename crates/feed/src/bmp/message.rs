//! What a message of BMP says (RFC 7854 §4.3 to §4.10, RFC 9069, RFC 9736).
//!
//! Types of messages and of their parts that are not known are passed over,
//! as §4.1 and §4.4 ask; lengths must be true.

use bgp::Bad;
use bgp::bytes::Bytes;
use bgp::message::{Message as BgpMessage, kind as bgp_kind};
use bgp::notification::{self, text};
use bgp::open::Open;

use super::peer_header::PeerHeader;

/// Types of messages.
pub mod kind {
    #![allow(missing_docs, reason = "the RFC's own names")]
    pub const ROUTE_MONITORING: u8 = 0;
    pub const STATISTICS_REPORT: u8 = 1;
    pub const PEER_DOWN: u8 = 2;
    pub const PEER_UP: u8 = 3;
    pub const INITIATION: u8 = 4;
    pub const TERMINATION: u8 = 5;
    pub const ROUTE_MIRRORING: u8 = 6;

    /// What a type is called.
    pub fn in_words(kind: u8) -> &'static str {
        match kind {
            ROUTE_MONITORING => "route monitoring",
            STATISTICS_REPORT => "statistics report",
            PEER_DOWN => "peer down",
            PEER_UP => "peer up",
            INITIATION => "initiation",
            TERMINATION => "termination",
            ROUTE_MIRRORING => "route mirroring",
            _ => "unknown",
        }
    }
}

/// What a message says.
#[derive(Debug)]
pub enum Message<'a> {
    /// A router says who it is.
    Initiation(Initiation),
    /// It ends: why.
    Termination(String),
    /// A session is up; `None`: what was agreed on cannot be read. And the
    /// body of the message.
    PeerUp(PeerHeader, Option<PeerUp>, &'a [u8]),
    /// One is down: why. And the body of the message.
    PeerDown(PeerHeader, String, &'a [u8]),
    /// A message of BGP for the tables of a peer.
    Routes(PeerHeader, &'a [u8]),
    /// What a router counts of a peer.
    Statistics(PeerHeader, Statistics<'a>),
    /// Messages as they came, which have no rows here.
    Mirrored(PeerHeader),
    /// Nothing that is known: what.
    Unknown(&'static str),
}

/// What a router says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Initiation {
    /// `sysName`.
    pub name: String,
    /// `sysDescr`.
    pub description: String,
}

/// What two speakers have agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerUp {
    /// What the router told the peer.
    pub sent: Open,
    /// What the peer told the router.
    pub received: Open,
    /// The name of the table that the peer is in, where it is said.
    pub table_name: String,
}

/// Types of information (IANA, "BMP Initiation and Peer Up Information
/// TLVs", and of Peer Up alone since RFC 9736).
mod tlv {
    pub const SYS_DESCR: u16 = 1;
    pub const SYS_NAME: u16 = 2;
    /// Of Peer Up and Peer Down.
    pub const TABLE_NAME: u16 = 3;
    /// Of Termination.
    pub const STRING: u16 = 0;
    pub const REASON: u16 = 1;
}

impl<'a> Message<'a> {
    /// Reads the body of a message of a type.
    pub fn read(kind: u8, body: &'a [u8]) -> Result<Self, Bad> {
        let mut bytes = Bytes(body);
        match kind {
            kind::INITIATION => return Initiation::read(bytes).map(Self::Initiation),
            kind::TERMINATION => return termination(bytes).map(Self::Termination),
            kind::ROUTE_MONITORING..=kind::PEER_UP | kind::ROUTE_MIRRORING => {}
            _ => return Ok(Self::Unknown("messages of unknown types")),
        }
        let Some(peer) = PeerHeader::take(&mut bytes)? else {
            return Ok(Self::Unknown("messages about unknown types of peers"));
        };
        Ok(match kind {
            kind::PEER_UP => Self::PeerUp(peer, PeerUp::read(bytes)?, body),
            kind::PEER_DOWN => Self::PeerDown(peer, down(bytes)?, body),
            kind::STATISTICS_REPORT => Self::Statistics(peer, Statistics::read(bytes)?),
            kind::ROUTE_MONITORING => Self::Routes(peer, bytes.0),
            _ => Self::Mirrored(peer),
        })
    }
}

impl Initiation {
    fn read(bytes: Bytes<'_>) -> Result<Self, Bad> {
        let mut told = Self::default();
        for one in Tlvs(bytes) {
            match one? {
                (tlv::SYS_NAME, value) => told.name = text(value),
                (tlv::SYS_DESCR, value) => told.description = text(value),
                _ => {}
            }
        }
        Ok(told)
    }
}

fn termination(bytes: Bytes<'_>) -> Result<String, Bad> {
    let (mut reason, mut said) = ("no reason given".to_owned(), String::new());
    for one in Tlvs(bytes) {
        match one? {
            (tlv::STRING, value) if !value.is_empty() => said = format!(": {}", text(value)),
            (tlv::REASON, value) => {
                reason = match Bytes(value).u16("the reason of a termination")? {
                    0 => "session administratively closed".to_owned(),
                    1 => "unspecified reason".to_owned(),
                    2 => "out of resources".to_owned(),
                    3 => "redundant connection".to_owned(),
                    4 => "session permanently administratively closed".to_owned(),
                    other => format!("reason {other}"),
                };
            }
            _ => {}
        }
    }
    Ok(reason + &said)
}

impl PeerUp {
    /// Some routers write `OPEN`s that are none (FRR of its own tables):
    /// who can be delimited and not understood has agreed on nothing.
    fn read(mut bytes: Bytes<'_>) -> Result<Option<Self>, Bad> {
        const WHAT: &str = "a peer up";
        // The router's own address and both ports.
        bytes.take(20, WHAT)?;
        let sent = BgpMessage::take_of(&mut bytes, bgp_kind::OPEN, "the OPEN that was sent")?;
        let received =
            BgpMessage::take_of(&mut bytes, bgp_kind::OPEN, "the OPEN that was received")?;
        let (Ok(sent), Ok(received)) = (Open::read(sent), Open::read(received)) else {
            return Ok(None);
        };
        let mut up = Self {
            sent,
            received,
            table_name: String::new(),
        };
        for one in Tlvs(bytes) {
            if let (tlv::TABLE_NAME, value) = one? {
                up.table_name = text(value);
            }
        }
        Ok(Some(up))
    }

    /// Families that both take part in: IPv4 and IPv6 unicast.
    pub fn families(&self) -> [bool; 2] {
        let both = |at: usize| self.sent.families[at] && self.received.families[at];
        [both(0), both(1)]
    }

    /// Whether AS numbers have four bytes in what both tell.
    pub fn has_four_byte_as(&self) -> bool {
        self.sent.has_four_byte_as && self.received.has_four_byte_as
    }

    /// Whether what the peer tells has path identifiers.
    pub fn receives_path_ids(&self) -> [bool; 2] {
        let both = |at: usize| self.sent.receives_paths[at] && self.received.sends_paths[at];
        [both(0), both(1)]
    }

    /// Whether what it is told has.
    pub fn sends_path_ids(&self) -> [bool; 2] {
        let both = |at: usize| self.sent.sends_paths[at] && self.received.receives_paths[at];
        [both(0), both(1)]
    }

    /// Whether the router's own table has, of which it makes both.
    pub fn all_path_ids(&self) -> [bool; 2] {
        let has = |of: &Open, at: usize| of.sends_paths[at] || of.receives_paths[at];
        let both = |at: usize| has(&self.sent, at) && has(&self.received, at);
        [both(0), both(1)]
    }
}

/// Why a session went down (RFC 7854 §4.9, RFC 9069 §5.3).
fn down(mut bytes: Bytes<'_>) -> Result<String, Bad> {
    const WHAT: &str = "a peer down";
    let reason = bytes.u8(WHAT)?;
    // The reason alone counts: what is behind it only says more.
    let mut said = || {
        let body = BgpMessage::take_of(&mut bytes, bgp_kind::NOTIFICATION, WHAT);
        let said = body.map(notification::in_words);
        said.unwrap_or_else(|_| "no NOTIFICATION that can be read".to_owned())
    };
    Ok(match reason {
        1 => format!("the router closed: {}", said()),
        2 => match bytes.u16(WHAT) {
            Ok(event) => format!("the router closed: event {event}"),
            Err(_) => "the router closed".to_owned(),
        },
        3 => format!("the peer closed: {}", said()),
        4 => "the connection ended without a word".to_owned(),
        5 => "the router does not tell of this peer any more".to_owned(),
        6 => "the router closed its own table".to_owned(),
        other => format!("reason {other}"),
    })
}

/// Types, lengths and values behind each other (RFC 7854 §4.4).
#[derive(Debug, Clone, Copy)]
struct Tlvs<'a>(Bytes<'a>);

impl<'a> Iterator for Tlvs<'a> {
    type Item = Result<(u16, &'a [u8]), Bad>;

    fn next(&mut self) -> Option<Self::Item> {
        const WHAT: &str = "a piece of information";
        if self.0.is_empty() {
            return None;
        }
        let mut one = || {
            let kind = self.0.u16(WHAT)?;
            let len = self.0.u16(WHAT)?;
            Ok((kind, self.0.take(len.into(), WHAT)?))
        };
        let one = one();
        if one.is_err() {
            self.0 = Bytes(&[]);
        }
        Some(one)
    }
}

/// What a router counts of a peer (RFC 7854 §4.8, RFC 8671 §6.2): names and
/// values, of which each was seen to be whole.
#[derive(Debug, Clone, Copy)]
pub struct Statistics<'a>(Tlvs<'a>);

impl<'a> Statistics<'a> {
    fn read(mut bytes: Bytes<'a>) -> Result<Self, Bad> {
        let count = bytes.u32("a statistics report")?;
        let all = Tlvs(bytes);
        let mut seen = 0;
        for one in all {
            one?;
            seen += 1;
        }
        let is_true = seen == count;
        is_true.then_some(Self(all)).ok_or(Bad::Value {
            what: "the number of statistics",
            value: count,
        })
    }

    /// The counters and gauges; of lengths that none has, none.
    pub fn each(self) -> impl Iterator<Item = (String, u64)> {
        self.0.flatten().filter_map(|(kind, value)| {
            let name = statistic(kind);
            let name = || name.map_or_else(|| format!("type_{kind}"), str::to_owned);
            match value.len() {
                4 => Some((name(), Bytes(value).u32("").ok()?.into())),
                8 => Some((name(), wide(value)?)),
                // Of a family: AFI, SAFI, and the gauge.
                11 => {
                    let (family, gauge) = value.split_at(3);
                    Some((format!("{}_{}", name(), of_family(family)), wide(gauge)?))
                }
                _ => None,
            }
        })
    }
}

fn wide(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_be_bytes)
}

fn of_family(family: &[u8]) -> String {
    match family {
        [0, 1, 1] => "ipv4_unicast".to_owned(),
        [0, 2, 1] => "ipv6_unicast".to_owned(),
        [a, b, safi] => format!("{}_{safi}", u16::from_be_bytes([*a, *b])),
        _ => String::new(),
    }
}

/// What a type of statistics is called (IANA, "BMP Statistics Types").
fn statistic(kind: u16) -> Option<&'static str> {
    Some(match kind {
        0 => "prefixes_rejected",
        1 => "duplicate_advertisements",
        2 => "duplicate_withdrawals",
        3 => "cluster_list_loops",
        4 => "as_path_loops",
        5 => "originator_id_loops",
        6 => "as_confed_loops",
        7 | 9 => "adj_rib_in_routes",
        8 | 10 => "loc_rib_routes",
        11 => "updates_taken_as_withdrawals",
        12 => "prefixes_taken_as_withdrawn",
        13 => "duplicate_updates",
        14 | 16 => "adj_rib_out_routes",
        15 | 17 => "adj_rib_out_post_policy_routes",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlv(kind: u16, value: &[u8]) -> Vec<u8> {
        let len = value.len() as u16;
        [&kind.to_be_bytes(), &len.to_be_bytes()[..], value].concat()
    }

    fn bgp(kind: u8, body: &[u8]) -> Vec<u8> {
        let len = (body.len() + 19) as u16;
        [&[255; 16][..], &len.to_be_bytes(), &[kind], body].concat()
    }

    fn about(rest: &[u8]) -> Vec<u8> {
        [&[0; 42][..], rest].concat()
    }

    #[test]
    fn a_router_says_who_it_is_and_why_it_ends() {
        let told = [
            tlv(0, b"x"),
            tlv(2, b"edge\n"),
            tlv(77, b""),
            tlv(1, b"a router"),
        ]
        .concat();
        let Message::Initiation(told) = Message::read(kind::INITIATION, &told).unwrap() else {
            panic!()
        };
        assert_eq!((&*told.name, &*told.description), ("edge", "a router"));
        let ended = |bytes: &[u8]| match Message::read(kind::TERMINATION, bytes) {
            Ok(Message::Termination(why)) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(ended(&[]), "no reason given");
        assert_eq!(ended(&tlv(1, &[0, 2])), "out of resources");
        let both = [tlv(0, b"bye"), tlv(1, &[0, 9])].concat();
        assert_eq!(ended(&both), "reason 9: bye");
        for wrong in [&[0][..], &[0, 2, 0, 1], &[0, 1, 0, 1, 7]] {
            assert!(
                Message::read(kind::TERMINATION, wrong).is_err(),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn each_reason_of_a_peer_down_has_words() {
        let words = |bytes: &[u8]| match Message::read(kind::PEER_DOWN, &about(bytes)) {
            Ok(Message::PeerDown(_, why, _)) => Ok(why),
            Ok(other) => panic!("{other:?}"),
            Err(bad) => Err(bad),
        };
        let shut = bgp(3, &[6, 2]);
        for (bytes, told) in [
            (
                [&[1], &shut[..]].concat(),
                "the router closed: administrative shutdown",
            ),
            (vec![2, 0, 24], "the router closed: event 24"),
            (
                [&[3], &shut[..]].concat(),
                "the peer closed: administrative shutdown",
            ),
            (vec![4], "the connection ended without a word"),
            (vec![5], "the router does not tell of this peer any more"),
            (vec![6, 0, 3, 0, 1, b'x'], "the router closed its own table"),
            (vec![99], "reason 99"),
        ] {
            assert_eq!(words(&bytes).unwrap(), told);
        }
        for wrong in [
            vec![1],
            vec![3, 9, 9],
            [&[1], &bgp(1, &[6, 2])[..]].concat(),
        ] {
            let told = words(&wrong).unwrap();
            assert!(told.ends_with("no NOTIFICATION that can be read"), "{told}");
        }
        assert_eq!(words(&[2, 0]).unwrap(), "the router closed");
        assert!(words(&[]).is_err());
    }

    #[test]
    fn statistics_have_names() {
        let all = [
            tlv(0, &[0, 0, 0, 3]),
            tlv(7, &[0, 0, 0, 0, 0, 0, 1, 0]),
            tlv(9, &[0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 9]),
            tlv(99, &[0, 0, 0, 1]),
            tlv(1, &[1, 2]),
        ]
        .concat();
        let report = |count: u8| about(&[&[0, 0, 0, count], &all[..]].concat());
        let bytes = report(5);
        let Message::Statistics(_, told) = Message::read(1, &bytes).unwrap() else {
            panic!()
        };
        let told: Vec<(String, u64)> = told.each().collect();
        let told: Vec<(&str, u64)> = told.iter().map(|(name, of)| (&**name, *of)).collect();
        assert_eq!(
            told,
            [
                ("prefixes_rejected", 3),
                ("adj_rib_in_routes", 256),
                ("adj_rib_in_routes_ipv6_unicast", 9),
                ("type_99", 1),
            ]
        );
        assert!(Message::read(1, &report(4)).is_err());
        assert!(Message::read(1, &report(6)).is_err());
    }

    #[test]
    fn both_sides_agree_on_families_and_path_identifiers() {
        let open = |add_path: u8, is_v6: bool| {
            let mut all = vec![1, 4, 0, 1, 0, 1, 69, 4, 0, 1, 1, add_path];
            if is_v6 {
                all.extend([1, 4, 0, 2, 0, 1]);
            }
            let len = all.len() as u8;
            let head = [4, 0, 7, 0, 90, 192, 0, 2, 1, len + 2, 2, len];
            bgp(1, &[&head[..], &all].concat())
        };
        let up = |sent: &[u8], received: &[u8]| {
            let body = about(&[&[0; 20][..], sent, received, &tlv(3, b"red")].concat());
            match Message::read(kind::PEER_UP, &body).unwrap() {
                Message::PeerUp(_, up, _) => up.unwrap(),
                _ => panic!(),
            }
        };
        let told = up(&open(1, true), &open(3, false));
        assert_eq!(told.families(), [true, false]);
        assert_eq!(told.receives_path_ids(), [true, false]);
        assert_eq!(told.sends_path_ids(), [false, false]);
        assert_eq!(told.table_name, "red");
        assert_eq!(
            up(&open(3, true), &open(1, true)).sends_path_ids(),
            [true, false]
        );
        let no_open = about(&[&[0; 20][..], &open(1, true), &bgp(4, &[])].concat());
        assert!(Message::read(kind::PEER_UP, &no_open).is_err());
    }

    #[test]
    fn unknown_types_are_passed_over() {
        assert!(matches!(Message::read(7, &[1]), Ok(Message::Unknown(_))));
        let other = [&[9][..], &[0; 41]].concat();
        assert!(matches!(Message::read(0, &other), Ok(Message::Unknown(_))));
        assert!(Message::read(0, &other[..41]).is_err());
    }
}
