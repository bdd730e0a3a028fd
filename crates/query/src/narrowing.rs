//! From conditions of SQL to what the planner of `view` knows. A condition
//! that cannot be said there narrows nothing, and SQLite looks at each row
//! that comes in any case: so what stands here makes answers quick, never
//! wrong.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use rusqlite::types::ValueRef;
use table::{LinkLayerAddress, Tables};
use view::{Narrowed, Object};
use words::{NameFile, Names};

use crate::address_text::parse;
use crate::function::Relation;
use crate::schema::{Narrows, Rows};

/// How a condition compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    AtLeast,
    AtMost,
    By(Relation),
}

impl Compare {
    /// Whether it narrows anything, of a column that narrows something.
    pub(crate) fn applies_to(self, narrows: Narrows, rows: Rows) -> bool {
        let has_range = match narrows {
            Narrows::Prefix | Narrows::Destination => true,
            Narrows::Link => rows == Rows::Of(Object::Link),
            Narrows::Nexthop => rows == Rows::Of(Object::Nexthop),
            _ => false,
        };
        match self {
            Self::Equal => narrows != Narrows::Nothing,
            Self::AtLeast | Self::AtMost => has_range,
            Self::By(Relation::Longest) => narrows == Narrows::Prefix,
            Self::By(_) => {
                matches!(
                    narrows,
                    Narrows::Prefix | Narrows::Destination | Narrows::Host
                )
            }
        }
    }

    /// As `explain` shows it of a column.
    pub(crate) fn shown(self, column: &str) -> String {
        match self {
            Self::Equal => format!("{column} = ?"),
            Self::AtLeast => format!("{column} >= ?"),
            Self::AtMost => format!("{column} <= ?"),
            Self::By(relation) => format!("{}({column}, ?)", relation.name()),
        }
    }
}

/// What conditions with their values narrow rows to.
#[derive(Debug, Default)]
pub(crate) struct Narrowing {
    pub by: Narrowed,
    /// No row is of them.
    pub is_empty: bool,
    /// Only the longest of the prefixes that cover.
    pub longest: bool,
    prefixes: Range<IpNet>,
    numbers: Range<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Range<T> {
    low: Option<T>,
    high: Option<T>,
}

impl<T> Default for Range<T> {
    fn default() -> Self {
        Self {
            low: None,
            high: None,
        }
    }
}

impl Narrowing {
    /// Takes a condition. The error is for whoever asks: a function's value
    /// that makes no sense.
    pub(crate) fn take(
        &mut self,
        narrows: Narrows,
        compare: Compare,
        value: ValueRef<'_>,
        tables: &Tables,
        names: &Names,
    ) -> Result<(), String> {
        // Nothing compares with NULL.
        if matches!(value, ValueRef::Null) {
            self.is_empty = true;
            return Ok(());
        }
        match (narrows, compare) {
            (_, Compare::By(relation)) => return self.relation(narrows, relation, value),
            (Narrows::Link, _) => self.number(compare, value, |by, link| by.link = Some(link)),
            (Narrows::Nexthop, _) => self.number(compare, value, |by, id| by.id = Some(id)),
            (Narrows::Prefix | Narrows::Destination, _) => self.prefix(compare, value),
            _ => self.equal(narrows, value, tables, names),
        }
        Ok(())
    }

    /// What they are narrowed to, once all conditions are taken.
    pub(crate) fn finish(mut self) -> Self {
        self.by.between = between(self.prefixes);
        let Range { low, high } = self.numbers;
        if low.is_some() || high.is_some() {
            self.by.numbers = Some((low.unwrap_or(0), high.unwrap_or(u32::MAX)));
        }
        self
    }

    fn number(
        &mut self,
        compare: Compare,
        value: ValueRef<'_>,
        set: impl FnOnce(&mut Narrowed, u32),
    ) {
        let Some(number) = number(value) else {
            return;
        };
        match (compare, u32::try_from(number)) {
            (Compare::Equal, Ok(number)) => set(&mut self.by, number),
            (Compare::Equal, Err(_)) => self.is_empty = true,
            (Compare::AtLeast, Ok(number)) => self.numbers.low = Some(number),
            (Compare::AtMost, Ok(number)) => self.numbers.high = Some(number),
            // Below or above all numbers: it is looked at row by row.
            (Compare::AtLeast | Compare::AtMost | Compare::By(_), _) => {}
        }
    }

