//! Patterns of names: `*`, `?`, `[a-z]`, `[!a-z]`, as shells have them.

/// Whether a name matches a pattern. O(name × pattern) at worst, no
/// allocation. A `[` without its `]` stands for itself.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.as_bytes(), name.as_bytes());
    // Where to go on when what follows the last `*` does not match.
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            again = Some((rest, name));
            pattern = rest;
            continue;
        }
        match (one(pattern, name.first().copied()), name) {
            (Some(rest), [_, left @ ..]) => (pattern, name) = (rest, left),
            _ if pattern.is_empty() && name.is_empty() => return true,
            _ => match again {
                Some((rest, [_, left @ ..])) => {
                    again = Some((rest, left));
                    (pattern, name) = (rest, left);
                }
                _ => return false,
            },
        }
    }
}

/// Matches one octet with the first part of a pattern; gives the rest.
fn one(pattern: &[u8], octet: Option<u8>) -> Option<&[u8]> {
    let octet = octet?;
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'[', set @ ..] => match set.iter().skip(1).position(|c| *c == b']') {
            Some(end) => in_set(&set[..=end], octet).then_some(&set[end + 2..]),
            None => (octet == b'[').then_some(set),
        },
        [first, rest @ ..] => (*first == octet).then_some(rest),
        [] => None,
    }
}

fn in_set(set: &[u8], octet: u8) -> bool {
    let (set, wanted) = match set {
        [b'!' | b'^', rest @ ..] if !rest.is_empty() => (rest, false),
        _ => (set, true),
    };
    let mut rest = set;
    loop {
        rest = match rest {
            [first, b'-', last, rest @ ..] => {
                if (*first..=*last).contains(&octet) {
                    return wanted;
                }
                rest
            }
            [only, rest @ ..] => {
                if *only == octet {
                    return wanted;
                }
                rest
            }
            [] => return !wanted,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn as_shells_do() {
        for (pattern, name, expected) in [
            ("", "", true),
            ("*", "", true),
            ("veth*", "veth12", true),
            ("veth*", "eth1", false),
            ("*a*b", "xaybab", true),
            ("*a*b", "xayba", false),
            ("veth[0-9]", "veth7", true),
            ("veth[0-9]", "vethx", false),
            ("veth[!0-9]", "vethx", true),
            ("v?th0", "veth0", true),
            ("v?th0", "vth0", false),
            ("a[bc", "a[bc", true),
            ("[]]", "]", true),
            ("eth0", "eth01", false),
            ("[", "[", true),
            ("[!]", "x", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
