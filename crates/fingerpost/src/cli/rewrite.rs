//! `ip`'s way of speaking, made into flags before the command line is
//! parsed: options before the object, `-json` with one dash, abbreviated
//! objects and commands, and bare words.
//!
//! `-j r l to root 10/8 dev eth0` becomes `route -j --to 10/8 --dev eth0`.

use change::links;
use view::conditions::{self, Packet, Word};
use words::{Object, Verb};

/// `ip`'s options that it writes with one dash, and ours.
const OPTIONS: &[(&str, &str)] = &[
    ("-json", "--json"),
    ("-details", "--details"),
    ("-statistics", "--statistics"),
    ("-stats", "--statistics"),
    ("-oneline", "--oneline"),
    ("-netns", "--netns"),
    ("-color", "--colour=always"),
    ("-color=auto", "--colour=auto"),
    ("-color=always", "--colour=always"),
    ("-color=never", "--colour=never"),
];

/// Options that take the next argument as their value.
const WITH_VALUE: &[&str] = &[
    "-n",
    "-netns",
    "--netns",
    "--socket",
    "--at",
    "--history",
    "--fields",
    "--sort",
    "--colour",
    "--color",
];

/// Options of every listing, without a value.
const FOR_ALL: &[&str] = &[
    "-j", "-d", "-s", "-o", "-4", "-6", "--direct", "--ndjson", "--csv",
];

/// What `ip` calls the objects. It takes any beginning of them; the first
/// in this list wins.
const OBJECTS: &[(&str, Object)] = &[
    ("address", Object::Addr),
    ("route", Object::Route),
    ("rule", Object::Rule),
    ("neighbor", Object::Neigh),
    ("neighbour", Object::Neigh),
    ("link", Object::Link),
    ("nexthop", Object::Nexthop),
    ("fdb", Object::Fdb),
];

/// Commands of ours that begin like one of `ip`'s objects.
const OURS: &[&str] = &["arp"];

/// What `ip` calls a listing.
const SHOW: &[&str] = &["show", "list", "lst", "ls"];

/// The object that a word means, by the rules of `ip`.
fn object(word: &str) -> Option<Object> {
    if word.is_empty() || OURS.contains(&word) {
        return None;
    }
    OBJECTS
        .iter()
        .find(|(name, _)| name.starts_with(word))
        .map(|(_, object)| *object)
}

/// Makes flags of `ip`'s words; leaves the rest as it is, for the parser
/// to judge. `arguments` are those after the program's name.
pub fn rewrite(arguments: Vec<String>) -> Vec<String> {
    let Some(at) = object_at(&arguments) else {
        return arguments;
    };
    let Some(object) = object(&arguments[at]) else {
        // Options before a command that is not ip's go behind it as well.
        let mut moved = arguments;
        moved[..=at].rotate_right(1);
        return moved;
    };
    let mut rest: Vec<&str> = arguments[at + 1..].iter().map(String::as_str).collect();
    if let Some(show) = show_behind_options(&rest) {
        rest.remove(show);
    }
    let before = arguments[..at].iter().map(String::as_str);
    let mut out = vec![object.name().to_owned()];
    match rest.first() {
        Some(&"help") => {
            out.push("--help".to_owned());
            return out;
        }
        // First, as in ip: `link s` is `set`.
        Some(word) if let Some(verb) = changed_by(object, word) => {
            out.push(verb.to_owned());
            out.extend(before_change(before));
            out.extend(rest.iter().skip(1).map(|word| (*word).to_owned()));
            return out;
        }
        Some(word) if begins_one_of(word, SHOW) => {
            rest.remove(0);
        }
        // Our own, with options alone.
        Some(&"flaps") if object == Object::Route => {
            out.extend(rest.iter().map(|word| (*word).to_owned()));
            out.extend(before.map(str::to_owned));
            return out;
        }
        // Our own: a beginning of it would be one of ip's commands.
        Some(&("diff" | "why")) if object == Object::Route => {
            let before = before.collect::<Vec<_>>();
            compared(&before, &rest, &mut out);
            return out;
        }
        Some(word) if begins(word, "get") && object == Object::Nexthop => {
            rest.remove(0);
        }
        Some(word) if begins(word, "get") && object == Object::Route => {
            out.push("get".to_owned());
            rest.remove(0);
            let tokens: Vec<&str> = before.chain(rest).collect();
            rewrite_words(&tokens, conditions::GET, None, &mut out);
            return out;
        }
        _ => {}
    }
    let words: Vec<_> = conditions::of_object(conditions::FILTERS, object).collect();
    let tokens: Vec<&str> = before.chain(rest).collect();
    rewrite_filters(&tokens, &words, conditions::unnamed(object), &mut out);
    out
}

