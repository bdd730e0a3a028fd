//! What routes are picked by that come from BGP: their AS path, communities
//! and origin.

use table::{PathAttributes, Segment};

use crate::question::Filter;

/// Parts of a pattern at most: no path that anybody looks for is longer.
const MAX_PARTS: usize = 64;

/// A pattern of AS paths: ASes that stand behind each other, somewhere in
/// the path.
///
/// Numbers are parted by blanks, commas or `_`; `.` is any one AS, `.*` any
/// number of them; `^` at the beginning is the neighbour's end of the path,
/// `$` at the end the origin's. So `3333`, `_3333_` and `^.* 3333 .*$` are
/// the same, and `^$` is an empty path. It is no regular expression of
/// text: `3333` never means 13333. A set in a path stands in one place, for
/// each of its ASes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AsPathPattern {
    is_from_start: bool,
    is_to_end: bool,
    /// What `.*` parts: parts that stand behind each other.
    runs: Vec<Vec<Part>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Any,
    Number(u32),
}

/// A place in a path: an AS, or a set of which each may stand there.
#[derive(Clone, Copy)]
enum Place<'a> {
    Number(u32),
    Set(Segment<'a>),
}

impl AsPathPattern {
    /// Reads a pattern; else, what is wrong.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!(
                "`{what}` is no part of a pattern of AS paths: AS numbers, `.`, `.*`, `^` first and `$` last are"
            )
        };
        let rest = text.trim();
        let (is_from_start, rest) = match rest.strip_prefix('^') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let (is_to_end, rest) = match rest.strip_suffix('$') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let mut runs = vec![Vec::new()];
        let is_gap = |of: char| of.is_whitespace() || of == '_' || of == ',';
        let mut parts = 0;
        for word in rest.split(is_gap).filter(|word| !word.is_empty()) {
            parts += 1;
            if parts > MAX_PARTS {
                return Err(format!("a pattern has {MAX_PARTS} parts at most"));
            }
            let part = match word {
                ".*" => {
                    runs.push(Vec::new());
                    continue;
                }
                "." => Part::Any,
                number => Part::Number(number.parse().map_err(|_| wrong(word))?),
            };
            if let Some(run) = runs.last_mut() {
                run.push(part);
            }
        }
        if parts == 0 && !(is_from_start && is_to_end) {
            return Err(
                "a pattern of AS paths is expected, like 3333, ^3333_1273 or _15169$".into(),
            );
        }
        Ok(Self {
            is_from_start,
            is_to_end,
            runs,
        })
    }

    /// Whether a path is like this. O(path × parts).
    fn matches(&self, path: &PathAttributes) -> bool {
        let segments = path.as_path().into_iter().flat_map(|path| path.segments());
        let places: Vec<Place<'_>> = segments
            .flat_map(|segment| {
                let set = segment.is_set().then_some(Place::Set(segment));
                let each = segment.numbers().map(Place::Number);
                set.into_iter()
                    .chain(each.filter(move |_| !segment.is_set()))
            })
            .collect();
        let mut rest = &places[..];
        let last = self.runs.len() - 1;
        // Each run is taken where it first fits: none behind it could be
        // found in a shorter rest and not in a longer one.
        for (at, run) in self.runs.iter().enumerate() {
            let is_first = at == 0 && self.is_from_start;
            let is_last = at == last && self.is_to_end;
            let lengths = rest.len().checked_sub(run.len());
            let Some(most) = lengths else { return false };
            let mut starts = match (is_first, is_last) {
                (true, true) if most > 0 => return false,
                (true, _) => 0..=0,
                (false, true) => most..=most,
                (false, false) => 0..=most,
            };
            let fits = |from: &usize| {
                let here = &rest[*from..][..run.len()];
                run.iter().zip(here).all(|(part, place)| part.is(*place))
            };
            let Some(from) = starts.find(fits) else {
                return false;
            };
            rest = &rest[from + run.len()..];
        }
        true
    }
}

impl Part {
    fn is(self, place: Place<'_>) -> bool {
        match (self, place) {
            (Self::Any, _) => true,
            (Self::Number(wanted), Place::Number(number)) => wanted == number,
            (Self::Number(wanted), Place::Set(set)) => set.numbers().any(|number| wanted == number),
        }
    }
}

/// A community that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommunityPattern {
    /// RFC 1997.
    Plain(u16, u16),
    /// RFC 8092.
    Large([u32; 3]),
}

impl CommunityPattern {
    /// Reads a community; else, what is wrong.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let read = match parts[..] {
            [a, b] => match (a.parse(), b.parse()) {
                (Ok(a), Ok(b)) => Some(Self::Plain(a, b)),
                _ => None,
            },
            [a, b, c] => match (a.parse(), b.parse(), c.parse()) {
                (Ok(a), Ok(b), Ok(c)) => Some(Self::Large([a, b, c])),
                _ => None,
            },
            _ => None,
        };
        read.ok_or_else(|| format!("`{text}` is no community: A:B (each up to 65535) or A:B:C is"))
    }

    fn is_of(self, path: &PathAttributes) -> bool {
        match self {
            Self::Plain(a, b) => path.communities().any(|of| of == (a, b)),
            Self::Large(all) => path.large_communities().any(|of| of == all),
        }
    }
}

