//! From words to questions.

use view::Question;

use super::*;

fn parsed(line: &str) -> Result<Wanted, clap::Error> {
    parse(line.split_whitespace().map(OsString::from).collect())
}

fn question_of(line: &str) -> Question {
    match parsed(line).unwrap() {
        Wanted::Ask(Ask::Question(question), _) => *question,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_definition_is_sound() {
    command().debug_assert();
}

#[test]
fn words_and_flags_ask_the_same() {
    for (words, flags) in [
        (
            "neigh show dev eth0 nud stale",
            "neigh --dev eth0 --state stale",
        ),
        ("-j -6 r s to root default", "route --json --to ::/0 -6"),
        ("a show up type veth", "addr --kind veth --up"),
        ("ru list pref 32766", "rule --priority 32766"),
    ] {
        let (words, flags) = (format!("fingerpost {words}"), format!("fingerpost {flags}"));
        assert_eq!(question_of(&words), question_of(&flags), "{words}");
    }
}

#[test]
fn what_a_change_cannot_be_shown_as_is_refused() {
    for output in ["--csv", "--count", "--sort dst", "--fields dst"] {
        let refused = parsed(&format!("fingerpost neigh --watch {output}"));
        let why = refused.unwrap_err().to_string();
        assert!(why.contains("--watch"), "{output}: {why}");
    }
}

#[test]
fn a_prefix_decides_the_family() {
    assert_eq!(
        question_of("fingerpost route to 2001:db8::/32")
            .filter
            .family,
        Some(6)
    );
    assert_eq!(question_of("fingerpost route").filter.family, None);
}

#[test]
fn what_makes_no_sense_is_a_usage_error_that_says_why() {
    for (line, says) in [
        ("fingerpost", "Usage"),
        ("fingerpost dance", "dance"),
        ("fingerpost route show to fish", "a prefix is expected"),
        ("fingerpost neigh --mac fish", "link-layer address"),
        ("fingerpost rule fish", "fish"),
        ("fingerpost neigh dev", "--dev"),
        ("fingerpost neigh -4 -6", "--ipv6"),
        ("fingerpost route get fish", "an address is expected"),
        ("fingerpost neigh --json --csv", "--csv"),
    ] {
        let error = parsed(line).unwrap_err();
        assert!(error.to_string().contains(says), "{line}: {error}");
        assert_eq!(error.exit_code(), 2, "{line}");
    }
}

#[test]
fn the_name_it_is_called_by_decides() {
    assert!(matches!(
        parsed("/usr/local/sbin/arp -an").unwrap(),
        Wanted::Arp(arguments, Called::ByItsName) if arguments == ["-an"]
    ));
    assert!(matches!(
        parsed("ifconfig -a").unwrap(),
        Wanted::Ifconfig(_, Called::ByItsName)
    ));
    assert!(matches!(
        parsed("fingerpost arp -a -n eth0").unwrap(),
        Wanted::Arp(arguments, Called::OfFingerpost) if arguments == ["-a", "-n", "eth0"]
    ));
}

#[test]
fn route_get_takes_ip_s_words() {
    let wanted =
        parsed("fingerpost r get 10.0.0.1 from 10.0.0.2 iif eth0 mark 0x10 tos 8").unwrap();
    let Wanted::Ask(Ask::RouteGet(get), _) = wanted else {
        panic!("{wanted:?}");
    };
    assert_eq!(get.to.to_string(), "10.0.0.1");
    assert_eq!(get.from, "10.0.0.2".parse().ok());
    assert_eq!(get.iif.as_deref(), Some("eth0"));
    assert_eq!((get.mark, get.tos), (16, 8));
}

#[test]
fn changes_are_told_from_questions() {
    for (line, object, verb, words) in [
        (
            "route add 10.0.0.0/8 via 192.0.2.1",
            Object::Route,
            Verb::Add,
            "10.0.0.0/8 via 192.0.2.1",
        ),
        (
            "-4 r a default dev em1",
            Object::Route,
            Verb::Add,
            "default dev em1",
        ),
        (
            "a d 10.0.0.1/24 dev em1",
            Object::Addr,
            Verb::Delete,
            "10.0.0.1/24 dev em1",
        ),
        (
            "addr add 10.0.0.1/24 brd - dev em1",
            Object::Addr,
            Verb::Add,
            "10.0.0.1/24 brd - dev em1",
        ),
        (
            "n chg 10.0.0.1 dev em1",
            Object::Neigh,
            Verb::Change,
            "10.0.0.1 dev em1",
        ),
        ("ru del pref 5", Object::Rule, Verb::Delete, "pref 5"),
        (
            "nexthop replace id 5 dev em1",
            Object::Nexthop,
            Verb::Replace,
            "id 5 dev em1",
        ),
    ] {
        let wanted = parsed(&format!("fingerpost {line}")).unwrap();
        let Wanted::Change(of, what, change) = wanted else {
            panic!("{line}: {wanted:?}");
        };
        assert_eq!((of, what), (object, verb), "{line}");
        assert_eq!(change.words.join(" "), words, "{line}");
    }
    let wanted =
        parsed("fingerpost -n red -f inet6 route add -n 5 2001:db8:{}::/48 dev em1 --atomic");
    let Wanted::Change(_, _, change) = wanted.unwrap() else {
        panic!("no change");
    };
    assert_eq!(change.netns.as_deref(), Some("red"));
    assert_eq!(change.family, Some(table::AF_INET6));
    assert!(change.atomic && change.numbers.is_some());
    for line in [
        "fingerpost route add",
        "fingerpost route add --file a -n 5",
        "fingerpost addr add --split 10.0.0.0/8 --len 30",
        "fingerpost route add 10.0.0.0/8 --max-errors 0",
    ] {
        assert_eq!(parsed(line).unwrap_err().exit_code(), 2, "{line}");
    }
    // What a table does not have is a question for a link of that name, as
    // ever.
    assert_eq!(question_of("fingerpost route").object, Object::Route);
}

/// A word that is a value of nothing.
const BOGUS: &str = "\u{7f}bogus";

/// Every command with its words, the innermost last.
fn commands(command: &Command, before: &[String], all: &mut Vec<(Vec<String>, Command)>) {
    for sub in command.get_subcommands() {
        let mut words = before.to_vec();
        words.push(sub.get_name().to_owned());
        commands(sub, &words, all);
        all.push((words, sub.clone()));
    }
}

#[test]
fn every_wrong_option_and_value_is_refused_by_its_name() {
    let mut whole = command();
    whole.build();
    let mut all = Vec::new();
    commands(&whole, &[], &mut all);
    let mut values = 0;
    for (words, command) in &all {
        let foreign = ["arp", "ifconfig", "ip", "bridge", "netstat"].contains(&words[0].as_str());
        let line = |more: &[&str]| {
            let words = words.iter().map(String::as_str).chain(more.iter().copied());
            let words = std::iter::once("fingerpost").chain(words);
            parse(words.map(OsString::from).collect())
        };
        let named = |refused: Result<Wanted, clap::Error>, word: &str| match refused {
            Ok(wanted) if foreign => drop(wanted),
            Ok(wanted) => panic!("{words:?} {word}: {wanted:?}"),
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains(word), "{words:?} {word}: {said}");
                assert_eq!(error.exit_code(), 2, "{words:?} {word}");
            }
        };
        named(line(&["--no-such-option"]), "--no-such-option");
        // Some are names, which may be anything.
        for long in command.get_opts().filter_map(|option| option.get_long()) {
            let refused = line(&[&format!("--{long}={BOGUS}")]);
            // Others miss something else, or are refused for more than that.
            let said = || refused.as_ref().err().map(ToString::to_string);
            let is_of_value = |error: &clap::Error| {
                error.kind() == ErrorKind::ValueValidation
                    || said().is_some_and(|said| said.contains("[possible values"))
            };
            if refused.as_ref().err().is_some_and(is_of_value) {
                values += 1;
                named(refused, "bogus");
            }
        }
    }
    assert!(all.len() > 50 && values > 100, "{} {values}", all.len());
}
