//! How a row describes itself, once for JSON, CSV, `--fields` and `--sort`:
//! it tells a [`Visit`] its fields in the order and under the names of
//! `ip -j`.

use std::cmp::Ordering;
use std::net::IpAddr;

use ipnet::IpNet;
use table::LinkLayerAddress;

use crate::format::{push_address, push_destination, push_hex, push_i64, push_lladdr, push_u64};
use crate::names::Name;

/// The value of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    /// A name, or a number where there is none; always text in JSON.
    Name(Name<'a>),
    Number(u64),
    Signed(i64),
    /// `0x…`, text in JSON.
    Hex(u64),
    Address(IpAddr),
    /// A destination: `default`, an address or a prefix.
    Destination(IpNet),
    LinkLayer(&'a LinkLayerAddress),
    /// `true`; false ones are left out.
    True,
    /// A flag that `ip -j` shows as `"router":null`.
    Present,
}

/// Is told the fields of a row.
pub(crate) trait Visit {
    /// A field with a value.
    fn value(&mut self, key: &'static str, value: Value<'_>);
    /// A field that is an object, up to [`Visit::end_object`].
    fn object(&mut self, key: &'static str);
    fn end_object(&mut self);
    /// A field that is a list, up to [`Visit::end_list`].
    fn list(&mut self, key: &'static str);
    fn end_list(&mut self);
    /// An item of a list.
    fn item(&mut self, value: Value<'_>);
    /// An item that is an object, up to [`Visit::end_item`].
    fn object_item(&mut self);
    fn end_item(&mut self);
}

/// Writes the fields as JSON.
pub(crate) struct Json<'b> {
    pub out: &'b mut Vec<u8>,
}

impl Json<'_> {
    #[inline]
    fn separate(&mut self) {
        if !matches!(self.out.last(), Some(b'{' | b'[') | None) {
            self.out.push(b',');
        }
    }

    #[inline]
    pub(crate) fn key(&mut self, key: &str) {
        self.separate();
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    #[inline]
    pub(crate) fn put(&mut self, value: Value<'_>) {
        match value {
            Value::Number(number) => push_u64(self.out, number),
            Value::Signed(number) => push_i64(self.out, number),
            Value::True => self.out.extend_from_slice(b"true"),
            Value::Present => self.out.extend_from_slice(b"null"),
            Value::Text(text) | Value::Name(Name::Known(text)) => push_json_text(self.out, text),
            other => {
                self.out.push(b'"');
                push_plain(self.out, other);
                self.out.push(b'"');
            }
        }
    }
}

impl Visit for Json<'_> {
    #[inline]
    fn value(&mut self, key: &'static str, value: Value<'_>) {
        self.key(key);
        self.put(value);
    }

    fn object(&mut self, key: &'static str) {
        self.key(key);
        self.out.push(b'{');
    }

    fn end_object(&mut self) {
        self.out.push(b'}');
    }

    fn list(&mut self, key: &'static str) {
        self.key(key);
        self.out.push(b'[');
    }

    fn end_list(&mut self) {
        self.out.push(b']');
    }

    fn item(&mut self, value: Value<'_>) {
        self.separate();
        self.put(value);
    }

    fn object_item(&mut self) {
        self.separate();
        self.out.push(b'{');
    }

    fn end_item(&mut self) {
        self.out.push(b'}');
    }
}

/// A JSON string, quoted and escaped.
pub(crate) fn push_json_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    if text.bytes().all(|b| b >= 0x20 && b != b'"' && b != b'\\') {
        out.extend_from_slice(text.as_bytes());
    } else {
        for byte in text.bytes() {
            push_json_byte(out, byte);
        }
    }
    out.push(b'"');
}

fn push_json_byte(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\t' => out.extend_from_slice(b"\\t"),
        b'\r' => out.extend_from_slice(b"\\r"),
        0..0x20 => {
            out.extend_from_slice(if byte < 0x10 { b"\\u000" } else { b"\\u00" });
            push_hex(out, byte.into());
        }
        _ => out.push(byte),
    }
}

