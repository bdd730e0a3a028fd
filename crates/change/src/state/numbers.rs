//! Numbers in tables: `{1..4096}` says which, `{}` where. Called by
//! [`super::wanted`].

use std::ops::RangeInclusive;

use serde_json::{Number, Value};

use super::file::{Link, Row};
use crate::pattern::{fill, is_pattern};

/// So many rows of a table at most.
const MAX: u64 = 1 << 24;

/// Tables whose texts may have numbers.
pub trait Numbered: Clone {
    /// Each of its texts; those that became a number of digits alone are
    /// numbers then, where the table knows both.
    fn each(
        &mut self,
        change: &mut dyn FnMut(&mut String) -> Result<(), String>,
    ) -> Result<(), String>;
}

/// Hands each row of a table on: the table itself, or one for each number.
pub fn rows<T: Numbered>(
    mut table: T,
    each: &mut dyn FnMut(T) -> Result<(), String>,
) -> Result<(), String> {
    let mut range = None;
    let mut has_places = false;
    table.each(&mut |text| {
        unranged(text, &mut range)?;
        has_places |= is_pattern(text);
        Ok(())
    })?;
    let Some(range) = range else {
        if has_places {
            return Err("`{}` stands for a number, and no text says which: {1..100}".to_owned());
        }
        return each(table);
    };
    for number in range {
        let mut row = table.clone();
        row.each(&mut |text| {
            if is_pattern(text) {
                let mut filled = String::with_capacity(text.len() + 4);
                fill(text, number, &mut filled)?;
                *text = filled;
            }
            Ok(())
        })?;
        each(row)?;
    }
    Ok(())
}

/// Takes `1..4096` out of braces, once for a table.
fn unranged(text: &mut String, range: &mut Option<RangeInclusive<u64>>) -> Result<(), String> {
    let mut from = 0;
    while let Some((open, close)) = braces(text, from) {
        let inside = text.get(open + 1..close).unwrap_or_default();
        let Some((first, rest)) = inside.split_once("..") else {
            from = close;
            continue;
        };
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (last, more) = rest.split_at(end);
        let wrong = || format!("`{{{inside}}}`: a range like {{1..4096}} is expected");
        let first: u64 = first.parse().map_err(|_| wrong())?;
        let last: u64 = last.parse().map_err(|_| wrong())?;
        if first > last || last - first >= MAX {
            return Err(format!("{}, of at most {MAX} numbers", wrong()));
        }
        let said = first..=last;
        if range.as_ref().is_some_and(|other| *other != said) {
            return Err(format!(
                "`{{{inside}}}`: the table has another range already"
            ));
        }
        let more = more.to_owned();
        *range = Some(said);
        text.replace_range(open + 1..close, &more);
        from = open + 1 + more.len();
    }
    Ok(())
}

/// The next pair of braces from an octet on.
fn braces(text: &str, from: usize) -> Option<(usize, usize)> {
    let open = from + text.get(from..)?.find('{')?;
    let close = open + text.get(open..)?.find('}')?;
    Some((open, close))
}

impl Numbered for Link {
    fn each(
        &mut self,
        change: &mut dyn FnMut(&mut String) -> Result<(), String>,
    ) -> Result<(), String> {
        let options = [
            &mut self.kind,
            &mut self.options,
            &mut self.peer,
            &mut self.link,
            &mut self.master,
            &mut self.alias,
        ];
        change(&mut self.name)?;
        for text in options.into_iter().flatten() {
            change(text)?;
        }
        let lladdrs = [&mut self.address, &mut self.peer_address];
        for text in lladdrs.into_iter().flatten() {
            *text = lladdr(text, change)?;
        }
        let lists = [
            &mut self.altnames,
            &mut self.addresses,
            &mut self.peer_addresses,
        ];
        for text in lists.into_iter().flatten() {
            change(text)?;
        }
        let settings = self
            .sysctl
            .values_mut()
            .flat_map(|names| names.values_mut());
        for value in settings {
            of_value(value, change)?;
        }
        Ok(())
    }
}