/// All that a filter says of paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPattern {
    as_path: Option<AsPathPattern>,
    communities: Vec<CommunityPattern>,
    origin: Option<u32>,
}

impl PathPattern {
    pub(crate) fn new(filter: &Filter) -> Result<Self, String> {
        let as_path = filter.as_path.as_deref().map(AsPathPattern::parse);
        let communities = filter.community.iter();
        let communities = communities.map(|one| CommunityPattern::parse(one));
        Ok(Self {
            as_path: as_path.transpose()?,
            communities: communities.collect::<Result<_, _>>()?,
            origin: filter.origin_as,
        })
    }

    /// One that lets every route through.
    pub(crate) fn any() -> Self {
        Self {
            as_path: None,
            communities: Vec::new(),
            origin: None,
        }
    }

    /// Whether it lets every route through.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.as_path.is_none() && self.communities.is_empty() && self.origin.is_none()
    }

    /// Whether it lets routes of such a path through. A route without a
    /// path, as the kernel's are, has none that is asked for.
    #[inline]
    pub(crate) fn matches(&self, path: &PathAttributes) -> bool {
        self.is_any() || (path.as_path().is_some() && self.fits(path))
    }

    fn fits(&self, path: &PathAttributes) -> bool {
        let from = |origin| {
            let mut origins = path.as_path().into_iter().flat_map(|path| path.origins());
            origins.any(|of| of == origin)
        };
        self.origin.is_none_or(from)
            && self.communities.iter().all(|one| one.is_of(path))
            && self.as_path.as_ref().is_none_or(|one| one.matches(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use table::row::path_attributes::number;

    fn path(segments: &[(u8, &[u32])]) -> PathAttributes {
        let mut bytes = Vec::new();
        for (kind, numbers) in segments {
            bytes.extend_from_slice(&[*kind, numbers.len() as u8]);
            bytes.extend(numbers.iter().flat_map(|of| of.to_be_bytes()));
        }
        PathAttributes::pack([
            (number::AS_PATH, &bytes[..]),
            (number::COMMUNITIES, &[0, 1, 0, 2, 0, 3, 0, 4]),
            (
                number::LARGE_COMMUNITIES,
                &[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],
            ),
        ])
    }

    #[test]
    fn patterns_of_paths() {
        let plain = path(&[(2, &[3_333, 1_273, 1_299, 15_169])]);
        let set = path(&[(2, &[3_333, 7]), (1, &[8, 9])]);
        let is =
            |pattern: &str, of: &PathAttributes| AsPathPattern::parse(pattern).unwrap().matches(of);
        for yes in [
            "3333",
            "_3333_",
            "^3333",
            "15169$",
            "_15169$",
            "1273 1299",
            "1273,1299",
            "^3333_1273_1299_15169$",
            "^ 3333 .* 15169 $",
            "^.*$",
            "3333 . 1299",
            "^. . . .$",
            "3333 .* 1299 .*",
            ".* 15169",
            "3333 .* .* 15169$",
            "^.* 1299 .*$",
        ] {
            assert!(is(yes, &plain), "{yes}");
        }
        for no in [
            "333",
            "^1273",
            "1299$",
            "1273 3333",
            "^$",
            "3333 1299",
            "^. . .$",
            "^. . . . .$",
            "15169 .",
            "3333 .* 7",
            "15169 .* 15169",
            "^3333 15169$",
        ] {
            assert!(!is(no, &plain), "{no}");
        }
        for yes in ["8", "9$", "7 8$", "7 9", "^3333 . .$"] {
            assert!(is(yes, &set), "{yes}");
        }
        assert!(!is("8 9", &set) && !is("3333 8", &set));
        assert!(is("^$", &path(&[])) && !is(".", &path(&[])));
        for wrong in [
            "",
            " ",
            "^",
            "$",
            "AS1",
            "1.5",
            "1 ^2",
            "4294967296",
            "1*",
            "-1",
        ] {
            assert!(AsPathPattern::parse(wrong).is_err(), "{wrong}");
        }
        assert!(AsPathPattern::parse(&"1 ".repeat(64)).is_ok());
        assert!(AsPathPattern::parse(&"1 ".repeat(65)).is_err());
    }

    #[test]
    fn all_that_is_asked_for_must_be_there() {
        let plain = path(&[(2, &[3_333, 7])]);
        let fits = |as_path: Option<&str>, community: &[&str], origin_as| {
            let filter = Filter {
                as_path: as_path.map(str::to_owned),
                community: community.iter().map(|one| (*one).to_owned()).collect(),
                origin_as,
                ..Filter::default()
            };
            PathPattern::new(&filter).unwrap().matches(&plain)
        };
        assert!(fits(None, &[], None));
        assert!(fits(Some("3333"), &["1:2", "3:4", "1:2:3"], Some(7)));
        assert!(!fits(Some("3333"), &["1:2"], Some(3_333)));
        assert!(!fits(None, &["1:2", "4:3"], None));
        assert!(!fits(None, &["1:2:4"], None));
        let none = PathAttributes::default();
        assert!(
            !PathPattern::new(&Filter {
                origin_as: Some(7),
                ..Filter::default()
            })
            .unwrap()
            .matches(&none)
        );
        for wrong in ["", "1", "1:", "65536:1", "1:2:3:4", "a:b"] {
            assert!(CommunityPattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
