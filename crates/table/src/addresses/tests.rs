//! The order of a link's addresses beside a list that is kept as the kernel
//! keeps its own (`__inet_insert_ifa`, `__inet_del_ifa`,
//! `ipv6_link_dev_addr`).

use memory::Random;

use super::*;
use crate::touched;

fn v4(net: u8, host: u8, scope: u8) -> Address {
    Address {
        scope,
        ..Address::new(1, [10, 0, net, host].into(), 24)
    }
}

fn v6(host: u16, created_centisecs: u32) -> Address {
    let local: IpAddr = [0x2001, 0xdb8, 0, 0, 0, 0, 0, host].into();
    Address {
        created_centisecs,
        ..Address::new(1, local, 64)
    }
}

fn listed(addresses: &Addresses) -> Vec<IpAddr> {
    addresses.of_link(1).map(|row| row.local).collect()
}

/// The kernel's list of a link.
#[derive(Default)]
struct Kernel {
    list: Vec<Address>,
}

impl Kernel {
    fn same_net(a: &Address, b: &Address) -> bool {
        a.prefix_len == b.prefix_len && a.local.to_string()[..6] == b.local.to_string()[..6]
    }

    /// What is announced; `None` when it is refused.
    fn insert(&mut self, mut row: Address) -> Option<Address> {
        let mut last_primary = 0;
        for (at, old) in self.list.iter().enumerate() {
            if old.flags & flag::SECONDARY == 0 && row.scope <= old.scope {
                last_primary = at + 1;
            }
            if Self::same_net(old, &row) {
                if old.local == row.local || old.scope != row.scope {
                    return None;
                }
                row.flags |= flag::SECONDARY;
            }
        }
        let is_secondary = row.flags & flag::SECONDARY != 0;
        let at = if is_secondary {
            self.list.len()
        } else {
            last_primary
        };
        self.list.insert(at, row.clone());
        Some(row)
    }

    /// What is announced: deletions, then a promotion.
    fn delete(&mut self, at: usize, promotes: bool) -> (Vec<Address>, Option<Address>) {
        let gone = self.list[at].clone();
        if gone.flags & flag::SECONDARY != 0 {
            self.list.remove(at);
            return (vec![gone], None);
        }
        let is_next =
            |row: &Address| row.flags & flag::SECONDARY != 0 && Self::same_net(row, &gone);
        if !promotes {
            let (dead, left) = self
                .list
                .drain(..)
                .partition(|row| is_next(row) || *row == gone);
            self.list = left;
            return (dead, None);
        }
        let is_primary =
            |row: &Address| row.flags & flag::SECONDARY == 0 && gone.scope <= row.scope;
        let mut behind = (at + 1..self.list.len()).filter(|at| is_primary(&self.list[*at]));
        let last_primary = behind.next_back().unwrap_or(at);
        let Some(next) = self.list.iter().position(is_next) else {
            self.list.remove(at);
            return (vec![gone], None);
        };
        let mut promoted = self.list.remove(next);
        promoted.flags &= !flag::SECONDARY;
        self.list.insert(last_primary + 1, promoted.clone());
        self.list.remove(at);
        (vec![gone], Some(promoted))
    }
}

#[test]
fn ipv4_stands_as_the_kernel_s_own_list() {
    let mut random = Random::new(7);
    for promotes in [false, true] {
        let (mut kernel, mut ours) = (Kernel::default(), Addresses::default());
        for created in 0..4_000 {
            let number = random.number();
            let [net, host, scope, which, change, ..] = number.to_ne_bytes();
            if change % 3 > 0 && kernel.list.len() < 60 {
                let scope = [0, 200, 253, 254][usize::from(scope % 4)];
                let row = Address {
                    created_centisecs: created,
                    ..v4(net % 10, host % 10, scope)
                };
                if let Some(row) = kernel.insert(row) {
                    ours.add(Arc::new(row));
                }
            } else if let Some(at) = usize::from(which).checked_rem(kernel.list.len()) {
                let (gone, promoted) = kernel.delete(at, promotes);
                for row in gone {
                    ours.remove(&row.key());
                }
                promoted.map(|row| ours.add(Arc::new(row)));
            }
            let wanted: Vec<IpAddr> = kernel.list.iter().map(|row| row.local).collect();
            assert_eq!(listed(&ours), wanted);
        }
    }
}

