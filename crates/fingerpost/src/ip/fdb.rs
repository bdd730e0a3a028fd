//! `bridge fdb add|append|replace|delete`: one forwarding entry. Called by
//! the table of commands.

use netlink::decode::Operation;
use netlink::encode::{self, Request};
use netlink::message::flag as request_flag;
use table::FdbEntry;
use table::row::neighbour::{flag, state};
use words::Verb;

use super::grammar::{self, Key, Told, Value, begun, whole};
use super::session::Session;
use super::stop::Stop;

const KEYS: &[Key] = &[
    whole("dev", Value::Text),
    whole("dst", Value::Address),
    whole("nhid", Value::Number("invalid nhid")),
    whole("port", Value::Number("invalid port")),
    whole("vni", Value::Number("invalid VNI")),
    whole("src_vni", Value::Number("invalid src VNI")),
    whole("via", Value::Link),
    whole("self", Value::None),
    begun("master", Value::None),
    begun("router", Value::None),
    begun("local", Value::None),
    begun("permanent", Value::None).means("local"),
    begun("temp", Value::None).means("static"),
    begun("static", Value::None),
    begun("dynamic", Value::None),
    begun("vlan", Value::Number("invalid VLAN ID")),
    begun("use", Value::None),
    begun("extern_learn", Value::None),
    begun("sticky", Value::None),
    whole("activity_notify", Value::NotBuilt),
    whole("inactive", Value::NotBuilt),
    whole("norefresh", Value::NotBuilt),
    whole("to", Value::Text),
];

/// Makes, changes or deletes an entry.
pub fn change(session: &mut Session, verb: Verb, arguments: &[String]) -> Result<(), Stop> {
    let told = grammar::read(KEYS, arguments, session)?;
    let row = row(session, &told)?;
    let (operation, flags) = match verb {
        Verb::Delete => (Operation::Delete, 0),
        Verb::Append => (Operation::New, request_flag::CREATE | request_flag::APPEND),
        Verb::Replace => (Operation::New, request_flag::CREATE | request_flag::REPLACE),
        _ => (Operation::New, request_flag::CREATE | request_flag::EXCL),
    };
    session.apply(|sequence, out| {
        let request = Request {
            operation,
            flags,
            sequence,
            now_millis: 0,
        };
        let _ = encode::fdb(out, &request, &row);
    })
}

/// A number of 16 bits: one that has more would be left out, or be another.
fn short(text: &str, why: &str) -> Result<u16, Stop> {
    let number = grammar::number(text).and_then(|number| u16::try_from(number).ok());
    number.ok_or_else(|| Stop::argument(text, why))
}

/// The number of a VXLAN network, of 24 bits (RFC 7348 §5).
fn vni(text: &str, why: &str) -> Result<u32, Stop> {
    let number = grammar::number(text).filter(|number| number >> 24 == 0);
    number.ok_or_else(|| Stop::argument(text, why))
}

/// The entry that the words describe.
fn row(session: &mut Session, told: &[Told<'_>]) -> Result<FdbEntry, Stop> {
    let mut row = FdbEntry::default();
    let (mut address, mut device) = (None, None);
    for told in told {
        let number = grammar::number(told.value);
        let Some(key) = told.key else {
            if address.is_some() {
                return Err(Stop::garbage("to", told.said));
            }
            address = Some(told.said);
            continue;
        };
        match key.means {
            "to" => address = Some(told.value),
            "dev" => device = Some(told.value),
            "dst" => row.destination = words::line::address(told.value),
            "nhid" => row.nexthop_id = number,
            "port" => row.port = Some(short(told.value, "invalid port")?),
            "vni" => row.vni = Some(vni(told.value, "invalid VNI")?),
            "src_vni" => row.source_vni = Some(vni(told.value, "invalid src VNI")?),
            "via" => row.via_link = Some(session.index(told.value)?),
            "vlan" => row.vlan = Some(short(told.value, "invalid VLAN ID")?),
            "self" => row.flags |= flag::SELF,
            "master" => row.flags |= flag::MASTER,
            "router" => row.flags |= flag::ROUTER,
            "use" => row.flags |= flag::USE,
            "extern_learn" => row.flags |= flag::EXT_LEARNED,
            "sticky" => row.flags |= flag::STICKY,
            "local" => row.state |= state::PERMANENT,
            "static" => row.state |= state::NOARP | state::REACHABLE,
            _ => row.state |= state::REACHABLE,
        }
    }
    let (Some(address), Some(device)) = (address, device) else {
        return Err(Stop::wrong("Device and address are required arguments."));
    };
    row.lladdr = words::line::lladdr(address)
        .ok()
        .filter(|read| read.octets().len() == 6)
        .ok_or_else(|| Stop::wrong(format!("Invalid mac address {address}")))?;
    row.link = match session.index(device) {
        Err(Stop::Said { text, .. }) => return Err(Stop::wrong(text)),
        found => found?,
    };
    if row.flags & (flag::SELF | flag::MASTER) == 0 {
        row.flags |= flag::SELF;
    }
    if row.state & (state::NOARP | state::REACHABLE) == 0 {
        row.state |= state::PERMANENT;
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_does_not_fit_is_refused_and_not_left_out() {
        assert_eq!(short("65535", "").unwrap(), 65_535);
        assert_eq!(vni("0xffffff", "").unwrap(), 0xff_ffff);
        for text in ["65536", "-1", "fish", ""] {
            assert!(short(text, "").is_err(), "{text}");
        }
        for text in ["0x1000000", "-1", "fish"] {
            assert!(vni(text, "").is_err(), "{text}");
        }
    }
}
