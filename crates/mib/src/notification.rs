//! linkUp and linkDown (RFC 2863): what changed, as variable bindings.
//! Whom to send them to, and when, is the program's.

use snmp::Value;
use snmp::oid::Name;

use crate::index;
use crate::status::{IF_ADMIN_STATUS, IF_ALIAS, IF_DESCR, IF_INDEX, IF_OPER_STATUS, alias};

/// Which notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkTrap {
    /// linkDown: it left up, dormant or another state for down.
    Down,
    /// linkUp: it left down.
    Up,
}

/// `ifOperStatus` of what has come up: not down(2), not notPresent(6), and
/// not lowerLayerDown(7), which for the one who asks is down.
fn is_down(oper: i32) -> bool {
    matches!(oper, 2 | 6 | 7)
}

impl LinkTrap {
    /// What a change of `ifOperStatus` calls for.
    pub(crate) fn of(before: i32, now: i32) -> Option<Self> {
        match (is_down(before), is_down(now)) {
            (false, true) => Some(Self::Down),
            (true, false) => Some(Self::Up),
            _ => None,
        }
    }

    /// The name of the notification: `snmpTrapOID.0`'s value.
    pub fn oid(self) -> &'static [u32] {
        match self {
            Self::Down => &[1, 3, 6, 1, 6, 3, 1, 1, 5, 3],
            Self::Up => &[1, 3, 6, 1, 6, 3, 1, 1, 5, 4],
        }
    }
}

/// A link that came up or went down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkNotification {
    /// Which.
    pub trap: LinkTrap,
    /// `ifIndex`.
    pub link: u32,
    /// `ifAdminStatus`.
    pub admin_status: i32,
    /// `ifOperStatus`.
    pub oper_status: i32,
    /// `ifDescr`.
    pub name: Box<str>,
    /// `ifAlias`.
    pub alias: Option<Box<str>>,
}

impl LinkNotification {
    /// The objects of the notification, behind `sysUpTime` and
    /// `snmpTrapOID`: ifIndex, ifAdminStatus, ifOperStatus of the link, as
    /// RFC 2863 has it, and its ifDescr and ifAlias for who reads it.
    pub fn objects(&self) -> [(Name, Value<'_>); 5] {
        let alias = alias(self.alias.as_deref());
        let objects = [
            (
                IF_INDEX,
                Value::Integer(self.link.try_into().unwrap_or(i32::MAX)),
            ),
            (IF_ADMIN_STATUS, Value::Integer(self.admin_status)),
            (IF_OPER_STATUS, Value::Integer(self.oper_status)),
            (IF_DESCR, Value::OctetString(self.name.as_bytes())),
            (IF_ALIAS, Value::OctetString(alias.as_bytes())),
        ];
        objects.map(|(object, value)| {
            let mut name: Name = object.iter().copied().collect();
            index::put(&mut name, self.link);
            (name, value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_objects_of_the_link() {
        let notification = LinkNotification {
            trap: LinkTrap::Down,
            link: 7,
            admin_status: 1,
            oper_status: 7,
            name: "em1".into(),
            alias: None,
        };
        let objects = notification.objects();
        let values: Vec<_> = objects.iter().map(|(_, value)| *value).collect();
        let text = |text: &'static str| Value::OctetString(text.as_bytes());
        let expected = [Value::Integer(7), Value::Integer(1), Value::Integer(7)];
        assert_eq!(values, [&expected[..], &[text("em1"), text("")]].concat());
        assert_eq!(*objects[2].0, [1, 3, 6, 1, 2, 1, 2, 2, 1, 8, 7]);
        assert_eq!(*objects[4].0, [1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 18, 7]);
        // ifAlias is told as in ifXTable: 64 octets, no character cut in two.
        let long = LinkNotification {
            alias: Some(["x", &"é".repeat(40)].concat().into()),
            ..notification
        };
        let expected = ["x", &"é".repeat(31)].concat();
        let told = long.objects()[4].1;
        assert_eq!(told, Value::OctetString(expected.as_bytes()));
    }
}
