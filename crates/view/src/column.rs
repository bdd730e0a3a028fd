//! A column of a kind of row: its name, what it holds, when it is shown.
//! Text tables, JSON, CSV, sorting, the OpenAPI document and whoever else
//! asks for columns have them from these lists. What a row has in a column
//! is what it tells under the column's name ([`crate::fields`]), in one pass
//! for all columns: a getter for each would read a row sixty times.

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnType {
    /// Text: a name, a word.
    Text,
    /// A whole number.
    Number,
    /// There or not.
    Flag,
    /// Several words.
    List,
    /// An IPv4 or IPv6 address.
    Address,
    /// A prefix, an address, or `default`.
    Prefix,
    /// A link-layer address.
    LinkLayer,
    /// A word, or a number where it has none.
    Any,
    /// A row of another table.
    Row,
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name: the key in JSON, with dots where it is nested.
    pub name: &'static str,
    /// What it holds.
    pub holds: ColumnType,
    /// It is sampled, not announced: a counter, an age. It changes without
    /// a generation, and is shown only with statistics.
    pub sampled: bool,
    /// It says nothing in a table unless asked for by name.
    pub rare: bool,
}

impl Column {
    const fn new(name: &'static str, holds: ColumnType) -> Self {
        Self {
            name,
            holds,
            sampled: false,
            rare: false,
        }
    }

    pub(crate) const fn sampled(self) -> Self {
        Self {
            sampled: true,
            ..self
        }
    }

    pub(crate) const fn rare(self) -> Self {
        Self { rare: true, ..self }
    }

    pub(crate) const fn text(name: &'static str) -> Self {
        Self::new(name, ColumnType::Text)
    }

    pub(crate) const fn number(name: &'static str) -> Self {
        Self::new(name, ColumnType::Number)
    }

    pub(crate) const fn flag(name: &'static str) -> Self {
        Self::new(name, ColumnType::Flag)
    }

    pub(crate) const fn list(name: &'static str) -> Self {
        Self::new(name, ColumnType::List)
    }

    pub(crate) const fn address(name: &'static str) -> Self {
        Self::new(name, ColumnType::Address)
    }

    pub(crate) const fn prefix(name: &'static str) -> Self {
        Self::new(name, ColumnType::Prefix)
    }

    pub(crate) const fn lladdr(name: &'static str) -> Self {
        Self::new(name, ColumnType::LinkLayer)
    }

    pub(crate) const fn any(name: &'static str) -> Self {
        Self::new(name, ColumnType::Any)
    }

    pub(crate) const fn row(name: &'static str) -> Self {
        Self::new(name, ColumnType::Row)
    }
}
