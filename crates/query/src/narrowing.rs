//! From conditions of SQL to what the planner of `view` knows. A condition
//! that cannot be said there narrows nothing, and SQLite looks at each row
//! that comes in any case: so what stands here makes answers quick, never
//! wrong.

use std::borrow::Cow;
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
        if let Narrows::Nat(narrows) = narrows {
            return narrows.knows(self);
        }
        let has_range = match narrows {
            Narrows::Prefix | Narrows::Destination | Narrows::Time => true,
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

    /// Whether no row comes that is not of it, so that SQLite need not look.
    pub(crate) fn says_all(self, narrows: Narrows) -> bool {
        match self {
            // No value has it.
            Self::By(Relation::Longest) => true,
            Self::Equal => narrows == Narrows::Prefix,
            _ => false,
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

const TWO_LONGEST: &str = "two longest matches are asked of one table: name it twice in the \
                           statement, one match each";

/// What conditions with their values narrow rows to.
#[derive(Debug)]
pub(crate) struct Narrowing {
    pub by: Narrowed,
    /// No row is of them.
    pub is_empty: bool,
    /// Only the longest of the prefixes that cover this one.
    pub longest: Option<IpNet>,
    /// Only that prefix of the longest ones.
    pub only: Option<IpNet>,
    /// Between which times, both included.
    pub times: (u64, u64),
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

impl Default for Narrowing {
    fn default() -> Self {
        Self {
            by: Narrowed::default(),
            is_empty: false,
            longest: None,
            only: None,
            times: (0, u64::MAX),
            prefixes: Range::default(),
            numbers: Range::default(),
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
            (Narrows::Prefix, Compare::Equal) => self.exact(value),
            (Narrows::Prefix | Narrows::Destination, _) => self.prefix(compare, value),
            (Narrows::Time, _) => self.time(compare, value),
            _ => self.equal(narrows, value, tables, names),
        }
        Ok(())
    }

    /// What they are narrowed to, once all conditions are taken.
    pub(crate) fn finish(&mut self) {
        // SQLite does not look at these again, so nothing else may lead to
        // the rows.
        if let Some(net) = self.longest {
            self.by.covering = Some(net);
            self.only = self.by.exact.take();
        }
        self.by.between = between(self.prefixes);
        let Range { low, high } = self.numbers;
        if low.is_some() || high.is_some() {
            self.by.numbers = Some((low.unwrap_or(0), high.unwrap_or(u32::MAX)));
        }
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

    /// A time is never before 1970: what compares with one of before says
    /// all or nothing, and is looked at row by row.
    fn time(&mut self, compare: Compare, value: ValueRef<'_>) {
        let (low, high) = match value {
            // A part of a millisecond lies between two.
            ValueRef::Real(number) => (number.floor() as i64, number.ceil() as i64),
            _ => match number(value) {
                Some(number) => (number, number),
                None => return,
            },
        };
        let (low, high) = (low.max(0).cast_unsigned(), high.max(0).cast_unsigned());
        let (from, until) = self.times;
        if matches!(compare, Compare::Equal | Compare::AtLeast) {
            self.times.0 = from.max(low);
        }
        if matches!(compare, Compare::Equal | Compare::AtMost) {
            self.times.1 = until.min(high);
        }
    }

    /// Each row's text is a prefix's, so what is none equals none of them:
    /// nobody looks at the rows again ([`Compare::says_all`]).
    fn exact(&mut self, value: ValueRef<'_>) {
        match text(value).and_then(|text| parse(&text)) {
            Some(net) => self.equals(net),
            None => self.is_empty = true,
        }
    }

    /// Rows of exactly a prefix: of no two, and of none with host bits.
    fn equals(&mut self, net: IpNet) {
        let other = self.by.exact.replace(net);
        self.is_empty |= net != net.trunc() || other.is_some_and(|other| other != net);
    }

    fn prefix(&mut self, compare: Compare, value: ValueRef<'_>) {
        let Some(net) = text(value).and_then(|text| parse(&text)) else {
            return;
        };
        match compare {
            Compare::Equal => self.equals(net),
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
        if relation == Relation::Longest {
            if self
                .longest
                .replace(net.trunc())
                .is_some_and(|other| other != net.trunc())
            {
                return Err(TWO_LONGEST.to_owned());
            }
        } else if is_inner {
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
            | Narrows::Nat(_)
            | Narrows::Time
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
pub(crate) fn text(value: ValueRef<'_>) -> Option<Cow<'_, str>> {
    match value {
        ValueRef::Text(text) => std::str::from_utf8(text).ok().map(Cow::Borrowed),
        ValueRef::Integer(number) => Some(number.to_string().into()),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    }
}

/// A value as a whole number, where a column of numbers compares with it as
/// such.
pub(crate) fn number(value: ValueRef<'_>) -> Option<i64> {
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
