//! The names iproute2 gives to numbers: protocols, scopes, tables, realms,
//! groups, values of the DS field.
//!
//! Plain data. [`host`] reads iproute2's files and hands their text to
//! [`Names::parse_file`]; without files the built-in names are iproute2's
//! own.

pub mod host;

use std::collections::BTreeMap;

/// Which of iproute2's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameFile {
    /// `rt_protos`.
    Protocols,
    /// `rt_scopes`.
    Scopes,
    /// `rt_tables`.
    Tables,
    /// `rt_realms`.
    Realms,
    /// `group`.
    Groups,
    /// `rt_dsfield`.
    DsField,
}

impl NameFile {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Protocols,
        Self::Scopes,
        Self::Tables,
        Self::Realms,
        Self::Groups,
        Self::DsField,
    ];

    /// Its name below `/etc/iproute2` and `/usr/share/iproute2`. Beside
    /// `rt_protos` and `rt_tables` there is a directory of the same name
    /// with `.d` appended, whose `*.conf` files are read after it.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Protocols => "rt_protos",
            Self::Scopes => "rt_scopes",
            Self::Tables => "rt_tables",
            Self::Realms => "rt_realms",
            Self::Groups => "group",
            Self::DsField => "rt_dsfield",
        }
    }

    /// The largest number that has a place in the file.
    fn max(self) -> u32 {
        match self {
            Self::Protocols | Self::Scopes | Self::Realms | Self::DsField => 255,
            Self::Tables | Self::Groups => u32::MAX,
        }
    }
}

/// Names by number, for each of iproute2's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    maps: [BTreeMap<u32, Box<str>>; 6],
    /// Protocols are looked up for every route: by index.
    protocols: Vec<Option<Box<str>>>,
}

/// A number with its name, if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name<'a> {
    /// The name.
    Known(&'a str),
    /// A number without a name, in decimal.
    Number(u32),
    /// One in hexadecimal, two digits at least: the DS field.
    Hex(u32),
    /// The index of a link that is not known (any more).
    Link(u32),
}

const PROTOCOLS: &[(u32, &str)] = &[
    (0, "unspec"),
    (1, "redirect"),
    (2, "kernel"),
    (3, "boot"),
    (4, "static"),
    (8, "gated"),
    (9, "ra"),
    (10, "mrt"),
    (11, "zebra"),
    (12, "bird"),
    (13, "dnrouted"),
    (14, "xorp"),
    (15, "ntk"),
    (16, "dhcp"),
    (18, "keepalived"),
    (42, "babel"),
    (99, "openr"),
    (186, "bgp"),
    (187, "isis"),
    (188, "ospf"),
    (189, "rip"),
    (192, "eigrp"),
];

const SCOPES: &[(u32, &str)] = &[
    (0, "global"),
    (200, "site"),
    (253, "link"),
    (254, "host"),
    (255, "nowhere"),
];

const TABLES: &[(u32, &str)] = &[
    (0, "unspec"),
    (253, "default"),
    (254, "main"),
    (255, "local"),
];

const DS_FIELD: &[(u32, &str)] = &[
    (0x00, "default"),
    (0x20, "CS1"),
    (0x28, "AF11"),
    (0x30, "AF12"),
    (0x38, "AF13"),
    (0x40, "CS2"),
    (0x48, "AF21"),
    (0x50, "AF22"),
    (0x58, "AF23"),
    (0x60, "CS3"),
    (0x68, "AF31"),
    (0x70, "AF32"),
    (0x78, "AF33"),
    (0x80, "CS4"),
    (0x88, "AF41"),
    (0x90, "AF42"),
    (0x98, "AF43"),
    (0xa0, "CS5"),
    (0xb8, "EF"),
    (0xc0, "CS6"),
    (0xe0, "CS7"),
];

impl Default for Names {
    /// The names iproute2 ships with.
    fn default() -> Self {
        let mut names = Self {
            maps: Default::default(),
            protocols: vec![None; 256],
        };
        let built_in: [(NameFile, &[(u32, &str)]); 6] = [
            (NameFile::Protocols, PROTOCOLS),
            (NameFile::Scopes, SCOPES),
            (NameFile::Tables, TABLES),
            (NameFile::Realms, &[(0, "cosmos")]),
            (NameFile::Groups, &[(0, "default")]),
            (NameFile::DsField, DS_FIELD),
        ];
        for (file, pairs) in built_in {
            for (number, name) in pairs {
                names.put(file, *number, name);
            }
        }
        names
    }
}