/// A link-layer address: what stands in braces becomes an octet.
fn lladdr(
    text: &str,
    change: &mut dyn FnMut(&mut String) -> Result<(), String>,
) -> Result<String, String> {
    let octet = |part: &str| {
        let mut changed = part.to_owned();
        change(&mut changed)?;
        if !is_pattern(part) || is_pattern(&changed) {
            return Ok(changed);
        }
        let octet: Result<u8, _> = changed.parse();
        let octet = octet.map_err(|_| format!("`{text}`: {changed} is no octet"))?;
        Ok(format!("{octet:02x}"))
    };
    let octets: Result<Vec<String>, String> = text.split(':').map(octet).collect();
    Ok(octets?.join(":"))
}

impl Numbered for Row {
    fn each(
        &mut self,
        change: &mut dyn FnMut(&mut String) -> Result<(), String>,
    ) -> Result<(), String> {
        self.values_mut()
            .try_for_each(|value| of_value(value, change))
    }
}

fn of_value(
    value: &mut Value,
    change: &mut dyn FnMut(&mut String) -> Result<(), String>,
) -> Result<(), String> {
    match value {
        Value::String(text) => {
            let was_pattern = is_pattern(text);
            change(text)?;
            if was_pattern && let Ok(number) = text.parse::<u64>() {
                *value = Value::Number(Number::from(number));
            }
            Ok(())
        }
        Value::Array(list) => list
            .iter_mut()
            .try_for_each(|value| of_value(value, change)),
        Value::Object(keys) => keys
            .values_mut()
            .try_for_each(|value| of_value(value, change)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(link: Link) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        rows(link, &mut |link| {
            names.push(format!("{} {}", link.name, link.addresses.join(" ")));
            Ok(())
        })?;
        Ok(names)
    }

    fn link(name: &str, address: &str) -> Link {
        Link {
            name: name.to_owned(),
            addresses: vec![address.to_owned()],
            ..Link::default()
        }
    }

    #[test]
    fn a_range_makes_rows() {
        let made = names(link("c{63..65}", "10.0.{/64}.{%64*4+1}/30")).unwrap();
        assert_eq!(
            made,
            ["c63 10.0.0.253/30", "c64 10.0.1.1/30", "c65 10.0.1.5/30"]
        );
        let made = names(link("c{}", "10.0.{1..2/2}.{%2}/32")).unwrap();
        assert_eq!(made, ["c1 10.0.0.1/32", "c2 10.0.1.0/32"]);
        assert_eq!(names(link("c", "10.0.0.1/8")).unwrap(), ["c 10.0.0.1/8"]);
        for (name, address) in [
            ("c{}", "10.0.0.1/8"),
            ("c{1..2}", "10.0.{1..3}.0/32"),
            ("c{2..1}", ""),
            ("c{1..99999999999}", ""),
            ("c{1..x}", ""),
            ("c{-1..2}", ""),
        ] {
            assert!(names(link(name, address)).is_err(), "{name} {address}");
        }
    }

    #[test]
    fn a_place_in_a_link_layer_address_is_an_octet() {
        let mut link = link("c{254..256}", "");
        link.address = Some("02:00:00:00:{/256}:{%256}".to_owned());
        let mut made = Vec::new();
        rows(link.clone(), &mut |link| {
            made.extend(link.address);
            Ok(())
        })
        .unwrap();
        let wanted = [
            "02:00:00:00:00:fe",
            "02:00:00:00:00:ff",
            "02:00:00:00:01:00",
        ];
        assert_eq!(made, wanted);
        link.address = Some("02:00:00:00:00:{}".to_owned());
        assert!(rows(link, &mut |_| Ok(())).is_err());
    }

    #[test]
    fn a_text_of_digits_becomes_a_number() {
        let mut row = Row::new();
        row.insert("id".to_owned(), "{1..2+100}".into());
        row.insert("table".to_owned(), "100".into());
        let mut made = Vec::new();
        rows(row, &mut |row| {
            made.push((row["id"].clone(), row["table"].clone()));
            Ok(())
        })
        .unwrap();
        assert_eq!(
            made,
            [(101.into(), "100".into()), (102.into(), "100".into())]
        );
    }
}
