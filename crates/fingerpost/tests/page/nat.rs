//! The overview where a translation runs: what it has, refuses, and for whom.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Stdio;

use lab::{Child, Netns, skip};
use tempfile::TempDir;

use crate::browser::Browser;
use crate::common::{Daemon, furnished, program, put_clients_behind};
use crate::{PAGE, is_quiet};

const RULES: &str = "alias_address 192.0.2.1\nport_range 1024-2023\nsubscribers 10.0.0.0/24\n\
                     port_blocks size 100 most 2\nlimit sessions 20\n";
const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);

#[test]
fn a_translation_is_shown_where_one_runs() {
    let Some(()) = skip::unless(skip::tun()) else {
        return;
    };
    let Some(netns) = furnished("page-nat") else {
        return;
    };
    let client = Netns::new("page-natin").unwrap();
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("rules"), RULES).unwrap();
    let configuration = format!("[nat]\ncontrol = \"{}\"\n", path("control"));
    std::fs::write(path("fingerpost.toml"), configuration).unwrap();
    let _daemon = Daemon::up(&netns, &["--config", &path("fingerpost.toml")]);
    let browser = Browser::start(&netns, 1280, 800);
    browser.go(PAGE);
    browser.shows("#state", "live");
    // None is there yet.
    browser.sees("#nat-part", str::is_empty);
    let mut command = netns.command(program());
    command
        .args([
            "nat",
            "run",
            "--tun",
            "fpin",
            "fpout",
            "--rules",
            &path("rules"),
        ])
        .args(["--control", &path("control")])
        .stdout(Stdio::null());
    let _nat = Child::spawn(command).unwrap();
    put_clients_behind(&netns, &client, 3);
    let sent = client.inside(|| {
        for (host, ports) in [(2, 30), (3, 5)] {
            let socket = UdpSocket::bind((Ipv4Addr::new(10, 0, 0, host), 4_000)).unwrap();
            for port in 0..ports {
                socket.send_to(b"data", (REMOTE, 9_000 + port)).unwrap();
            }
        }
    });
    sent.unwrap();
    browser.sees("#nat-sizes", |text| {
        text.contains("25 of 1,048,576") && text.contains("Subscribers")
    });
    browser.sees("#nat-drops", |text| {
        text.contains("over a subscriber's quota\t10")
    });
    browser.sees("#nat-subscribers", |text| {
        let first = text.find("10.0.0.2");
        first.is_some() && first < text.find("10.0.0.3") && text.contains("192.0.2.1")
    });
    browser.sees("#nat-addresses", |text| text.contains("192.0.2.1\t8\t10"));
    browser.shot("nat");
    is_quiet(&browser);
}