/// No names: every number stands for itself.
pub static NUMBERS: Names = Names {
    maps: [const { BTreeMap::new() }; 6],
    protocols: Vec::new(),
};

impl Names {
    /// Adds the names of a file's text: lines of a number (decimal, or
    /// hexadecimal with `0x`) and a name; `#` starts a comment. Lines that
    /// are neither are passed over, as iproute2 passes over them.
    pub fn parse_file(&mut self, file: NameFile, text: &str) {
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let (Some(number), Some(name)) = (words.next(), words.next()) else {
                continue;
            };
            if let Some(number) = parse_number(number).filter(|n| *n <= file.max()) {
                self.put(file, number, name);
            }
        }
    }

    /// The number of a name, or the number that the text itself is
    /// (decimal, or hexadecimal with `0x`). O(names of the file).
    pub fn number(&self, file: NameFile, text: &str) -> Option<u32> {
        self.maps[file as usize]
            .iter()
            .find(|(_, name)| ***name == *text)
            .map(|(number, _)| *number)
            .or_else(|| parse_number(text).filter(|n| *n <= file.max()))
    }

    /// The name of a number. O(log names).
    pub fn name(&self, file: NameFile, number: u32) -> Option<&str> {
        self.maps[file as usize].get(&number).map(|name| &**name)
    }

    fn put(&mut self, file: NameFile, number: u32, name: &str) {
        self.maps[file as usize].insert(number, name.into());
        if file == NameFile::Protocols
            && let Some(place) = self.protocols.get_mut(number as usize)
        {
            *place = Some(name.into());
        }
    }

    fn named(&self, file: NameFile, number: u32) -> Name<'_> {
        self.name(file, number)
            .map_or(Name::Number(number), Name::Known)
    }

    /// The name of who made a row.
    pub fn protocol(&self, number: u8) -> Name<'_> {
        match self.protocols.get(usize::from(number)) {
            Some(Some(name)) => Name::Known(name),
            _ => Name::Number(number.into()),
        }
    }

    /// The name of a scope.
    pub fn scope(&self, number: u8) -> Name<'_> {
        self.named(NameFile::Scopes, number.into())
    }

    /// The name of a routing table.
    pub fn table(&self, number: u32) -> Name<'_> {
        self.named(NameFile::Tables, number)
    }

    /// The name of a realm.
    pub fn realm(&self, number: u32) -> Name<'_> {
        self.named(NameFile::Realms, number)
    }

    /// The name of a group of links.
    pub fn group(&self, number: u32) -> Name<'_> {
        self.named(NameFile::Groups, number)
    }

    /// The name of a value of the DS field; without one, hexadecimal.
    pub fn ds_field(&self, number: u8) -> Name<'_> {
        self.name(NameFile::DsField, number.into())
            .map_or(Name::Hex(number.into()), Name::Known)
    }
}

fn parse_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_adds_to_the_built_in_names_and_nonsense_is_passed_over() {
        let mut names = Names::default();
        names.parse_file(
            NameFile::Tables,
            "# mine\n100 cust # a\n0x1f4\thexed\nx y\n7\n",
        );
        names.parse_file(NameFile::Protocols, "77\tmine\n999 toolarge\n");
        assert_eq!(names.table(100), Name::Known("cust"));
        assert_eq!(names.table(500), Name::Known("hexed"));
        assert_eq!(names.table(254), Name::Known("main"));
        assert_eq!(names.table(7), Name::Number(7));
        assert_eq!(names.protocol(77), Name::Known("mine"));
        assert_eq!(names.number(NameFile::Tables, "cust"), Some(100));
        assert_eq!(names.number(NameFile::Tables, "12"), Some(12));
        assert_eq!(names.number(NameFile::Protocols, "toolarge"), None);
        assert_eq!(names.number(NameFile::Protocols, "256"), None);
    }
}
