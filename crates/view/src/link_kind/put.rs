//! Where the settings of a kind go: as fields (JSON, CSV, `--fields`) or as
//! text. Each setting is told once, with its key and its word; in text a
//! space follows each.

use std::net::IpAddr;

use table::LinkLayerAddress;

use crate::context::View;
use crate::fields::{Value, Visit, push_hundredths, push_plain};

pub(crate) struct Put<'p, 'v, V> {
    to: To<'p, V>,
    pub(crate) view: &'p View<'v>,
}

enum To<'p, V> {
    Fields(&'p mut V),
    Text(&'p mut Vec<u8>),
}

impl<'p, 'v, V: Visit> Put<'p, 'v, V> {
    pub(crate) fn fields(visit: &'p mut V, view: &'p View<'v>) -> Self {
        Self {
            to: To::Fields(visit),
            view,
        }
    }

    pub(crate) fn text(out: &'p mut Vec<u8>, view: &'p View<'v>) -> Self {
        Self {
            to: To::Text(out),
            view,
        }
    }

    /// A field alone.
    pub(crate) fn field(&mut self, key: &'static str, value: Value<'_>) {
        if let To::Fields(visit) = &mut self.to {
            visit.value(key, value);
        }
    }

    /// Text alone: a word and a value behind it, either of which may be
    /// empty.
    pub(crate) fn say(&mut self, word: &str, value: Value<'_>) {
        let To::Text(out) = &mut self.to else {
            return;
        };
        out.extend_from_slice(word.as_bytes());
        if !word.is_empty() && !matches!(value, Value::Text("")) {
            out.push(b' ');
        }
        push_plain(out, value);
        out.push(b' ');
    }

    /// Text alone: a word.
    pub(crate) fn say_word(&mut self, word: &str) {
        self.say("", Value::Text(word));
    }

    /// Text alone: bytes as they are.
    pub(crate) fn raw(&mut self, text: &str) {
        if let To::Text(out) = &mut self.to {
            out.extend_from_slice(text.as_bytes());
        }
    }

    /// Text alone: the rest goes on a line of its own.
    pub(crate) fn line(&mut self, start: &str) {
        let line_break = self.view.line_break();
        if let To::Text(out) = &mut self.to {
            out.push(line_break);
            out.extend_from_slice(start.as_bytes());
        }
    }

    /// The same value both ways.
    pub(crate) fn value(&mut self, key: &'static str, word: &str, value: Value<'_>) {
        self.field(key, value);
        self.say(word, value);
    }

    pub(crate) fn number(&mut self, key: &'static str, word: &str, number: Option<impl Into<u64>>) {
        if let Some(number) = number {
            self.value(key, word, Value::Number(number.into()));
        }
    }

    /// Hundredths of a second.
    pub(crate) fn timer(&mut self, key: &'static str, hundredths: u64) {
        self.field(key, Value::Hundredths(hundredths));
        let mut digits = Vec::new();
        push_hundredths(&mut digits, hundredths);
        let text = String::from_utf8(digits).unwrap_or_default();
        self.say(key, Value::Text(&format!("{text:>7}")));
    }

    /// `0x…`, but `0`.
    pub(crate) fn hex(&mut self, key: &'static str, word: &str, number: Option<impl Into<u64>>) {
        match number.map(Into::into) {
            Some(0) => self.value(key, word, Value::Text("0")),
            Some(number) => self.value(key, word, Value::Hex(number)),
            None => {}
        }
    }

    /// A word that stands for a number.
    pub(crate) fn word(&mut self, key: &'static str, word: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.value(key, word, Value::Text(value));
        }
    }

    /// The word at a number's place among `names`.
    pub(crate) fn named(
        &mut self,
        key: &'static str,
        word: &str,
        names: &[&'static str],
        number: Option<impl TryInto<usize>>,
    ) {
        let place = number.and_then(|number| number.try_into().ok());
        self.word(key, word, place.and_then(|place| names.get(place).copied()));
    }

    /// Said when it is so: a word, `true`.
    pub(crate) fn yes(&mut self, key: &'static str, word: &str, is_so: bool) {
        if is_so {
            self.field(key, Value::True);
            self.say_word(word);
        }
    }

    /// `true` or `false`; in text the word, or the other one. An empty one
    /// is not said.
    pub(crate) fn either(
        &mut self,
        key: &'static str,
        words: (&str, &str),
        number: Option<impl Into<u64>>,
    ) {
        let Some(number) = number.map(Into::into) else {
            return;
        };
        self.field(key, truth(number));
        let word = if number != 0 { words.0 } else { words.1 };
        if !word.is_empty() {
            self.say_word(word);
        }
    }

    /// `true` or `false`; in text `on` or `off` behind the key.
    pub(crate) fn on_off(&mut self, key: &'static str, number: Option<u8>) {
        let Some(number) = number else {
            return;
        };
        self.field(key, truth(number.into()));
        self.say(key, Value::Text(if number != 0 { "on" } else { "off" }));
    }

    /// A link, unless it is none.
    pub(crate) fn device(&mut self, key: &'static str, word: &str, index: Option<u32>) {
        if let Some(index) = index.filter(|index| *index != 0) {
            let name = Value::Name(self.view.device(index));
            self.value(key, word, name);
        }
    }

    /// A link; `*` where it is none.
    pub(crate) fn device_or_star(&mut self, key: &'static str, index: Option<u32>) {
        match index {
            Some(0) => self.value(key, key, Value::Text("*")),
            index => self.device(key, key, index),
        }
    }

    pub(crate) fn address(&mut self, key: &'static str, word: &str, address: Option<IpAddr>) {
        if let Some(address) = address {
            self.value(key, word, Value::Address(address));
        }
    }

    /// An end of a tunnel, or `any`.
    pub(crate) fn end_point(&mut self, key: &'static str, address: Option<IpAddr>) {
        match address.filter(|address| !address.is_unspecified()) {
            Some(address) => self.value(key, key, Value::Address(address)),
            None => self.value(key, key, Value::Text("any")),
        }
    }

    pub(crate) fn mac(&mut self, key: &'static str, word: &str, mac: Option<[u8; 6]>) {
        if let Some(mac) = mac.and_then(|mac| LinkLayerAddress::new(&mac)) {
            self.value(key, word, Value::LinkLayer(&mac));
        }
    }

    pub(crate) fn object(&mut self, key: &'static str) {
        if let To::Fields(visit) = &mut self.to {
            visit.object(key);
        }
    }

    pub(crate) fn end_object(&mut self) {
        if let To::Fields(visit) = &mut self.to {
            visit.end_object();
        }
    }

    /// A list; in text its items stand behind a word, with `between` them.
    pub(crate) fn list<'i>(
        &mut self,
        key: &'static str,
        word: &str,
        between: &str,
        items: impl IntoIterator<Item = Value<'i>>,
    ) {
        match &mut self.to {
            To::Fields(visit) => {
                visit.list(key);
                items.into_iter().for_each(|item| visit.item(item));
                visit.end_list();
            }
            To::Text(out) => {
                out.extend_from_slice(word.as_bytes());
                for (at, item) in items.into_iter().enumerate() {
                    let before = if at == 0 { "" } else { between };
                    out.extend_from_slice(before.as_bytes());
                    push_plain(out, item);
                }
                out.push(b' ');
            }
        }
    }

    /// Flags: in text with commas, up to `>`.
    pub(crate) fn flags<'i>(
        &mut self,
        key: &'static str,
        names: impl IntoIterator<Item = Value<'i>>,
    ) {
        match &mut self.to {
            To::Fields(visit) => {
                visit.list(key);
                names.into_iter().for_each(|name| visit.item(name));
                visit.end_list();
            }
            To::Text(out) => {
                out.push(b'<');
                for (at, name) in names.into_iter().enumerate() {
                    out.extend_from_slice(if at == 0 { b"" } else { b"," });
                    push_plain(out, name);
                }
                out.extend_from_slice(b"> ");
            }
        }
    }

    /// A list of objects of two numbers; in text `FROM:TO`.
    pub(crate) fn pairs(&mut self, key: &'static str, pairs: &[(u32, u32)]) {
        match &mut self.to {
            To::Fields(visit) => {
                visit.list(key);
                for (from, to) in pairs {
                    visit.object_item();
                    visit.value("from", Value::Number((*from).into()));
                    visit.value("to", Value::Number((*to).into()));
                    visit.end_item();
                }
                visit.end_list();
            }
            To::Text(out) => {
                for (from, to) in pairs {
                    out.extend_from_slice(format!("{from}:{to} ").as_bytes());
                }
            }
        }
    }
}

fn truth(number: u64) -> Value<'static> {
    if number != 0 {
        Value::True
    } else {
        Value::False
    }
}

/// The type of service of a tunnel's packets: that of the packet inside,
/// or a number; 0 is not said.
pub(crate) fn tos<V: Visit>(put: &mut Put<'_, '_, V>, tos: Option<u8>) {
    match tos {
        Some(1) => {
            put.field("tos", Value::Hex(1));
            put.say("tos", Value::Text("inherit"));
        }
        tos => put.hex("tos", "tos", tos.filter(|tos| *tos != 0)),
    }
}

/// The time to live of a tunnel's packets under a word; of 0 text says
/// another.
pub(crate) fn ttl<V: Visit>(put: &mut Put<'_, '_, V>, word: &str, ttl: u8, of_0: &str) {
    put.field("ttl", Value::Number(ttl.into()));
    match ttl {
        0 => put.say(word, Value::Text(of_0)),
        ttl => put.say(word, Value::Number(ttl.into())),
    }
}
