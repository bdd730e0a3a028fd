//! From words to questions.

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
