//! What BGP says of a route's path, behind `ip`'s words: as a looking glass
//! shows it.

use std::fmt::Write;

use table::row::path_attributes::segment;
use table::{PathAttributes, Segment};

use crate::fields::{Value, Visit, push_plain};
use crate::format::push_u64;

/// The origins by number.
const ORIGINS: [&str; 3] = ["igp", "egp", "incomplete"];

/// The subtypes of extended communities that have a name on every router
/// (RFC 4360 §4 and §5).
const ROUTE_TARGET: u8 = 2;
const ROUTE_ORIGIN: u8 = 3;

fn origin(number: u8) -> Value<'static> {
    ORIGINS
        .get(usize::from(number))
        .map_or(Value::Number(number.into()), |name| Value::Text(name))
}

/// A segment whose ASes are told as one: `{1,2}`, of a confederation
/// `(1,2)` in order and `[1,2]` without.
fn bracketed(segment: Segment<'_>) -> String {
    let (open, close) = match segment.kind {
        segment::CONFED_SEQUENCE => ('(', ')'),
        segment::CONFED_SET => ('[', ']'),
        _ => ('{', '}'),
    };
    let numbers: Vec<String> = segment.numbers().map(|number| number.to_string()).collect();
    format!("{open}{}{close}", numbers.join(","))
}

fn community((a, b): (u16, u16)) -> String {
    format!("{a}:{b}")
}

fn large([a, b, c]: [u32; 3]) -> String {
    format!("{a}:{b}:{c}")
}