/// A value without quotes, as text, CSV and tables show it.
#[inline]
pub(crate) fn push_plain(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
        Value::Name(name) => push_name(out, name),
        Value::Number(number) => push_u64(out, number),
        Value::Signed(number) => push_i64(out, number),
        Value::Hex(number) => {
            out.extend_from_slice(b"0x");
            push_hex(out, number);
        }
        Value::Address(address) => push_address(out, address),
        Value::Destination(prefix) => push_destination(out, prefix),
        Value::LinkLayer(address) => push_lladdr(out, address),
        Value::True | Value::Present => out.extend_from_slice(b"true"),
    }
}

/// A name or its number.
#[inline]
pub(crate) fn push_name(out: &mut Vec<u8>, name: Name<'_>) {
    match name {
        Name::Known(text) => out.extend_from_slice(text.as_bytes()),
        Name::Number(number) => push_u64(out, number.into()),
        Name::Hex(number) => {
            out.extend_from_slice(if number < 0x10 { b"0x0" } else { b"0x" });
            push_hex(out, number.into());
        }
        Name::Link(index) => {
            out.extend_from_slice(b"if");
            push_u64(out, index.into());
        }
    }
}

/// What rows are sorted by. Numbers and addresses by value, the rest as
/// text; rows without the field come first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum SortKey {
    #[default]
    Missing,
    Number(i128),
    Address(IpAddr, u8),
    Text(Box<[u8]>),
}

impl SortKey {
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }

    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Number(number) | Value::Hex(number) => Self::Number(number.into()),
            Value::Signed(number) => Self::Number(number.into()),
            Value::True | Value::Present => Self::Number(1),
            Value::Address(address) => Self::Address(address, u8::MAX),
            Value::Destination(prefix) => Self::Address(prefix.addr(), prefix.prefix_len()),
            other => {
                let mut text = Vec::new();
                push_plain(&mut text, other);
                Self::Text(text.into())
            }
        }
    }
}

/// Picks one column out of a row: `dst`, or `nexthops.gateway` for what is
/// nested. Where a column has several values, they stand in a JSON list,
/// and with spaces between them elsewhere. The buffers are reused from row
/// to row.
#[derive(Debug, Default)]
pub(crate) struct Pick {
    pub name: Box<str>,
    /// The name at its dots.
    path: Vec<Box<str>>,
    /// The values as text.
    pub plain: Vec<u8>,
    /// The values as JSON; empty when the row does not have the column.
    pub json: Vec<u8>,
    /// The first value, kept when asked for.
    pub key: SortKey,
    pub wants_key: bool,
    /// Nesting, and how much of it is on the column's path.
    depth: usize,
    matched: usize,
    /// Depth inside the column itself once it was met.
    inside: usize,
    /// Whether the path goes through a list.
    many: bool,
}

impl Pick {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            path: name.split('.').map(Box::from).collect(),
            ..Self::default()
        }
    }

    /// Ready for the next row.
    pub(crate) fn start(&mut self) {
        self.plain.clear();
        self.json.clear();
        self.key = SortKey::Missing;
        (self.depth, self.matched, self.inside) = (0, 0, 0);
        self.many = false;
    }

    /// After the row's last field.
    pub(crate) fn finish(&mut self) {
        if self.many && !self.json.is_empty() {
            self.json.push(b']');
        }
    }

    fn is_next(&self, key: &str) -> bool {
        self.depth == self.matched && self.path.get(self.matched).is_some_and(|p| **p == *key)
    }

    fn is_last(&self) -> bool {
        self.matched + 1 == self.path.len()
    }

    fn before_value(&mut self) {
        if self.many {
            self.json
                .push(if self.json.is_empty() { b'[' } else { b',' });
        }
    }

    fn take(&mut self, value: Value<'_>) {
        if !self.plain.is_empty() {
            self.plain.push(b' ');
        }
        push_plain(&mut self.plain, value);
        if self.wants_key && self.key == SortKey::Missing {
            self.key = SortKey::of(value);
        }
    }

    /// Enters an object or a list: whether it is inside the column.
    fn enter(&mut self, key: &'static str, bracket: u8) -> bool {
        if self.inside > 0 {
            self.inside += 1;
            return true;
        }
        if self.is_next(key) {
            if self.is_last() {
                self.before_value();
                self.json.push(bracket);
                self.inside = 1;
                return false;
            }
            self.matched += 1;
            self.many |= bracket == b'[';
        }
        self.depth += 1;
        false
    }

    /// Leaves one: whether it was the column or inside it.
    fn leave(&mut self) -> bool {
        if self.inside > 0 {
            self.inside -= 1;
            return true;
        }
        if self.matched == self.depth {
            self.matched = self.matched.saturating_sub(1);
        }
        self.depth = self.depth.saturating_sub(1);
        false
    }

    fn as_json(&mut self) -> Json<'_> {
        Json {
            out: &mut self.json,
        }
    }
}

