//! TLS and the token, and that beyond loopback there is nothing without.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::{ask, configured, with_loopback};
use crate::common::{fingerpost, furnished, program};

const TOKEN: &str = "correct-horse-battery-staple";

/// A certificate for 127.0.0.1 and router.example.net, its key, a token.
fn keys(directory: &Path) -> String {
    let (certificate, key) = (directory.join("cert.pem"), directory.join("key.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
        ])
        .args(["-nodes", "-days", "2", "-subj", "/CN=router.example.net"])
        .args([
            "-addext",
            "subjectAltName=IP:127.0.0.1,DNS:router.example.net",
        ])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let token = directory.join("token");
    fs::write(&token, format!("{TOKEN}\n")).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    format!(
        "hosts = ['router.example.net']\ncertificate_file = '{}'\nkey_file = '{}'\ntoken_file = '{}'\n",
        certificate.display(),
        key.display(),
        token.display()
    )
}

#[test]
fn beyond_loopback_there_is_tls_and_a_token() {
    let Some(netns) = furnished("httptls") else {
        return;
    };
    with_loopback(&netns);
    let directory = tempfile::tempdir().unwrap();
    let keys = keys(directory.path());
    let daemon = configured(
        &netns,
        directory.path(),
        &format!("listen = ['0.0.0.0:9443']\n{keys}"),
    );
    assert!(
        daemon.screen.contains("https://0.0.0.0:9443/"),
        "{}",
        daemon.screen
    );
    let certificate = directory.path().join("cert.pem");
    let trusted = ["--cacert", certificate.to_str().unwrap()];
    let url = "https://127.0.0.1:9443/v1/links";
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let told = ask(&netns, url, &[&trusted[..], &["-H", &bearer]].concat());
    assert_eq!(told.status, 200, "{told:?}");
    assert!(told.body.contains("veth0"));
    let named = [
        &trusted[..],
        &[
            "-H",
            &bearer,
            "--resolve",
            "router.example.net:9443:10.9.0.1",
        ],
    ];
    let named = ask(
        &netns,
        "https://router.example.net:9443/v1/links",
        &named.concat(),
    );
    assert_eq!(named.status, 200, "{named:?}");
    for wrong in [
        "",
        "Authorization: Bearer ",
        "Authorization: Bearer correct-horse-battery-stapl",
    ] {
        let refused = ask(&netns, url, &[&trusted[..], &["-H", wrong]].concat());
        refused.refuses(401);
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    }
    // What is the same everywhere needs none.
    assert_eq!(
        ask(&netns, "https://127.0.0.1:9443/healthz", &trusted).status,
        200
    );
    // Without TLS nothing is said.
    let plain = netns
        .command("curl")
        .args(["-s", "--max-time", "20", "http://127.0.0.1:9443/v1/links"])
        .output()
        .unwrap();
    assert!(!plain.status.success());
    assert!(plain.stdout.is_empty());
    // Another token, read again without an end.
    fs::write(
        directory.path().join("token"),
        "another-token-of-some-length",
    )
    .unwrap();
    daemon.reload();
    daemon.logs("the configuration was read again");
    ask(&netns, url, &[&trusted[..], &["-H", &bearer]].concat()).refuses(401);
    let log = daemon.log();
    assert!(
        !log.contains(TOKEN) && !log.contains("another-token"),
        "{log}"
    );
}

#[test]
fn what_is_open_to_all_is_refused_before_it_is() {
    let Some(netns) = furnished("httpopen") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f.toml");
    for (section, says) in [
        ("listen = ['0.0.0.0:9797']", "beyond loopback"),
        ("listen = ['[::]:9797']", "beyond loopback"),
        ("lisen = []", "unknown field `lisen`"),
        ("listen = ['localhost:80']", "http"),
        ("token_file = 7", "http.token_file"),
    ] {
        fs::write(&path, format!("[http]\n{section}\n")).unwrap();
        let output = fingerpost(&netns, &["check", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{section}");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(complaint.contains(says), "{section}: {complaint}");
    }
    // A token that others may read is none.
    let token = directory.path().join("token");
    fs::write(&token, TOKEN).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(
        &path,
        format!("[http]\ntoken_file = '{}'\n", token.display()),
    )
    .unwrap();
    let mut command = netns.command(program());
    let output = command
        .args(["up", "--config", path.to_str().unwrap()])
        .env(crate::common::STATE, directory.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        complaint.contains("chmod 600") && !complaint.contains(TOKEN),
        "{complaint}"
    );
}