    fn prefix(&mut self, compare: Compare, value: ValueRef<'_>) {
        let Some(net) = text(value).and_then(|text| parse(&text)) else {
            return;
        };
        match compare {
            Compare::Equal if net == net.trunc() => self.by.exact = Some(net),
            Compare::Equal => self.is_empty = true,
            Compare::AtLeast => self.prefixes.low = Some(net),
            Compare::AtMost => self.prefixes.high = Some(net),
            Compare::By(_) => {}
        }
    }

    fn relation(
        &mut self,
        narrows: Narrows,
        relation: Relation,
        value: ValueRef<'_>,
    ) -> Result<(), String> {
        let Some(text) = text(value) else {
            return Ok(());
        };
        let net = relation.prefix(&text)?;
        let is_inner = match relation {
            Relation::Within => true,
            Relation::InRange => text.contains('/'),
            Relation::Covers | Relation::Longest => false,
        };
        self.longest |= relation == Relation::Longest;
        if is_inner {
            self.by.within = Some(net.trunc());
        } else if narrows == Narrows::Host {
            self.host(net);
        } else {
            self.by.covering = Some(net.trunc());
        }
        Ok(())
    }

    /// Rows of exactly a host.
    fn host(&mut self, net: IpNet) {
        match net.prefix_len() == net.max_prefix_len() {
            true => self.by.exact = Some(net),
            false => self.is_empty = true,
        }
    }

    fn equal(&mut self, narrows: Narrows, value: ValueRef<'_>, tables: &Tables, names: &Names) {
        let Some(text) = text(value) else {
            return;
        };
        let host = || parse(&text).filter(|net| net.prefix_len() == net.max_prefix_len());
        match narrows {
            Narrows::LinkName => match link(&text, tables) {
                Some(link) => self.by.link = Some(link),
                None => self.is_empty = true,
            },
            Narrows::Host => match parse(&text) {
                Some(net) => self.host(net),
                None => self.is_empty = true,
            },
            Narrows::Gateway => self.by.gateway = host().map(|net| net.addr()),
            Narrows::PreferredSource => self.by.source = host().map(|net| net.addr()),
            Narrows::Mac => self.by.mac = mac(&text),
            Narrows::Table => match names.number(NameFile::Tables, &text) {
                Some(table) => self.by.table = Some(table),
                None => self.is_empty = true,
            },
            Narrows::Nothing
            | Narrows::Source
            | Narrows::Link
            | Narrows::Nexthop
            | Narrows::Prefix
            | Narrows::Destination => {}
        }
    }
}

/// A range of prefixes of one family: one that is open has the other family
/// beyond its end, and is none.
fn between(range: Range<IpNet>) -> Option<(IpNet, IpNet)> {
    let first = IpNet::new_assert(IpAddr::from(Ipv4Addr::UNSPECIFIED), 0);
    let last = IpNet::new_assert(IpAddr::from(Ipv6Addr::from_bits(u128::MAX)), 128);
    match (range.low, range.high) {
        (None, None) => None,
        (low, high) => {
            let (low, high) = (low.unwrap_or(first), high.unwrap_or(last));
            (low.addr().is_ipv4() == high.addr().is_ipv4()).then_some((low, high))
        }
    }
}

/// The index of a link that is shown so.
fn link(name: &str, tables: &Tables) -> Option<u32> {
    let named = tables.named_links().by_name(name).map(|link| link.index);
    named.or_else(|| name.strip_prefix("if")?.parse().ok())
}

/// A value as text, where a column of text compares with it as such.
fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Text(text) => String::from_utf8(text.to_vec()).ok(),
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    }
}

/// A value as a whole number, where a column of numbers compares with it as
/// such.
fn number(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Integer(number) => Some(number),
        ValueRef::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    }
}

/// Octets in hexadecimal, two digits each, as rows show them.
fn mac(text: &str) -> Option<LinkLayerAddress> {
    let octet = |digits: &str| {
        let is_one = digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        is_one.then(|| u8::from_str_radix(digits, 16).ok())?
    };
    let octets: Option<Vec<u8>> = text.split(':').map(octet).collect();
    LinkLayerAddress::new(&octets?)
}