/// Where `show` stands behind options that are for every listing: it is no
/// name there either. A whole word alone, so that no name is taken for it.
fn show_behind_options(rest: &[&str]) -> Option<usize> {
    let is_known = |option: &str| {
        let of_ip = |(theirs, ours): &(&str, &str)| *theirs == option || *ours == option;
        OPTIONS.iter().any(of_ip) || FOR_ALL.contains(&option)
    };
    let mut at = 0;
    loop {
        match *rest.get(at)? {
            word if at > 0 && SHOW.contains(&word) => return Some(at),
            option if WITH_VALUE.contains(&option) || is_family(option) => at += 2,
            option if is_known(option) => at += 1,
            _ => return None,
        }
    }
}

/// `route diff FIRST SECOND` and `route why PREFIX`, whose names stand
/// first, with the words of a listing behind them.
fn compared(before: &[&str], rest: &[&str], out: &mut Vec<String>) {
    let names = if rest[0] == "diff" { 2 } else { 1 };
    let named = rest.iter().skip(1).take(names);
    let named = named.take_while(|word| !word.starts_with('-')).count();
    out.extend(rest.iter().take(1 + named).map(|word| (*word).to_owned()));
    let words: Vec<_> = conditions::of_object(conditions::FILTERS, Object::Route).collect();
    let tokens = [before, rest.get(1 + named..).unwrap_or_default()].concat();
    let unnamed = (named == names).then(|| conditions::unnamed(Object::Route));
    rewrite_filters(&tokens, &words, unnamed.flatten(), out);
}

/// The command that a word means which changes something.
fn changed_by(object: Object, word: &str) -> Option<&'static str> {
    if object == Object::Link {
        links::command::meant(word)
    } else {
        Verb::meant(object, word).map(|verb| verb.name())
    }
}

/// `ip`'s options before the object, for a change: `-n` names the
/// namespace there. What they say of a listing's looks is passed over.
fn before_change<'a>(mut options: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut out = Vec::new();
    while let Some(option) = options.next() {
        let known = OPTIONS.iter().find(|(said, _)| *said == option);
        match option {
            "-n" => out.push("--netns".to_owned()),
            "-d" | "-details" | "-s" | "-statistics" | "-stats" | "-o" | "-oneline" => {}
            "-f" | "-family" => match options.next() {
                Some("inet") => out.push("-4".to_owned()),
                Some("inet6") => out.push("-6".to_owned()),
                other => out.extend(
                    [option.to_owned()]
                        .into_iter()
                        .chain(other.map(str::to_owned)),
                ),
            },
            _ => out.push(known.map_or(option, |(_, flag)| flag).to_owned()),
        }
    }
    out
}

/// Where the first argument stands that is neither an option nor the
/// value of one.
fn object_at(arguments: &[String]) -> Option<usize> {
    let mut at = 0;
    loop {
        let argument = arguments.get(at)?;
        if !argument.starts_with('-') {
            return Some(at);
        }
        at += 1 + usize::from(WITH_VALUE.contains(&argument.as_str()) || is_family(argument));
    }
}

fn is_family(option: &str) -> bool {
    matches!(option, "-f" | "-family")
}

fn begins(word: &str, whole: &str) -> bool {
    !word.is_empty() && whole.starts_with(word)
}

fn begins_one_of(word: &str, wholes: &[&str]) -> bool {
    wholes.iter().any(|whole| begins(word, whole))
}

fn rewrite_words(
    tokens: &[&str],
    words: &'static [Word<Packet>],
    unnamed: Option<&str>,
    out: &mut Vec<String>,
) {
    let words: Vec<_> = words.iter().collect();
    let tokens: Vec<&str> = match tokens.iter().position(|token| *token == "to") {
        Some(at) => [&tokens[..at], &tokens[at + 1..]].concat(),
        None => tokens.to_vec(),
    };
    rewrite_filters(&tokens, &words, unnamed, out);
}

