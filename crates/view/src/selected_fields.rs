//! Selects fields of rows by their names: the cells of `--fields` and
//! CSV, the key of `--sort`. All that is selected is selected in one pass.

use std::net::IpAddr;

use crate::fields::{Json, Value, Visit, push_plain};
use words::Name;

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
    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Number(number) | Value::Hex(number) | Value::Hundredths(number) => {
                Self::Number(number.into())
            }
            Value::Signed(number) => Self::Number(number.into()),
            // A table, a protocol without a name: before those with one.
            Value::Name(Name::Number(number) | Name::Hex(number)) => Self::Number(number.into()),
            Value::True | Value::Present => Self::Number(1),
            Value::False => Self::Number(0),
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

/// What is kept of the values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// Text; several values with spaces between them.
    Plain,
    /// JSON; several values as a list.
    Json,
    /// The first value, to sort by.
    Key,
    /// A number as such, all else as [`Take::Plain`].
    Typed,
}

/// What a row has in a column, for who asks for values and no text of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellValue<'c> {
    /// Nothing.
    Missing,
    /// A number; 1 and 0 for what is there or not.
    Number(i64),
    /// Text; several values with spaces between them.
    Text(&'c [u8]),
}

/// What a row has of a field. The buffer is reused from row to row.
#[derive(Debug, Default)]
struct Cell {
    bytes: Vec<u8>,
    /// Whether the way to the field went through a list: it may have
    /// several values, and is a list in JSON even when it has one.
    many: bool,
    key: SortKey,
    /// The only value, where it is a number.
    number: Option<i64>,
}

/// A value that is a number, where it is one of so many bits.
fn number_of(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Number(number) => i64::try_from(number).ok(),
        Value::Signed(number) => Some(number),
        Value::True | Value::Present => Some(1),
        Value::False => Some(0),
        _ => None,
    }
}

impl Cell {
    /// A field on its way to the cell; whether it belongs there. A row may
    /// tell a name twice (`dst` of a route, `dst` of its tunnel): the first
    /// is the column.
    #[inline]
    fn begin(&mut self, take: Take, many: bool) -> bool {
        let is_first = self.bytes.is_empty();
        if take == Take::Json && many {
            self.bytes.push(if is_first { b'[' } else { b',' });
            self.many = true;
        }
        is_first || many
    }

    /// A value of the field or of what is inside it; `json` writes it.
    #[inline]
    fn value(&mut self, take: Take, value: Value<'_>, json: impl FnOnce(&mut Json<'_>)) {
        match take {
            Take::Plain => {
                if !self.bytes.is_empty() {
                    self.bytes.push(b' ');
                }
                push_plain(&mut self.bytes, value);
            }
            Take::Typed => {
                self.number = number_of(value).filter(|_| self.bytes.is_empty());
                if !self.bytes.is_empty() {
                    self.bytes.push(b' ');
                }
                push_plain(&mut self.bytes, value);
            }
            Take::Json => json(&mut self.json()),
            Take::Key if self.key == SortKey::Missing => self.key = SortKey::of(value),
            Take::Key => {}
        }
    }

    #[inline]
    fn json(&mut self) -> Json<'_> {
        Json {
            out: &mut self.bytes,
        }
    }
}

/// A name among those selected, at one of its dots.
#[derive(Debug, Default)]
struct Node {
    /// The cells whose names end here.
    cells: Vec<usize>,
    /// Names that go on, and where.
    children: Vec<(Box<str>, usize)>,
    /// Behind the child that was met last. Rows tell their fields mostly in
    /// the order of the columns: the next is seldom far.
    next: usize,
}

impl Node {
    #[inline]
    fn child(&mut self, key: &str) -> Option<usize> {
        let (before, after) = self.children.split_at(self.next);
        let find = |among: &[(Box<str>, usize)]| among.iter().position(|(name, _)| **name == *key);
        let at = find(after)
            .map(|at| at + self.next)
            .or_else(|| find(before))?;
        self.next = at + 1;
        Some(self.children[at].1)
    }
}

/// An object or a list that the visit is inside of.
#[derive(Debug, Clone, Copy)]
struct Outer {
    /// Where the visit was before.
    node: Option<usize>,
    many: bool,
    /// Cells that were open before.
    open: usize,
}

/// Selects columns of rows: `dst`, `nexthops.gateway` for what is nested,
/// `nexthops` for a whole. One pass over a row fills all of them, at
/// O(fields of the row) where names were asked for in the row's order, else
/// O(fields × names).
#[derive(Debug)]
pub(crate) struct SelectedFields {
    names: Vec<Box<str>>,
    take: Take,
    cells: Vec<Cell>,
    /// The names as a tree; the first node is the row itself.
    nodes: Vec<Node>,
    /// The node that the visit is at; none where nothing is selected.
    node: Option<usize>,
    /// Whether a list was entered on the way there.
    many: bool,
    /// As deep as rows are nested.
    outer: Vec<Outer>,
    /// Cells of wholes that the visit is inside of.
    open: Vec<usize>,
}

