use super::*;

fn parsed(text: &str) -> Result<Config, BadConfig> {
    parse(Path::new("f.toml"), text)
}

#[test]
fn nothing_is_a_configuration() {
    assert_eq!(parsed("").unwrap(), Config::default());
}

#[test]
fn everything_at_once() {
    let config = parsed(
        "netns = ['blue', '1']\nall_netns = true\nlog = 'linux=debug'\n\
         [control]\ndirectory = '/tmp/x'\ngroup = 'netadmin'\n\
         [mirror]\nreceive_buffer_bytes = 65536\nscan_interval_secs = 60\n\
         [record]\nfile = '/tmp/r'\nlimit_bytes = 2000000\n\
         [limits]\nroutes = 5\n",
    )
    .unwrap();
    assert_eq!(config.netns, ["blue", "1"]);
    assert_eq!(
        config.control.directory.as_deref(),
        Some(Path::new("/tmp/x"))
    );
    assert_eq!(config.control.group, Some(Group("netadmin".to_owned())));
    assert_eq!(config.mirror.scan_interval_secs, 60);
    assert_eq!(config.record.file.as_deref(), Some(Path::new("/tmp/r")));
    assert_eq!(config.record.limit_bytes, 2_000_000);
    assert_eq!(config.limits.limits().routes, 5);
    assert_eq!(config.limits.limits().links, Limits::default().links);
}

#[test]
fn secrets_that_everybody_may_read_are_named() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let (file, key) = (
        directory.path().join("f.toml"),
        directory.path().join("key"),
    );
    let text = format!(
        "[http]\ncertificate_file = '/c'\nkey_file = {key:?}\n\
         [[snmp.community]]\nname = 'secret'\n"
    );
    let config = parsed(&text).unwrap();
    for path in [&file, &key] {
        fs::write(path, &text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let said = exposed(Some(&file), &config);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("snmp.community") && said[0].contains("chmod o="));
    assert!(said[1].contains("http.key_file"), "{said:?}");
    // What everybody knows anyway is no secret.
    assert_eq!(exposed(Some(&file), &Config::default()), [""; 0]);
    for path in [&file, &key] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
    }
    assert_eq!(exposed(Some(&file), &config), [""; 0]);
}

#[test]
fn an_error_names_line_and_key() {
    for (text, line, key, says) in [
        ("\nnets = []", 2, "nets", "unknown field"),
        ("netns = 'blue'", 1, "netns", "expected a sequence"),
        ("netns = ['blue', '']", 1, "netns", "empty"),
        (
            "[limits]\n\nroutes = 'many'",
            3,
            "limits.routes",
            "invalid type",
        ),
        ("[limits]\nroutes = -1", 2, "limits.routes", "invalid value"),
        ("[limits]\nroutes = 0", 2, "limits.routes", "without rows"),
        ("[limit]\nroutes = 1", 1, "limit", "unknown field"),
        ("log = 'a=b=c'", 1, "log", "RUST_LOG"),
        ("log = '[a]=info'", 1, "log", "without spans"),
        (
            "[mirror]\nreceive_buffer_bytes = 1",
            2,
            "mirror.receive_buffer_bytes",
            "4096",
        ),
        (
            "[control]\ndirectory = 'x'",
            2,
            "control.directory",
            "absolute",
        ),
        (
            "[answers]\nkept_bytes = 1",
            2,
            "answers.kept_bytes",
            "mebibyte",
        ),
        ("[control]\ngroup = ''", 2, "control.group", "group"),
        (
            "[record]\nlimit_bytes = 1000",
            2,
            "record.limit_bytes",
            "too few",
        ),
        ("all_netns = true\nall_netns = false", 2, "", "duplicate"),
        ("netns = [", 1, "", ""),
    ] {
        let Err(BadConfig::Wrong {
            line: at,
            key: of,
            message,
            ..
        }) = parsed(text)
        else {
            panic!("{text:?} was taken");
        };
        assert_eq!((at, of.as_str()), (line, key), "{text:?}: {message}");
        assert!(message.contains(says), "{text:?}: {message}");
    }
}
