//! How a field is written as the value of an attribute.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use table::row::link::bridge::BridgeId;

use super::Data;
use crate::attribute::{self, Attributes, address};
use crate::build::Build;

/// A way to write a field. What is read is written as it was, byte by byte;
/// what would not be is refused.
pub(super) trait Form<T> {
    /// Whether the value was taken.
    fn read(field: &mut T, value: &[u8]) -> bool;
    fn write(field: &T, number: u16, build: &mut Build<'_>);
}

/// A value of a fixed size.
pub(super) trait Fixed: Sized {
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
    fn put(&self, number: u16, build: &mut Build<'_>);
}

/// As the type lies in memory, numbers in the machine's byte order;
/// addresses in that of the network, as always.
pub(super) struct Own;

impl<T: Fixed> Form<Option<T>> for Own {
    fn read(field: &mut Option<T>, value: &[u8]) -> bool {
        if field.is_some() {
            return false;
        }
        *field = T::from_bytes(value);
        field.is_some()
    }

    fn write(field: &Option<T>, number: u16, build: &mut Build<'_>) {
        if let Some(value) = field {
            value.put(number, build);
        }
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl Fixed for $number {
            fn from_bytes(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_ne_bytes)
            }

            fn put(&self, number: u16, build: &mut Build<'_>) {
                build.put(number, &self.to_ne_bytes());
            }
        })*
    };
}
numbers!(u8 u16 u32 u64 i32);

macro_rules! octets {
    ($($address:ty : $octets:expr,)*) => {
        $(impl Fixed for $address {
            fn from_bytes(bytes: &[u8]) -> Option<Self> {
                <[u8; _]>::try_from(bytes).ok().map(Into::into)
            }

            fn put(&self, number: u16, build: &mut Build<'_>) {
                let octets: fn(&$address) -> _ = $octets;
                build.put(number, &octets(self));
            }
        })*
    };
}
octets! {
    [u8; 6]: |own| *own,
    [u8; 8]: |own| *own,
    Ipv4Addr: Ipv4Addr::octets,
    Ipv6Addr: Ipv6Addr::octets,
}

impl Fixed for BridgeId {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    fn put(&self, number: u16, build: &mut Build<'_>) {
        build.put(number, &self.0);
    }
}

impl Fixed for IpAddr {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        address(bytes)
    }

    fn put(&self, number: u16, build: &mut Build<'_>) {
        build.put_address(number, *self);
    }
}

macro_rules! pairs {
    ($($half:ty)*) => {
        $(/// Two numbers, one behind the other.
        impl Fixed for ($half, $half) {
            fn from_bytes(bytes: &[u8]) -> Option<Self> {
                let (first, second) = bytes.split_at_checked(size_of::<$half>())?;
                Some((Fixed::from_bytes(first)?, Fixed::from_bytes(second)?))
            }

            fn put(&self, number: u16, build: &mut Build<'_>) {
                let halves = [self.0.to_ne_bytes(), self.1.to_ne_bytes()];
                build.put(number, halves.as_flattened());
            }
        })*
    };
}
pairs!(u16 u32);

/// A number, or two, in network byte order.
pub(super) struct Net;

/// The bytes of what is written in network byte order.
pub(super) trait Turned: Sized {
    /// From network byte order to the machine's, or back.
    fn turned(self) -> Self;
}

impl Turned for u16 {
    fn turned(self) -> Self {
        self.to_be()
    }
}

impl Turned for u32 {
    fn turned(self) -> Self {
        self.to_be()
    }
}

impl Turned for (u16, u16) {
    fn turned(self) -> Self {
        (self.0.to_be(), self.1.to_be())
    }
}

impl<T: Fixed + Turned + Copy> Form<Option<T>> for Net {
    fn read(field: &mut Option<T>, value: &[u8]) -> bool {
        if field.is_some() {
            return false;
        }
        *field = T::from_bytes(value).map(T::turned);
        field.is_some()
    }

    fn write(field: &Option<T>, number: u16, build: &mut Build<'_>) {
        Own::write(&field.map(T::turned), number, build);
    }
}