impl SelectedFields {
    pub(crate) fn new<'n>(names: impl IntoIterator<Item = &'n str>, take: Take) -> Self {
        let mut selected = Self {
            names: Vec::new(),
            take,
            cells: Vec::new(),
            nodes: vec![Node::default()],
            node: None,
            many: false,
            outer: Vec::new(),
            open: Vec::new(),
        };
        for name in names {
            selected.add(name);
        }
        selected
    }

    fn add(&mut self, name: &str) {
        let mut node = 0;
        for key in name.split('.') {
            node = self.nodes[node].child(key).unwrap_or_else(|| {
                let child = self.nodes.len();
                self.nodes.push(Node::default());
                self.nodes[node].children.push((key.into(), child));
                child
            });
        }
        self.nodes[node].cells.push(self.cells.len());
        self.names.push(name.into());
        self.cells.push(Cell::default());
    }

    /// The names, as they were asked for.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// What the last row has of each name; empty where it has nothing.
    #[inline]
    pub(crate) fn cells(&self) -> impl Iterator<Item = &[u8]> {
        self.cells.iter().map(|cell| &*cell.bytes)
    }

    /// What the last row has of a name, where values are taken.
    #[inline]
    pub(crate) fn typed(&self, at: usize) -> CellValue<'_> {
        match self.cells.get(at) {
            Some(Cell {
                number: Some(number),
                ..
            }) => CellValue::Number(*number),
            Some(cell) if !cell.bytes.is_empty() => CellValue::Text(&cell.bytes),
            _ => CellValue::Missing,
        }
    }

    /// The first name's key of the last row.
    pub(crate) fn take_key(&mut self) -> SortKey {
        let cell = self.cells.first_mut();
        cell.map(|cell| std::mem::take(&mut cell.key))
            .unwrap_or_default()
    }

    /// Takes a row: `tell` tells its fields.
    #[inline]
    pub(crate) fn row(&mut self, tell: impl FnOnce(&mut Self)) {
        for cell in &mut self.cells {
            cell.bytes.clear();
            cell.many = false;
            cell.number = None;
        }
        (self.node, self.many) = (Some(0), false);
        tell(self);
        if self.take == Take::Json {
            for cell in self.cells.iter_mut().filter(|cell| cell.many) {
                cell.bytes.push(b']');
            }
        }
    }

    #[inline]
    fn child(&mut self, key: &str) -> Option<usize> {
        self.nodes[self.node?].child(key)
    }

    /// Calls for the cells of wholes that the visit is inside of.
    #[inline]
    fn each_open(&mut self, mut each: impl FnMut(&mut Cell)) {
        for at in &self.open {
            each(&mut self.cells[*at]);
        }
    }

    /// The same, to write JSON.
    #[inline]
    fn each_open_json(&mut self, mut each: impl FnMut(&mut Json<'_>)) {
        if self.take == Take::Json {
            self.each_open(|cell| each(&mut cell.json()));
        }
    }

    #[inline]
    fn enter(&mut self, key: &'static str, bracket: u8) {
        self.outer.push(Outer {
            node: self.node,
            many: self.many,
            open: self.open.len(),
        });
        self.node = self.child(key);
        if let Some(node) = self.node {
            for at in &self.nodes[node].cells {
                let cell = &mut self.cells[*at];
                if cell.begin(self.take, self.many) {
                    if self.take == Take::Json {
                        cell.bytes.push(bracket);
                    }
                    self.open.push(*at);
                }
            }
        }
        self.many |= bracket == b'[';
    }

    #[inline]
    fn leave(&mut self, bracket: u8) {
        self.each_open_json(|json| json.out.push(bracket));
        if let Some(outer) = self.outer.pop() {
            (self.node, self.many) = (outer.node, outer.many);
            self.open.truncate(outer.open);
        }
    }
}

impl Visit for SelectedFields {
    #[inline]
    fn value(&mut self, key: &'static str, value: Value<'_>) {
        let take = self.take;
        self.each_open(|cell| cell.value(take, value, |json| json.value(key, value)));
        if let Some(node) = self.child(key) {
            for at in &self.nodes[node].cells {
                let cell = &mut self.cells[*at];
                if cell.begin(take, self.many) {
                    cell.value(take, value, |json| json.put(value));
                }
            }
        }
    }

