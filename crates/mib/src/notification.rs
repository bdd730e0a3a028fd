//! linkUp and linkDown (RFC 2863): what changed, as variable bindings.
//! Whom to send them to, and when, is the program's.

use std::ops::ControlFlow;

use snmp::Value;
use snmp::mib::WalkSink;
use snmp::oid::Name;

use crate::index;
use crate::status::{IF_ADMIN_STATUS, IF_INDEX, IF_OPER_STATUS};

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

    /// `generic-trap` of an SNMPv1 trap (RFC 1157 §4.1.6).
    pub fn generic(self) -> i32 {
        match self {
            Self::Down => 2,
            Self::Up => 3,
        }
    }
}

/// A link that came up or went down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkNotification {
    /// Which.
    pub trap: LinkTrap,
    /// `ifIndex`.
    pub link: u32,
    /// `ifAdminStatus`.
    pub admin_status: i32,
    /// `ifOperStatus`.
    pub oper_status: i32,
}

impl LinkNotification {
    /// The objects of the notification, behind `sysUpTime` and
    /// `snmpTrapOID`: ifIndex, ifAdminStatus, ifOperStatus of the link.
    pub fn bindings(&self, sink: &mut WalkSink<'_>) {
        let objects = [
            (IF_INDEX, self.link.try_into().unwrap_or(i32::MAX)),
            (IF_ADMIN_STATUS, self.admin_status),
            (IF_OPER_STATUS, self.oper_status),
        ];
        for (object, value) in objects {
            let mut name: Name = object.iter().copied().collect();
            index::put(&mut name, self.link);
            if let ControlFlow::Break(()) = sink(&name, Value::Integer(value)) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_objects_of_the_link() {
        let notification = LinkNotification {
            trap: LinkTrap::Down,
            link: 7,
            admin_status: 1,
            oper_status: 7,
        };
        let mut bindings = Vec::new();
        notification.bindings(&mut |name, value| {
            bindings.push((name.to_vec(), format!("{value:?}")));
            ControlFlow::Continue(())
        });
        let texts: Vec<_> = bindings.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["Integer(7)", "Integer(1)", "Integer(7)"]);
        assert_eq!(bindings[2].0, [1, 3, 6, 1, 2, 1, 2, 2, 1, 8, 7]);
    }
}