/// `rt:65000:100`, `soo:192.0.2.1:7`; any other in hexadecimal.
fn extended(community: [u8; 8]) -> String {
    let [kind, subtype, a, b, c, d, e, f] = community;
    let name = match subtype {
        ROUTE_TARGET => "rt",
        ROUTE_ORIGIN => "soo",
        _ => "",
    };
    let last = u16::from_be_bytes([e, f]);
    match kind {
        _ if name.is_empty() => {}
        0 => {
            let asn = u16::from_be_bytes([a, b]);
            return format!("{name}:{asn}:{}", u32::from_be_bytes([c, d, e, f]));
        }
        1 => return format!("{name}:{a}.{b}.{c}.{d}:{last}"),
        2 => return format!("{name}:{}:{last}", u32::from_be_bytes([a, b, c, d])),
        _ => {}
    }
    let mut text = String::from("0x");
    for byte in community {
        // A string takes all that is written.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn texts(key: &'static str, all: impl Iterator<Item = String>, visit: &mut impl Visit) {
    let mut all = all.peekable();
    if all.peek().is_some() {
        visit.list(key);
        all.for_each(|one| visit.item(Value::Text(&one)));
        visit.end_list();
    }
}

/// Each attribute as a field; none for a route without.
#[inline]
pub(crate) fn path_fields(path: &PathAttributes, visit: &mut impl Visit) {
    if !path.is_empty() {
        all_fields(path, visit);
    }
}

fn all_fields(path: &PathAttributes, visit: &mut impl Visit) {
    if let Some(id) = path.path_id() {
        visit.value("path_id", Value::Number(id.into()));
    }
    if let Some(as_path) = path.as_path() {
        visit.list("as_path");
        for segment in as_path.segments() {
            match segment.kind {
                segment::SEQUENCE => segment
                    .numbers()
                    .for_each(|number| visit.item(Value::Number(number.into()))),
                _ => visit.item(Value::Text(&bracketed(segment))),
            }
        }
        visit.end_list();
        if let Some(asn) = as_path.origin() {
            visit.value("origin_as", Value::Number(asn.into()));
        }
    }
    if let Some(number) = path.origin() {
        visit.value("origin", origin(number));
    }
    for (key, number) in [("local_pref", path.local_pref()), ("med", path.med())] {
        if let Some(number) = number {
            visit.value(key, Value::Number(number.into()));
        }
    }
    texts("communities", path.communities().map(community), visit);
    texts(
        "large_communities",
        path.large_communities().map(large),
        visit,
    );
    texts(
        "extended_communities",
        path.extended_communities().map(extended),
        visit,
    );
}

/// Each attribute behind its name.
#[inline]
pub(crate) fn path_text(path: &PathAttributes, out: &mut Vec<u8>) {
    if !path.is_empty() {
        all_text(path, out);
    }
}

fn all_text(path: &PathAttributes, out: &mut Vec<u8>) {
    let mut word = |label: &str, value: Value<'_>| {
        out.extend_from_slice(label.as_bytes());
        out.push(b' ');
        push_plain(out, value);
        out.push(b' ');
    };
    if let Some(id) = path.path_id() {
        word("path-id", Value::Number(id.into()));
    }
    if let Some(as_path) = path.as_path() {
        let mut text = Vec::new();
        for segment in as_path.segments() {
            match segment.kind {
                segment::SEQUENCE => segment.numbers().for_each(|number| {
                    push_u64(&mut text, number.into());
                    text.push(b' ');
                }),
                _ => {
                    text.extend_from_slice(bracketed(segment).as_bytes());
                    text.push(b' ');
                }
            }
        }
        // Of a path that is empty, the word alone would read as one.
        let text = String::from_utf8_lossy(&text);
        let text = if text.is_empty() {
            "local"
        } else {
            text.trim_end()
        };
        word("as-path", Value::Text(text));
    }
    if let Some(number) = path.origin() {
        word("origin", origin(number));
    }
    for (label, number) in [("local-pref", path.local_pref()), ("med", path.med())] {
        if let Some(number) = number {
            word(label, Value::Number(number.into()));
        }
    }
    let mut list = |label: &str, all: Vec<String>| {
        if !all.is_empty() {
            word(label, Value::Text(&all.join(" ")));
        }
    };
    list("communities", path.communities().map(community).collect());
    list(
        "large-communities",
        path.large_communities().map(large).collect(),
    );
    list(
        "extended-communities",
        path.extended_communities().map(extended).collect(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Json;
    use table::row::path_attributes::number;

    #[test]
    fn a_path_as_text_and_as_fields() {
        let as_path = [
            &[3, 1, 0, 0, 0xfd, 0xe9][..],
            &[2, 2, 0, 0, 13, 5, 0, 1, 0, 0],
            &[1, 2, 0, 0, 0, 7, 0, 0, 0, 8],
        ]
        .concat();
        let extended = [
            [0, 2, 0xfd, 0xe8, 0, 0, 0, 100],
            [1, 3, 192, 0, 2, 1, 0, 7],
            [2, 2, 0, 1, 0, 0, 0, 9],
            [0x43, 0, 1, 2, 3, 4, 5, 6],
        ]
        .concat();
        let path = PathAttributes::pack([
            (number::PATH_ID, &[0, 0, 0, 3][..]),
            (number::ORIGIN, &[1]),
            (number::AS_PATH, &as_path),
            (number::MED, &[0, 0, 0, 5]),
            (number::LOCAL_PREF, &[0, 0, 0, 200]),
            (number::COMMUNITIES, &[0x0d, 5, 0, 1, 255, 255, 255, 1]),
            (number::EXTENDED_COMMUNITIES, &extended),
            (
                number::LARGE_COMMUNITIES,
                &[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],
            ),
        ]);
        let mut out = Vec::new();
        path_text(&path, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "path-id 3 as-path (65001) 3333 65536 {7,8} origin egp local-pref 200 med 5 \
             communities 3333:1 65535:65281 large-communities 1:2:3 extended-communities \
             rt:65000:100 soo:192.0.2.1:7 rt:65536:9 0x4300010203040506 "
        );
        let mut out = b"{".to_vec();
        path_fields(&path, &mut Json { out: &mut out });
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"path_id":3,"as_path":["(65001)",3333,65536,"{7,8}"],"origin":"egp","local_pref":200,"med":5,"communities":["3333:1","65535:65281"],"large_communities":["1:2:3"],"extended_communities":["rt:65000:100","soo:192.0.2.1:7","rt:65536:9","0x4300010203040506"]"#
        );
    }

    #[test]
    fn a_path_that_is_empty_or_not_there() {
        let mut out = Vec::new();
        path_text(&PathAttributes::default(), &mut out);
        assert!(out.is_empty());
        let own = PathAttributes::pack([(number::AS_PATH, &[][..])]);
        path_text(&own, &mut out);
        assert_eq!(out, b"as-path local ");
        let mut out = b"{".to_vec();
        path_fields(&own, &mut Json { out: &mut out });
        assert_eq!(out, br#"{"as_path":[]"#);
    }
}
