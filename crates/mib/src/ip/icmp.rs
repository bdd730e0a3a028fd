//! What ICMP counts: the scalars of RFC 1213's icmp group, icmpStatsTable
//! and icmpMsgStatsTable (RFC 4293), sampled with the links.

use snmp::Value;
use snmp::oid::Name;
use table::{IcmpCounters, IcmpType};

use crate::columns::Rows;
use crate::index::{self, IPV4, IPV6, Seek};
use crate::objects::Objects;

/// The message types of the scalars from icmpInDestUnreachs (3) on, and
/// again from icmpOutDestUnreachs (16) on.
const TYPES: [u8; 11] = [3, 11, 12, 4, 5, 8, 0, 13, 14, 17, 18];

fn counter(counted: u64) -> Value<'static> {
    Value::Counter32(counted as u32)
}

/// icmpInMsgs (1) … icmpOutAddrMaskReps (26).
pub(crate) fn scalars<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let all = &objects.tables().host.protocols.as_ref()?.icmp;
    let of_type = |at: u32| {
        let number = TYPES.get(at as usize)?;
        Some(all.of_type(*number))
    };
    Some(counter(match sub {
        1 => all.in_messages,
        2 => all.in_errors,
        14 => all.out_messages,
        15 => all.out_errors,
        3..14 => of_type(sub - 3)?.received,
        _ => of_type(sub.checked_sub(16)?)?.sent,
    }))
}

/// A family as `InetVersion`, and what it counted.
type Row<'a> = (u32, &'a IcmpCounters);

fn rows<'a>(objects: &Objects<'a>) -> impl Iterator<Item = Row<'a>> + use<'a> {
    let all = objects.tables().host.protocols.as_deref();
    let v4 = all.map(|all| (IPV4, &all.icmp));
    let v6 = all.and_then(|all| Some((IPV6, all.icmp6.as_ref()?)));
    v4.into_iter().chain(v6)
}

/// icmpStatsTable.
pub(crate) struct StatsTable;

impl Rows for StatsTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 5, 29, 1];
    const COLUMNS: &'static [u32] = &[2, 3, 4, 5];
    type Row<'a> = Row<'a>;

    fn from<'a>(objects: &Objects<'a>, _: &[u32]) -> impl Iterator<Item = Row<'a>> {
        rows(objects)
    }

    fn index((version, _): &Row<'_>, name: &mut Name) {
        index::put(name, *version);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        (_, all): &'r Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(counter(match column {
            2 => all.in_messages,
            3 => all.in_errors,
            4 => all.out_messages,
            _ => all.out_errors,
        }))
    }
}

/// icmpMsgStatsTable: types that came or went.
pub(crate) struct MessageTable;

impl Rows for MessageTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 5, 30, 1];
    const COLUMNS: &'static [u32] = &[3, 4];
    type Row<'a> = (u32, &'a IcmpType);

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Self::Row<'a>> {
        let mut seek = Seek::new(index);
        let first = (seek.number(u32::MAX), seek.number(u32::MAX));
        rows(objects)
            .flat_map(|(version, all)| all.by_type.iter().map(move |one| (version, one)))
            .skip_while(move |(version, one)| (*version, u32::from(one.number)) < first)
    }

    fn index((version, one): &Self::Row<'_>, name: &mut Name) {
        index::put(name, *version);
        index::put(name, one.number.into());
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        (_, one): &'r Self::Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(counter(if column == 3 { one.received } else { one.sent }))
    }
}
