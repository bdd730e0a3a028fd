//! The order of net-tools: names by their letters, then by the number at
//! their end (`eth2` before `eth10`), then by the number of an alias
//! (`eth1:2` before `eth1:10`), then as they are.

/// What a name is ordered by. A missing number is before 0; numbers wrap
/// around at 32 bits, as they do in net-tools.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key<'a> {
    letters: &'a str,
    number: i32,
    alias: i32,
    name: &'a str,
}

impl<'a> Key<'a> {
    pub(super) fn of(name: &'a str) -> Self {
        let (base, alias) = match name.rsplit_once(':') {
            Some((base, digits)) if is_number(digits) => (base, number(digits)),
            _ => (name, -1),
        };
        let letters = base.trim_end_matches(|c: char| c.is_ascii_digit());
        Self {
            letters,
            number: number(&base[letters.len()..]),
            alias,
            name,
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(digits: &str) -> i32 {
    if digits.is_empty() {
        return -1;
    }
    let value = digits.bytes().fold(0_i64, |value, digit| {
        value
            .saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    value as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order in which net-tools 2.10 listed such interfaces.
    #[test]
    fn as_net_tools_orders_them() {
        let listed = [
            "99",
            "123",
            "Z1",
            "a9",
            "a10",
            "a01b3",
            "a1b2",
            "a1b10",
            "b-1",
            "b.1",
            "b_1",
            "br0",
            "e2147483648",
            "e",
            "e0",
            "e00",
            "e4294967297",
            "e2",
            "e99999999999",
            "eth",
            "eth1",
            "eth1:2",
            "eth1:10",
            "eth02",
            "eth2",
            "eth10",
            "eth1:foo",
            "eth1:p",
            "lo",
            "q",
            "q:1",
            "q0",
            "q0:0",
            "q1",
            "veth",
            "veth:1",
            "veth1",
            "veth1:1",
            "veth1:09",
            "veth1:9",
            "veth1:10",
            "veth1:1:2",
            "veth1a",
            "veth1a:3",
            "veth1a:20",
            "veth1a:z",
            "veth1b",
            "x001",
            "x01",
            "x1",
            "x01y",
            "x10y2",
            "x1y",
            "x9y11",
        ];
        let mut names = listed;
        names.reverse();
        names.sort_by(|a, b| Key::of(a).cmp(&Key::of(b)));
        assert_eq!(names, listed);
    }
}