/// Nothing: that the attribute is there says it.
pub(super) struct Present;

impl Form<bool> for Present {
    fn read(field: &mut bool, value: &[u8]) -> bool {
        value.is_empty() && !std::mem::replace(field, true)
    }

    fn write(field: &bool, number: u16, build: &mut Build<'_>) {
        if *field {
            build.put(number, &[]);
        }
    }
}

/// The IPv4 addresses of a field that may have others.
pub(super) struct V4;
/// The IPv6 ones.
pub(super) struct V6;

macro_rules! family {
    ($form:ty, $is:path) => {
        impl Form<Option<IpAddr>> for $form {
            fn read(field: &mut Option<IpAddr>, value: &[u8]) -> bool {
                let read = address(value).filter($is);
                let taken = field.is_none() && read.is_some();
                *field = field.or(read);
                taken
            }

            fn write(field: &Option<IpAddr>, number: u16, build: &mut Build<'_>) {
                Own::write(&field.filter($is), number, build);
            }
        }
    };
}
family!(V4, IpAddr::is_ipv4);
family!(V6, IpAddr::is_ipv6);

/// A nest of values, numbered from 0.
pub(super) struct Counted;
/// A nest of values under one number.
pub(super) struct Each<const NUMBER: u16>;
/// `IFLA_VLAN_QOS_MAPPING`s.
pub(super) type QosMap = Each<1>;
/// `IFLA_MACVLAN_MACADDR`s.
pub(super) type Macs = Each<4>;

impl<T: Fixed> Form<Box<[T]>> for Counted {
    fn read(field: &mut Box<[T]>, value: &[u8]) -> bool {
        list(field, value, |place| u16::try_from(place).ok())
    }

    fn write(field: &Box<[T]>, number: u16, build: &mut Build<'_>) {
        put_list(field, number, build, 0..=u16::MAX);
    }
}

impl<T: Fixed, const NUMBER: u16> Form<Box<[T]>> for Each<NUMBER> {
    fn read(field: &mut Box<[T]>, value: &[u8]) -> bool {
        list(field, value, |_| Some(NUMBER))
    }

    fn write(field: &Box<[T]>, number: u16, build: &mut Build<'_>) {
        put_list(field, number, build, std::iter::repeat(NUMBER));
    }
}

/// Reads a nest whose attributes have the numbers expected at their places.
fn list<T: Fixed>(
    field: &mut Box<[T]>,
    value: &[u8],
    expected: impl Fn(usize) -> Option<u16>,
) -> bool {
    let mut items = Vec::new();
    for attribute in attribute::attributes(value) {
        let item = attribute.ok().and_then(|(number, value)| {
            (expected(items.len()) == Some(number)).then(|| T::from_bytes(value))?
        });
        let Some(item) = item else {
            return false;
        };
        items.push(item);
    }
    if items.is_empty() || !field.is_empty() {
        return false;
    }
    *field = items.into();
    true
}

fn put_list<T: Fixed>(
    items: &[T],
    number: u16,
    build: &mut Build<'_>,
    numbers: impl IntoIterator<Item = u16>,
) {
    if items.is_empty() {
        return;
    }
    let nest = build.open(number);
    for (item, number) in items.iter().zip(numbers) {
        item.put(number, build);
    }
    build.close(&nest);
}

/// A nest of attributes with a struct of their own.
pub(super) struct Nest;

impl<T: Data + Default> Form<Option<Box<T>>> for Nest {
    fn read(field: &mut Option<Box<T>>, value: &[u8]) -> bool {
        let inside = Attributes::new(value, "attributes", 0);
        let taken = field.is_none();
        match super::boxed(inside) {
            Ok(read) if taken => *field = Some(read),
            _ => return false,
        }
        true
    }

    fn write(field: &Option<Box<T>>, number: u16, build: &mut Build<'_>) {
        if let Some(inside) = field {
            let nest = build.open(number);
            inside.write(build);
            build.close(&nest);
        }
    }
}
