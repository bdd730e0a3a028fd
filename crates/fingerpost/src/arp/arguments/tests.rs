use super::*;

fn parsed(line: &str, called: Called) -> Result<Wanted, String> {
    let words = line.split_whitespace().map(OsString::from).collect();
    parse(words, called).map_err(|error| error.to_string())
}

fn ours(line: &str) -> Result<Wanted, String> {
    parsed(line, Called::OfFingerpost)
}

#[test]
fn the_definition_is_sound() {
    Arguments::command().debug_assert();
}

#[test]
fn the_style_follows_the_name_unless_it_is_said() {
    for (line, called, style, resolve, own) in [
        ("", Called::OfFingerpost, Style::Bsd, false, true),
        ("-an", Called::OfFingerpost, Style::Bsd, false, true),
        (
            "-a --no-own",
            Called::OfFingerpost,
            Style::Bsd,
            false,
            false,
        ),
        ("-r", Called::OfFingerpost, Style::Bsd, true, true),
        (
            "-e -n",
            Called::OfFingerpost,
            Style::LinuxTable,
            false,
            false,
        ),
        (
            "--style linux",
            Called::OfFingerpost,
            Style::LinuxTable,
            true,
            false,
        ),
        ("--json", Called::OfFingerpost, Style::Json, false, true),
        ("", Called::ByItsName, Style::LinuxTable, true, false),
        ("-n", Called::ByItsName, Style::LinuxTable, false, false),
        ("-an", Called::ByItsName, Style::LinuxLines, false, false),
        (
            "-an --style bsd",
            Called::ByItsName,
            Style::Bsd,
            false,
            true,
        ),
        (
            "-vn -i em1 -H ether -A inet",
            Called::ByItsName,
            Style::LinuxTable,
            false,
            false,
        ),
    ] {
        let wanted = parsed(line, called).unwrap();
        let Action::Show(show) = &wanted.action else {
            panic!("{line}: {wanted:?}");
        };
        assert_eq!(
            (wanted.style, show.resolve, show.own),
            (style, resolve, own),
            "{line}"
        );
    }
}

#[test]
fn changes_in_the_words_of_both_tools() {
    let Action::Set(made) = ours("-i em1 -s 10.0.0.1 0:c:29:65:4d:48 temp pub only")
        .unwrap()
        .action
    else {
        panic!("not a set");
    };
    assert!(made.temporary && made.published && !made.replace && !made.lladdr_is_link);
    let Action::Set(made) = ours("-S h 0:c:29:65:4d:48").unwrap().action else {
        panic!("not a set");
    };
    assert!(made.replace && !made.temporary);
    let Action::Set(made) = ours("-Ds 10.0.0.1 em1 netmask 255.255.255.255 pub")
        .unwrap()
        .action
    else {
        panic!("not a set");
    };
    assert!(made.lladdr_is_link && made.published);
    assert!(matches!(
        ours("-d -a").unwrap().action,
        Action::Delete(Which::All)
    ));
    assert!(matches!(
        ours("-d h pub").unwrap().action,
        Action::Delete(Which::Host {
            published: true,
            ..
        })
    ));
    assert!(
        matches!(ours("-f").unwrap().action, Action::File(Some(path)) if path.ends_with("ethers"))
    );
    assert!(matches!(ours("-f -").unwrap().action, Action::File(None)));
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    for (line, said) in [
        (
            "-s 10.0.0.1 2:0:0:0:0:1 reject",
            "ip route add prohibit 10.0.0.1/32",
        ),
        (
            "-s 10.0.0.1 2:0:0:0:0:1 blackhole",
            "ip route add blackhole 10.0.0.1/32",
        ),
        ("-s 10.0.0.1 2:0:0:0:0:1 netmask 255.0.0.0 pub", "proxy_arp"),
        ("-s 10.0.0.1 2:0:0:0:0:1 only", "pub only"),
        ("-s 10.0.0.1 2:0:0:0:0:1 fish", "`fish`"),
        ("-s 10.0.0.1", "HOST LLADDR"),
        ("-d", "-d -a"),
        ("-d -a 10.0.0.1", "one host"),
        ("10.0.0.1 10.0.0.2", "one host"),
        ("-A inet6", "fingerpost neigh -6"),
        ("-H fish", "ether"),
        ("-s -d 10.0.0.1", "cannot be used"),
    ] {
        let error = ours(line).unwrap_err();
        assert!(error.contains(said), "{line}: {error}");
    }
}

/// Where net-tools' words were asked for, none of them is read as BSD's.
#[test]
fn another_style_never_deletes_what_net_tools_would_list() {
    let by_name = |line| parsed(line, Called::ByItsName).unwrap_err();
    for line in [
        "--style bsd -d -a",
        "--json -d -a",
        "--style linux -d -a",
        "--json -d 10.0.0.1",
        "--style linux -s 10.0.0.1 2:0:0:0:0:1",
        "--json -f -",
    ] {
        assert!(by_name(line).contains("by the name arp"), "{line}");
    }
    for line in ["--style linux -d -a", "-e -d -a"] {
        assert!(ours(line).unwrap_err().contains("net-tools"), "{line}");
    }
    assert!(ours("--style linux -d 10.0.0.1").is_ok());
    assert!(parsed("--json -a", Called::ByItsName).is_ok());
}