impl Visit for Pick {
    fn value(&mut self, key: &'static str, value: Value<'_>) {
        if self.inside > 0 {
            self.as_json().value(key, value);
        } else if self.is_next(key) && self.is_last() {
            self.before_value();
            self.as_json().put(value);
        } else {
            return;
        }
        self.take(value);
    }

    fn object(&mut self, key: &'static str) {
        if self.enter(key, b'{') {
            self.as_json().object(key);
        }
    }

    fn end_object(&mut self) {
        if self.leave() {
            self.json.push(b'}');
        }
    }

    fn list(&mut self, key: &'static str) {
        if self.enter(key, b'[') {
            self.as_json().list(key);
        }
    }

    fn end_list(&mut self) {
        if self.leave() {
            self.json.push(b']');
        }
    }

    fn item(&mut self, value: Value<'_>) {
        if self.inside > 0 {
            self.as_json().item(value);
            self.take(value);
        }
    }

    fn object_item(&mut self) {
        if self.inside > 0 {
            self.inside += 1;
            self.as_json().object_item();
        }
    }

    fn end_item(&mut self) {
        if self.inside > 0 {
            self.inside -= 1;
            self.json.push(b'}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(visit: &mut impl Visit) {
        visit.value("dst", Value::Text("a\"b"));
        visit.list("flags");
        visit.item(Value::Text("up"));
        visit.item(Value::Text("x"));
        visit.end_list();
        visit.object("via");
        visit.value("dst", Value::Number(7));
        visit.end_object();
        visit.list("nexthops");
        for n in [1, 2] {
            visit.object_item();
            visit.value("dev", Value::Number(n));
            visit.list("flags");
            visit.end_list();
            visit.end_item();
        }
        visit.end_list();
        visit.value("last", Value::Present);
    }

    fn pick(name: &str) -> (String, String) {
        let mut pick = Pick::new(name);
        for _ in 0..2 {
            pick.start();
            describe(&mut pick);
            pick.finish();
        }
        (
            String::from_utf8(pick.plain).unwrap(),
            String::from_utf8(pick.json).unwrap(),
        )
    }

    fn both(plain: &str, json: &str) -> (String, String) {
        (plain.into(), json.into())
    }

    #[test]
    fn a_row_is_written_as_json() {
        let mut out = b"{".to_vec();
        describe(&mut Json { out: &mut out });
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"dst":"a\"b","flags":["up","x"],"via":{"dst":7},"nexthops":[{"dev":1,"flags":[]},{"dev":2,"flags":[]}],"last":null"#
        );
    }

    #[test]
    fn a_column_is_picked_whole_nested_or_not_at_all() {
        assert_eq!(pick("dst"), both("a\"b", r#""a\"b""#));
        assert_eq!(pick("flags"), both("up x", r#"["up","x"]"#));
        assert_eq!(pick("via.dst"), both("7", "7"));
        assert_eq!(pick("nexthops.dev"), both("1 2", "[1,2]"));
        assert_eq!(
            pick("nexthops"),
            both("1 2", r#"[{"dev":1,"flags":[]},{"dev":2,"flags":[]}]"#)
        );
        assert_eq!(pick("last"), both("true", "null"));
        assert_eq!(pick("dev"), both("", ""));
        assert_eq!(pick("via.x"), both("", ""));
    }

    #[test]
    fn control_characters_are_escaped() {
        let mut out = Vec::new();
        push_json_text(&mut out, "a\\\n\u{1}\u{1f}é");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\"a\\\\\\n\\u0001\\u001fé\""
        );
    }
}
