//! The functions that SQL gets: which prefix lies in which, and parts of
//! them. Those of two texts are conditions that a table may look up
//! (`vtab`); where it does not, each row is looked at here.

#![allow(unsafe_code, reason = "functions as SQLite calls them for a table")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use rusqlite::ffi;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result};

use crate::address_text::{COLLATION, compare, is_within, parse, text_of};
use crate::heap;

/// A condition on two texts, the first a column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    /// `within(inner, outer)`
    Within,
    /// `covers(outer, inner)`
    Covers,
    /// `in_cidr_range(one, other)`: the other covers where it has a length.
    InRange,
    /// `longest_match(prefix, address)`: only as a condition.
    Longest,
}

const RELATIONS: [(&CStr, Relation); 5] = [
    (c"within", Relation::Within),
    (c"covers", Relation::Covers),
    (c"in_cidr_range", Relation::InRange),
    (c"in_cidr_block", Relation::InRange),
    (c"longest_match", Relation::Longest),
];

/// The first number that a constraint of a function may have.
const FIRST: u8 = 150;

impl Relation {
    fn number(self) -> u8 {
        FIRST
            + match self {
                Self::Within => 0,
                Self::Covers => 1,
                Self::InRange => 2,
                Self::Longest => 3,
            }
    }

    /// Of the number of a constraint.
    pub(crate) fn of_constraint(number: u8) -> Option<Self> {
        let mut all = RELATIONS.iter().map(|(_, relation)| *relation);
        all.find(|relation| relation.number() == number)
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Within => "within",
            Self::Covers => "covers",
            Self::InRange => "in_cidr_range",
            Self::Longest => "longest_match",
        }
    }

    /// Whether it holds; the error is for whoever asks.
    fn holds(self, one: &str, other: &str) -> std::result::Result<bool, String> {
        if self == Self::Longest {
            return Err(LONGEST.to_owned());
        }
        let (first, second) = (self.prefix(one)?, self.prefix(other)?);
        Ok(match self {
            Self::Within => is_within(first, second),
            Self::InRange if other.contains('/') => is_within(first, second),
            _ => is_within(second, first),
        })
    }

    /// A prefix of a relation, or an error that says what is none.
    pub(crate) fn prefix(self, text: &str) -> std::result::Result<IpNet, String> {
        parse(text).ok_or_else(|| {
            let shown: String = text.chars().take(64).collect();
            format!("{}(): `{shown}` is no address and no prefix", self.name())
        })
    }
}

const LONGEST: &str = "longest_match() is a condition on `routes.prefix` and not a value: write \
                       `where longest_match(prefix, '192.0.2.1')`, joined to others by `and`";

/// Registers the functions and the order of addresses.
pub(crate) fn register(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_collation(COLLATION, compare)?;
    for (name, relation) in RELATIONS {
        connection.create_scalar_function(name, 2, flags, move |context| {
            let (Some(one), Some(other)) = (text(context, 0)?, text(context, 1)?) else {
                return Ok(None);
            };
            relation.holds(one, other).map(Some).map_err(failed)
        })?;
    }
    let parts: [(&CStr, TakePart); 4] = [
        (c"host", |net| Part::Text(net.addr().to_string())),
        (c"network", |net| Part::Text(text_of(net.trunc()))),
        (c"netmask", |net| Part::Text(netmask(net).to_string())),
        (c"masklen", |net| Part::Number(net.prefix_len().into())),
    ];
    for (name, part) in parts {
        connection.create_scalar_function(name, 1, flags, move |context| {
            Ok(text(context, 0)?
                .and_then(parse)
                .map(part)
                .unwrap_or(Part::None))
        })?;
    }
    connection.create_scalar_function(c"family", 1, flags, |context| {
        let net = text(context, 0)?.and_then(parse);
        Ok(net.map(|net| if net.addr().is_ipv4() { 4 } else { 6 }))
    })
}

/// Takes a part of a prefix.
type TakePart = fn(IpNet) -> Part;

/// What a function of a prefix gives.
enum Part {
    None,
    Text(String),
    Number(i64),
}

impl rusqlite::ToSql for Part {
    fn to_sql(&self) -> Result<rusqlite::types::ToSqlOutput<'_>> {
        let value = match self {
            Self::None => ValueRef::Null,
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Number(number) => ValueRef::Integer(*number),
        };
        Ok(rusqlite::types::ToSqlOutput::Borrowed(value))
    }
}

