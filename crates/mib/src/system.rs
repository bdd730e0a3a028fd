//! SNMPv2-MIB (RFC 3418): the system group and sysORTable.

use std::sync::Arc;

use snmp::Value;
use snmp::oid::{Name, Oid};

use crate::columns::Rows;
use crate::index::{self, Seek};
use crate::objects::Objects;
use crate::own;

/// What the system says of itself; from the configuration and the host.
#[derive(Debug, Clone)]
pub struct System {
    /// `sysDescr`.
    pub description: String,
    /// `sysObjectID`; none: [`OBJECT_ID`].
    pub object_id: Option<Oid>,
    /// `sysContact`.
    pub contact: String,
    /// `sysName`.
    pub name: String,
    /// `sysLocation`.
    pub location: String,
    /// `sysServices`.
    pub services: u8,
    /// Modules of others, beside those of this crate: subagents'.
    pub modules: Arc<[Module]>,
    /// `sysORLastChange`: `sysUpTime` when they changed last.
    pub modules_changed: u32,
}

impl Default for System {
    fn default() -> Self {
        Self {
            description: String::new(),
            object_id: None,
            contact: String::new(),
            name: String::new(),
            location: String::new(),
            services: SERVICES,
            modules: Arc::from([]),
            modules_changed: 0,
        }
    }
}

/// A MIB module of somebody else (`sysOREntry`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// `sysORID`.
    pub id: Oid,
    /// `sysORDescr`.
    pub description: Box<[u8]>,
    /// `sysORUpTime`: `sysUpTime` when it came.
    pub up_time: u32,
}

/// `sysServices`: internet and end-to-end, 2^(3-1) + 2^(4-1) + 2^(7-1) as
/// for any host that routes.
pub const SERVICES: u8 = 4 + 8 + 64;

/// `sysObjectID` of a system that was given none: `fpLinux` of
/// FINGERPOST-MIB, the Linux router that this program answers for.
pub const OBJECT_ID: &[u32] = &[1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 26224, 2, 1];

/// `0.0`, where there is no name.
pub(crate) const ZERO: &[u32] = &[0, 0];

/// sysDescr (1) … sysORLastChange (8).
pub(crate) fn group<'a>(objects: &Objects<'a>, sub: u32) -> Option<Value<'a>> {
    let system = objects.moment.system;
    let text = |text: &'a str| Value::OctetString(text.as_bytes());
    Some(match sub {
        1 => text(&system.description),
        2 => Value::ObjectIdentifier(system.object_id.as_deref().unwrap_or(OBJECT_ID)),
        3 => Value::TimeTicks(objects.moment.up_time()),
        4 => text(&system.contact),
        5 => text(&system.name),
        6 => text(&system.location),
        7 => Value::Integer(system.services.into()),
        8 => Value::TimeTicks(system.modules_changed),
        _ => return None,
    })
}

/// The MIB modules that this crate knows, for sysORTable.
const MODULES: &[(&[u32], &str)] = &[
    (
        &[1, 3, 6, 1, 6, 3, 10, 3, 1, 1],
        "The SNMP Management Architecture MIB (RFC 3411).",
    ),
    (
        &[1, 3, 6, 1, 6, 3, 11, 3, 1, 1],
        "The MIB for Message Processing and Dispatching (RFC 3412).",
    ),
    (
        &[1, 3, 6, 1, 6, 3, 15, 2, 1, 1],
        "The counters of the User-based Security Model (RFC 3414).",
    ),
    (
        &[1, 3, 6, 1, 6, 3, 1],
        "The MIB module for SNMP entities (RFC 3418).",
    ),
    (
        &[1, 3, 6, 1, 2, 1, 31],
        "The MIB module for network interfaces (RFC 2863).",
    ),
    (
        &[1, 3, 6, 1, 2, 1, 48],
        "The MIB module for IP and ICMP (RFC 4293).",
    ),
    (
        &[1, 3, 6, 1, 2, 1, 4, 24],
        "The MIB module for IP routes (RFC 4292).",
    ),
    (
        &[1, 3, 6, 1, 2, 1, 49],
        "The MIB module for TCP (RFC 4022).",
    ),
    (
        &[1, 3, 6, 1, 2, 1, 50],
        "The MIB module for UDP (RFC 4113).",
    ),
    (
        &[1, 3, 6, 1, 2, 1, 35],
        "Errors and duplex of Ethernet links, of the MIB module in RFC 3635.",
    ),
    (
        &[1, 3, 6, 1, 2, 1, 17],
        "The MIB module for bridges (RFC 4188).",
    ),
    (
        &[1, 3, 6, 1, 2, 1, 17, 7],
        "VLANs of bridges, of the MIB module in RFC 4363.",
    ),
    (
        &[1, 3, 6, 1, 2, 1, 25, 7, 1],
        "System, storage and devices, of the MIB module in RFC 2790.",
    ),
    (
        &[1, 3, 6, 1, 2, 1, 47],
        "The chassis, of the MIB module in RFC 6933.",
    ),
    (
        own::ROOT,
        "The MIB module for how Fingerpost's tables fare (FINGERPOST-MIB).",
    ),
];

/// sysORTable.
pub(crate) struct ModuleTable;

impl Rows for ModuleTable {
    const ENTRY: &'static [u32] = &[1, 3, 6, 1, 2, 1, 1, 9, 1];
    const COLUMNS: &'static [u32] = &[2, 3, 4];
    /// Index from 1, name, description and since when.
    type Row<'a> = (u32, &'a [u32], &'a [u8], u32);

    fn from<'a>(objects: &Objects<'a>, index: &[u32]) -> impl Iterator<Item = Self::Row<'a>> {
        let first = Seek::new(index).number(u32::MAX);
        // Ours are as old as the agent.
        let own = MODULES
            .iter()
            .map(|(name, text)| (*name, text.as_bytes(), 0));
        let others = objects.moment.system.modules.iter();
        let others = others.map(|one| (&*one.id, &*one.description, one.up_time));
        let rows = (1..).zip(own.chain(others));
        let rows = rows.map(|(at, (name, text, since))| (at, name, text, since));
        rows.skip_while(move |(at, ..)| *at < first)
    }

    fn index(row: &Self::Row<'_>, name: &mut Name) {
        index::put(name, row.0);
    }

    fn value<'r, 'a: 'r>(
        _: &Objects<'a>,
        column: u32,
        row: &'r Self::Row<'a>,
        _: &'r mut Name,
    ) -> Option<Value<'r>> {
        Some(match column {
            2 => Value::ObjectIdentifier(row.1),
            3 => Value::OctetString(row.2),
            _ => Value::TimeTicks(row.3),
        })
    }
}
