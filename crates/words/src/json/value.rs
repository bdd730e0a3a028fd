//! A JSON text as a tree that borrows what it can: a file of a million rows
//! has ten million short strings, and each of a tree that owns them is an
//! allocation.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Number(Number),
    String(Cow<'a, str>),
    Array(Vec<Value<'a>>),
    Object(Row<'a>),
}

/// An object: its keys in their order. A key said twice is there twice.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a>(Vec<(Cow<'a, str>, Value<'a>)>);

impl<'a> Row<'a> {
    /// The value of a key. O(keys).
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value)
    }

    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value<'a>)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }
}

impl<'a> Value<'a> {
    /// The value of a key, if it is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.as_object()?.get(key)
    }

    /// If it is an object.
    pub fn as_object(&self) -> Option<&Row<'a>> {
        match self {
            Self::Object(row) => Some(row),
            _ => None,
        }
    }

    /// If it is an array: its values; else none.
    pub fn elements(&self) -> &[Value<'a>] {
        match self {
            Self::Array(values) => values,
            _ => &[],
        }
    }

    /// If it is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// If it is a number of that kind.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Number(number) => number.as_u64(),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any)
    }
}

impl<'de> Deserialize<'de> for Row<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match from.deserialize_map(Any)? {
            Value::Object(row) => Ok(row),
            _ => Err(D::Error::custom("an object is expected")),
        }
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Value::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Value::String(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = from.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        // As many as a route has, mostly.
        let mut row = Vec::with_capacity(8);
        while let Some((key, value)) = from.next_entry()? {
            let Value::String(key) = key else {
                return Err(A::Error::custom("a key is a string"));
            };
            row.push((key, value));
        }
        Ok(Value::Object(Row(row)))
    }
}