    #[inline]
    fn object(&mut self, key: &'static str) {
        self.each_open_json(|json| json.object(key));
        self.enter(key, b'{');
    }

    #[inline]
    fn end_object(&mut self) {
        self.leave(b'}');
    }

    #[inline]
    fn list(&mut self, key: &'static str) {
        self.each_open_json(|json| json.list(key));
        self.enter(key, b'[');
    }

    #[inline]
    fn end_list(&mut self) {
        self.leave(b']');
    }

    #[inline]
    fn item(&mut self, value: Value<'_>) {
        let take = self.take;
        self.each_open(|cell| cell.value(take, value, |json| json.item(value)));
    }

    fn object_item(&mut self) {
        self.each_open_json(|json| json.object_item());
    }

    fn end_item(&mut self) {
        self.each_open_json(|json| json.end_item());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::tests::describe;

    /// What is selected when the row comes a second time.
    fn selected(names: &[&str], take: Take) -> Vec<String> {
        let mut selected = SelectedFields::new(names.iter().copied(), take);
        selected.row(describe);
        selected.row(describe);
        selected
            .cells()
            .map(|cell| String::from_utf8(cell.to_vec()).unwrap())
            .collect()
    }

    const PICKED: [(&str, &str, &str); 10] = [
        ("dst", "a\"b", r#""a\"b""#),
        ("flags", "up x", r#"["up","x"]"#),
        ("via", "7", r#"{"dst":7}"#),
        ("via.dst", "7", "7"),
        ("nexthops.dev", "1 2", "[1,2]"),
        ("nexthops.flags", "", "[[],[]]"),
        (
            "nexthops",
            "1 2",
            r#"[{"dev":1,"flags":[]},{"dev":2,"flags":[]}]"#,
        ),
        ("last", "true", "null"),
        ("dev", "", ""),
        ("via.x", "", ""),
    ];

    #[test]
    fn a_column_is_picked_whole_nested_or_not_at_all() {
        for (name, plain, json) in PICKED {
            assert_eq!(selected(&[name], Take::Plain), [plain], "{name}");
            assert_eq!(selected(&[name], Take::Json), [json], "{name}");
        }
    }

    #[test]
    fn all_are_picked_in_one_pass_in_any_order_and_twice() {
        let forth = PICKED.iter();
        let all: Vec<_> = forth.clone().chain(forth.rev()).collect();
        let names: Vec<_> = all.iter().map(|(name, ..)| *name).collect();
        let plain: Vec<_> = all.iter().map(|(_, plain, _)| *plain).collect();
        let json: Vec<_> = all.iter().map(|(.., json)| *json).collect();
        assert_eq!(selected(&names, Take::Plain), plain);
        assert_eq!(selected(&names, Take::Json), json);
    }

    #[test]
    fn of_a_field_that_is_told_twice_the_first_is_picked() {
        for (take, cell) in [(Take::Plain, "1"), (Take::Json, "1")] {
            let mut selected = SelectedFields::new(["dst"], take);
            selected.row(|visit| {
                visit.value("dst", Value::Number(1));
                visit.value("dst", Value::Number(2));
            });
            assert_eq!(selected.cells().collect::<Vec<_>>(), [cell.as_bytes()]);
        }
    }

    #[test]
    fn numbers_and_addresses_are_sorted_by_value_before_names() {
        let address = |text: &str| Value::Address(text.parse().unwrap());
        let prefix = |text: &str| Value::Destination(text.parse().unwrap());
        let known = |text| Value::Name(Name::Known(text));
        let in_order: [&[Value<'_>]; 5] = [
            &[
                Value::Signed(-1),
                Value::Number(9),
                Value::Number(10),
                Value::Hex(0x10),
            ],
            &[
                address("9.0.0.1"),
                address("10.0.0.9"),
                address("10.0.0.10"),
                address("2001:db8::9"),
                address("2001:db8::10"),
            ],
            &[
                prefix("0.0.0.0/0"),
                prefix("9.0.0.0/8"),
                prefix("10.0.0.0/8"),
                prefix("10.0.0.0/16"),
                prefix("10.0.0.0/32"),
                prefix("10.0.0.1/32"),
                prefix("::/0"),
            ],
            // Tables.
            &[
                Value::Name(Name::Number(20)),
                Value::Name(Name::Number(100)),
                known("local"),
                known("main"),
            ],
            &[
                known("em1"),
                known("em10"),
                known("em2"),
                Value::Name(Name::Link(7)),
            ],
        ];
        for values in in_order {
            let keys: Vec<_> = values.iter().map(|value| SortKey::of(*value)).collect();
            assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
            assert!(keys.iter().all(|key| *key > SortKey::Missing));
        }
    }
}