fn netmask(net: IpNet) -> IpAddr {
    let zeros = u32::from(net.max_prefix_len() - net.prefix_len());
    match net {
        IpNet::V4(_) => Ipv4Addr::from_bits(u32::MAX.checked_shl(zeros).unwrap_or(0)).into(),
        IpNet::V6(_) => Ipv6Addr::from_bits(u128::MAX.checked_shl(zeros).unwrap_or(0)).into(),
    }
}

/// An argument that is text; `None`: it is NULL.
fn text<'c>(context: &'c Context<'_>, at: usize) -> Result<Option<&'c str>> {
    match context.get_raw(at) {
        ValueRef::Null => Ok(None),
        ValueRef::Text(text) => Ok(Some(std::str::from_utf8(text).unwrap_or_default())),
        _ => Err(failed(
            "an address or a prefix is expected, as text".to_owned(),
        )),
    }
}

/// An error in words, handed to SQLite.
pub(crate) fn failed(why: String) -> Error {
    heap::grant(why.len() + 1024);
    Error::ModuleError(why)
}

/// What a table says of a function whose first argument is one of its
/// columns: that it may be a condition which it looks up.
pub(crate) unsafe extern "C" fn find(
    _: *mut ffi::sqlite3_vtab,
    arguments: c_int,
    name: *const c_char,
    function: *mut Option<
        unsafe extern "C" fn(*mut ffi::sqlite3_context, c_int, *mut *mut ffi::sqlite3_value),
    >,
    data: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite gives the name of the function.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let known = RELATIONS
        .iter()
        .find(|(known, _)| known.to_bytes().eq_ignore_ascii_case(name));
    let Some((_, relation)) = known.filter(|_| arguments == 2) else {
        return 0;
    };
    let called: unsafe extern "C" fn(_, _, _) = match relation {
        Relation::Within => within,
        Relation::Covers => covers,
        Relation::InRange => in_range,
        Relation::Longest => longest,
    };
    // SAFETY: both are places that SQLite has for the answer.
    unsafe {
        *function = Some(called);
        *data = std::ptr::null_mut();
    }
    relation.number().into()
}

macro_rules! called {
    ($name:ident, $relation:expr) => {
        unsafe extern "C" fn $name(
            context: *mut ffi::sqlite3_context,
            arguments: c_int,
            values: *mut *mut ffi::sqlite3_value,
        ) {
            // SAFETY: SQLite calls it with what it says.
            unsafe { call($relation, context, arguments, values) }
        }
    };
}

called!(within, Relation::Within);
called!(covers, Relation::Covers);
called!(in_range, Relation::InRange);
called!(longest, Relation::Longest);

/// The same functions as above, on a table's column.
///
/// SAFETY: the arguments are those of SQLite's call.
unsafe fn call(
    relation: Relation,
    context: *mut ffi::sqlite3_context,
    arguments: c_int,
    values: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: there are so many values, and each lives as long as the call.
    let (one, other) = unsafe {
        match usize::try_from(arguments) {
            Ok(2) => (text_of_value(*values), text_of_value(*values.add(1))),
            _ => (None, None),
        }
    };
    // SAFETY: the context is the call's; SQLite copies the message.
    unsafe {
        let (Some(one), Some(other)) = (one, other) else {
            return ffi::sqlite3_result_null(context);
        };
        match relation.holds(one, other) {
            Ok(holds) => ffi::sqlite3_result_int(context, holds.into()),
            Err(why) => {
                let length = c_int::try_from(why.len()).unwrap_or(0);
                ffi::sqlite3_result_error(context, why.as_ptr().cast(), length);
            }
        }
    }
}

/// The text of a value; `None`: it has none.
///
/// SAFETY: the value lives, and is not changed, as long as its text is used.
unsafe fn text_of_value<'v>(value: *mut ffi::sqlite3_value) -> Option<&'v str> {
    // SAFETY: text first, then its length, as SQLite wants to be asked.
    unsafe {
        let text = ffi::sqlite3_value_text(value);
        let length = usize::try_from(ffi::sqlite3_value_bytes(value)).ok()?;
        (!text.is_null())
            .then(|| std::slice::from_raw_parts(text, length))
            .and_then(|text| std::str::from_utf8(text).ok())
    }
}