#[test]
fn the_newest_of_ipv6_is_first_however_late_it_is_announced() {
    let mut ours = Addresses::default();
    for (host, created) in [(1, 10), (4, 40), (3, 30), (2, 20)] {
        ours.add(Arc::new(v6(host, created)));
    }
    ours.add(Arc::new(Address::new(1, "fe80::1".parse().unwrap(), 64)));
    ours.add(Arc::new(v4(1, 1, 0)));
    let names: Vec<String> = listed(&ours).iter().map(IpAddr::to_string).collect();
    let wanted = [
        "10.0.1.1",
        "2001:db8::4",
        "2001:db8::3",
        "2001:db8::2",
        "2001:db8::1",
        "fe80::1",
    ];
    assert_eq!(names, wanted);
    // Its flags change: it keeps its place. It is made again: a new one.
    let mut changed = v6(2, 20);
    changed.flags = flag::DEPRECATED;
    ours.add(Arc::new(changed));
    assert_eq!(listed(&ours)[3], v6(2, 0).local);
    ours.add(Arc::new(v6(2, 50)));
    assert_eq!(listed(&ours)[1], v6(2, 0).local);
    // The clock starts again from 0.
    ours.add(Arc::new(v6(9, u32::MAX - 5)));
    assert_eq!(listed(&ours)[5], v6(9, 0).local);
}

#[test]
fn a_twin_is_one_of_the_same_time_and_class() {
    let mut ours = Addresses::default();
    for (host, created) in [(1, 10), (2, 20), (3, 20)] {
        ours.add(Arc::new(v6(host, created)));
    }
    let twins = |host| ours.has_twin(&v6(host, 0).key());
    assert_eq!([1, 2, 3, 4].map(twins), [false, true, true, false]);
}

#[test]
fn an_order_that_is_told_is_kept_within_classes() {
    let mut ours = Addresses::default();
    for host in 1..=4 {
        ours.add(Arc::new(v6(host, 10)));
    }
    ours.add(Arc::new(Address::new(1, "fe80::1".parse().unwrap(), 64)));
    let wanted = [v6(2, 0), v6(4, 0), v6(9, 0), v6(1, 0)];
    let keys = wanted.map(|row| row.key());
    assert!(ours.order(1, &keys));
    assert!(!ours.order(1, &keys), "it stands so already");
    let hosts: Vec<u16> = ours
        .of_link(1)
        .map(|row| match row.local {
            IpAddr::V6(v6) => v6.segments()[7],
            IpAddr::V4(_) => 0,
        })
        .collect();
    assert_eq!(hosts, [2, 4, 1, 3, 1]);
    assert_eq!(ours.len(), 5);
}

/// An address more is found room for between the same two, again and again.
#[test]
fn there_is_always_room_between_two() {
    let mut ours = Addresses::default();
    ours.add(Arc::new(v6(0, 1)));
    for host in 1..300 {
        ours.add(Arc::new(v6(host, 1_000 - u32::from(host))));
        let at = AddressPlace {
            link: 1,
            ..ours.place_of(&v6(host, 0).key()).unwrap()
        };
        assert!(ours.from(&at).next().is_some());
    }
    let wanted: Vec<IpAddr> = (1..300).chain([0]).map(|host| v6(host, 0).local).collect();
    assert_eq!(listed(&ours), wanted);
}

/// Aliases of one link cost as much each, however many there are.
#[test]
fn the_cost_of_an_address_does_not_grow_with_its_link() {
    let mut random = Random::new(3);
    let mut each = |rows: u32| -> u64 {
        let mut ours = Addresses::default();
        let before = touched().unwrap_or(0);
        for at in 0..rows {
            let made = random.number() as u32 % rows;
            let mut row = v6(0, made);
            row.local = IpAddr::V6((u128::from(at) | 0x2001 << 112).into());
            let key = row.key();
            ours.add(Arc::new(row));
            ours.has_twin(&key);
        }
        (touched().unwrap_or(0) - before) / u64::from(rows)
    };
    let (few, many) = (each(1_024), each(16_384));
    assert!(many <= few * 2, "{few} nodes each, then {many}");
}