fn rewrite_filters<T>(
    tokens: &[&str],
    words: &[&'static Word<T>],
    unnamed: Option<&str>,
    out: &mut Vec<String>,
) {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1);
        at += 1;
        if token.starts_with('-') {
            at += option(token, next, words, out);
        } else if let Some((word, spoken)) = conditions::spoken(words, token, next.copied()) {
            out.push(format!("--{}", word.flag));
            at += spoken - 1;
            if word.value.is_some() {
                out.extend(tokens.get(at).map(|value| (*value).to_owned()));
                at += 1;
            }
        } else {
            out.extend(unnamed.map(|flag| format!("--{flag}")));
            out.push((*token).to_owned());
        }
    }
}

/// Copies an option in our spelling, with its value if it takes one; gives
/// how many tokens the value took.
fn option<T>(
    token: &str,
    next: Option<&&str>,
    words: &[&'static Word<T>],
    out: &mut Vec<String>,
) -> usize {
    if is_family(token) {
        match next {
            Some(&"inet") => out.push("-4".to_owned()),
            Some(&"inet6") => out.push("-6".to_owned()),
            _ => out.push(token.to_owned()),
        }
        return 1;
    }
    let ours = OPTIONS
        .iter()
        .find(|(theirs, _)| *theirs == token)
        .map_or(token, |(_, ours)| ours);
    out.push(ours.to_owned());
    let of_word = token
        .strip_prefix("--")
        .and_then(|flag| words.iter().find(|word| word.flag == flag))
        .is_some_and(|word| word.value.is_some());
    match next {
        Some(value) if of_word || WITH_VALUE.contains(&token) => {
            out.push((*value).to_owned());
            1
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(line: &str) -> String {
        rewrite(line.split_whitespace().map(str::to_owned).collect()).join(" ")
    }

    #[test]
    fn ip_s_words_become_flags() {
        for (spoken, meant) in [
            ("neigh", "neigh"),
            ("n s dev eth0", "neigh --dev eth0"),
            (
                "link --netns blue --details show dev eth0",
                "link --netns blue --details --dev eth0",
            ),
            ("route -4 --json list", "route -4 --json"),
            ("link --dev show", "link --dev show"),
            ("link --netns show dev ls", "link --netns show --dev ls"),
            ("neighbour ls nud stale", "neigh --state stale"),
            ("-j r l to root 10/8", "route -j --to 10/8"),
            ("r", "route"),
            ("ru", "rule"),
            ("ro show 10/8 proto bgp", "route --exact 10/8 --proto bgp"),
            ("route show to match 1.2.3.4", "route --covering 1.2.3.4"),
            (
                "route table all type unicast",
                "route --table all --type unicast",
            ),
            (
                "-n blue -6 a show eth0 up",
                "addr -n blue -6 --dev eth0 --up",
            ),
            ("address list dev up", "addr --dev up"),
            (
                "l show type veth master br0",
                "link --kind veth --master br0",
            ),
            (
                "-f inet6 -details neigh 2001:db8::1",
                "neigh -6 --details --to 2001:db8::1",
            ),
            (
                "route get to 10.0.0.1 from 10.0.0.2",
                "route get 10.0.0.1 --from 10.0.0.2",
            ),
            ("route g 10.0.0.1 dev eth0", "route get 10.0.0.1 --oif eth0"),
            (
                "-j r diff kernel frr 10/8 proto bgp",
                "route diff kernel frr -j --exact 10/8 --proto bgp",
            ),
            (
                "route diff --strict kernel frr --watch",
                "route diff --strict kernel frr --watch",
            ),
            (
                "route why 10.0.0.1 table all",
                "route why 10.0.0.1 --table all",
            ),
            ("-j route flaps --source frr", "route flaps --source frr -j"),
            ("nexthop get id 5", "nexthop --id 5"),
            ("nexthop groups", "nexthop --groups"),
            (
                "route --via 10.0.0.1 dev eth0",
                "route --via 10.0.0.1 --dev eth0",
            ),
            (
                "neigh --sort dev --fields dst,dev",
                "neigh --sort dev --fields dst,dev",
            ),
            ("link help", "link --help"),
            ("fdb show br br0", "fdb --master br0"),
            ("neigh dev", "neigh --dev"),
        ] {
            assert_eq!(rewritten(spoken), meant, "{spoken}");
        }
    }

    #[test]
    fn options_before_other_commands_go_behind_them() {
        assert_eq!(rewritten("-n blue status -j"), "status -n blue -j");
    }

    #[test]
    fn what_is_not_ip_s_stays() {
        for line in [
            "up --netns blue",
            "arp -an",
            "--help",
            "",
            "status -j",
            "--netns",
        ] {
            assert_eq!(rewritten(line), line);
        }
    }
}
