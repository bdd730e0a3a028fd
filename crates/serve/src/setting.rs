//! What a key of the configuration is, for people: the manual, the packaged
//! file and `fingerpost check --example` are made of lists of these, which
//! stand beside the structs that take the keys. A test of the program holds
//! both against each other: each key is in the list, each default is the
//! default, each example is taken.

/// A section of the configuration.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// Its head as in a file: `[http]`, `[[snmp.user]]`; empty: the keys
    /// before all sections.
    pub head: &'static str,
    /// What it is for, in sentences.
    pub about: &'static str,
    /// Its keys.
    pub settings: &'static [Setting],
}

/// A key.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name.
    pub key: &'static str,
    /// What holds where it is not said.
    pub without: Without,
    /// A value, as TOML.
    pub example: &'static str,
    /// What it is for, its unit and its bounds, in sentences.
    pub about: &'static str,
}

/// What holds where a key is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Without {
    /// This value, as TOML.
    Value(&'static str),
    /// What no value of the key says, in words.
    Words(&'static str),
    /// It has to be said.
    Nothing,
}

impl Setting {
    /// A key with a default, which is an example as well.
    pub const fn usual(key: &'static str, value: &'static str, about: &'static str) -> Self {
        Self::new(key, Without::Value(value), value, about)
    }

    /// A key with a default that needs words, or with a better example.
    pub const fn new(
        key: &'static str,
        without: Without,
        example: &'static str,
        about: &'static str,
    ) -> Self {
        Self {
            key,
            without,
            example,
            about,
        }
    }
}
