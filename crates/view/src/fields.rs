//! How a row describes itself, once for JSON, CSV, `--fields` and `--sort`:
//! it tells a [`Visit`] its fields in the order and under the names of
//! `ip -j`.

use std::net::IpAddr;

use ipnet::IpNet;
use table::LinkLayerAddress;

use crate::format::{push_address, push_destination, push_hex, push_i64, push_lladdr, push_u64};
use words::Name;

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
    /// Hundredths of one, with two digits behind the point.
    Hundredths(u64),
    Address(IpAddr),
    /// A destination: `default`, an address or a prefix.
    Destination(IpNet),
    LinkLayer(&'a LinkLayerAddress),
    /// `true`; most that are false are left out.
    True,
    False,
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
            Value::Hundredths(number) => push_hundredths(self.out, number),
            Value::True => self.out.extend_from_slice(b"true"),
            Value::False => self.out.extend_from_slice(b"false"),
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
pub fn push_json_text(out: &mut Vec<u8>, text: &str) {
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
        Value::Hundredths(number) => push_hundredths(out, number),
        Value::Address(address) => push_address(out, address),
        Value::Destination(prefix) => push_destination(out, prefix),
        Value::LinkLayer(address) => push_lladdr(out, address),
        Value::True | Value::Present => out.extend_from_slice(b"true"),
        Value::False => out.extend_from_slice(b"false"),
    }
}

/// `12.34`
pub(crate) fn push_hundredths(out: &mut Vec<u8>, number: u64) {
    push_u64(out, number / 100);
    out.extend_from_slice(if number % 100 < 10 { b".0" } else { b"." });
    push_u64(out, number % 100);
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A row with everything that a row may tell.
    pub(crate) fn describe(visit: &mut impl Visit) {
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
    fn control_characters_are_escaped() {
        let mut out = Vec::new();
        push_json_text(&mut out, "a\\\n\u{1}\u{1f}é");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\"a\\\\\\n\\u0001\\u001fé\""
        );
    }
}
