//! `fingerpost top` in a real terminal: a multiplexer that types its keys
//! and reads its screen.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;

use std::process::Command;

use common::{Daemon, PATIENCE, fingerpost, furnished, program, says};
use lab::{Netns, wait_until};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use tempfile::TempDir;

/// A terminal with a shell inside a namespace; ends with its value.
struct Terminal {
    directory: TempDir,
}

impl Terminal {
    fn open(netns: &Netns) -> Self {
        let terminal = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let enter = format!("--net={}", netns.path().display());
        terminal.tmux(&[
            "new-session",
            "-d",
            "-x",
            "120",
            "-y",
            "40",
            "nsenter",
            &enter,
            "--",
            "env",
            "-u",
            "NO_COLOR",
            "PS1=$ ",
            "sh",
        ]);
        terminal.shows("$");
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-f", "/dev/null", "-S"]);
        command
            .arg(self.directory.path().join("socket"))
            .args(arguments);
        common::said(command.output().unwrap())
    }

    fn types(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn shows_when(&self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let seen = wait_until(PATIENCE, what, || {
            let screen = self.screen();
            is_it(&screen).then_some(screen)
        });
        assert!(seen.is_ok(), "{seen:?}\n{}", self.screen());
        seen.unwrap()
    }

    fn shows(&self, text: &str) -> String {
        self.shows_when(text, |screen| screen.contains(text))
    }

    /// What the shell has started.
    fn child(&self) -> Pid {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let shell = shell.trim();
        let children = format!("/proc/{shell}/task/{shell}/children");
        let child = std::fs::read_to_string(children).unwrap();
        Pid::from_raw(child.trim().parse().unwrap()).unwrap()
    }

    /// Starts it with a word after it, and sees its first look.
    fn top(&self, arguments: &str) {
        self.types(&["clear", "Enter"]);
        let line = format!("{} top {arguments}; echo ended-$?", program());
        self.types(&["-l", &line]);
        self.types(&["Enter"]);
        self.shows("q quit");
        self.shows("veth0");
    }

    /// The shell has its terminal back as it was.
    fn is_given_back(&self) {
        self.shows("ended-");
        // What was typed shows as soon as the screen is the shell's, which is
        // before the cursor is.
        wait_until(PATIENCE, "the cursor, on the shell's screen", || {
            let state = self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
            (state.trim() == "0 1").then_some(())
        })
        .unwrap();
        self.types(&["clear", "Enter"]);
        self.types(&["stty -a; echo st''ty", "Enter"]);
        let modes = self.shows("stty\n");
        assert!(
            modes.contains(" icanon") && modes.contains(" echo "),
            "{modes}"
        );
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A multiplexer that is gone needs no end.
        let _ = Command::new("tmux")
            .arg("-S")
            .arg(self.directory.path().join("socket"))
            .arg("kill-server")
            .output();
    }
}

#[test]
#[ignore = "it looks for half a minute: for `cargo xtask pictures`"]
fn the_picture_of_the_readme() {
    let Some(netns) = furnished("toppicture") else {
        return;
    };
    lab::situation::routes::build(&netns, lab::situation::routes::Family::V4, 100_000).unwrap();
    let _daemon = Daemon::up(&netns, &[]);
    let _busy = busy(&netns);
    let terminal = Terminal::open(&netns);
    terminal.tmux(&["resize-window", "-x", "110", "-y", "28"]);
    terminal.top("");
    std::thread::sleep(std::time::Duration::from_secs(30));
    let screen = terminal.tmux(&["capture-pane", "-e", "-p"]);
    let made = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(made).unwrap();
    std::fs::write(made.join("top.ansi"), screen).unwrap();
}

/// Traffic and changes until dropped.
fn busy(netns: &Netns) -> lab::Child {
    let changes = "while :; do
        ip neigh replace 10.9.0.7 lladdr 02:00:00:00:00:08 dev br0 nud permanent
        ip neigh replace 10.9.0.7 lladdr 02:00:00:00:00:07 dev br0 nud permanent
        ip route add 10.77.0.0/16 via 10.9.0.7; ip route del 10.77.0.0/16
        ping -q -c 5 -i 0.002 127.0.0.1 >/dev/null
    done";
    netns.spawn("sh", &["-c", changes]).unwrap()
}

#[test]
fn its_keys_do_what_their_users_expect() {
    let Some(netns) = furnished("top") else {
        return;
    };
    let _daemon = Daemon::up(&netns, &[]);
    let _busy = busy(&netns);
    let terminal = Terminal::open(&netns);
    terminal.top("");
    for text in ["live", "neighbours", "RX BIT/S▼", "br0"] {
        terminal.shows(text);
    }
    // The loopback carries the traffic: the first below the heading.
    terminal.shows_when("lo above with a rate", |screen| {
        let mut below = screen.lines().skip_while(|line| !line.contains("RX BIT/S"));
        below
            .nth(1)
            .is_some_and(|line| line.starts_with("lo ") && line.contains('k'))
    });
    terminal.types(&["2"]);
    terminal.shows("NEIGHBOUR");
    terminal.shows("10.9.0.7 ");
    terminal.types(&["Tab"]);
    terminal.shows("10.77.0.0/16");
    terminal.types(&["1", "s", "s", "s", "s", "s"]);
    terminal.shows("LINK▲");
    terminal.types(&["r"]);
    terminal.shows("LINK▼");
    terminal.types(&["/", "v", "e", "t", "h"]);
    let screen = terminal.shows_when("only the veths", |screen| !screen.contains("br0"));
    assert!(screen.contains("veth1"), "{screen}");
    terminal.types(&["Escape"]);
    terminal.shows("br0");
    terminal.types(&["?"]);
    terminal.shows("hold still, go on");
    terminal.types(&["?"]);
    terminal.shows_when("the help is gone", |screen| {
        !screen.contains("hold still, go on")
    });
    terminal.tmux(&["resize-window", "-x", "50", "-y", "12"]);
    terminal.shows_when("the small screen", |screen| {
        !screen.contains("TABLE") && screen.contains("br0")
    });
    terminal.tmux(&["resize-window", "-x", "120", "-y", "40"]);
    terminal.shows("TABLE");
    terminal.types(&["q"]);
    terminal.shows("ended-0");
    terminal.is_given_back();
}

#[test]
fn signals_and_ctrl_c_give_the_terminal_back() {
    let Some(netns) = furnished("topsig") else {
        return;
    };
    let _daemon = Daemon::up(&netns, &[]);
    let terminal = Terminal::open(&netns);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        terminal.top("");
        let pid = terminal.child();
        rustix::process::kill_process(pid, signal).unwrap();
        terminal.shows("ended-0");
        terminal.is_given_back();
    }
    terminal.top("");
    terminal.types(&["C-z"]);
    terminal.shows_when("the shell", |screen| {
        screen.contains("topped") || screen.trim_end().ends_with('$')
    });
    terminal.types(&["fg", "Enter"]);
    terminal.shows("q quit");
    terminal.types(&["C-c"]);
    terminal.is_given_back();
    // A terminal that is closed, with the shell that had it.
    terminal.top("");
    let process = format!("/proc/{}", terminal.child().as_raw_nonzero());
    drop(terminal);
    wait_until(PATIENCE, "the end without a terminal", || {
        (!std::path::Path::new(&process).exists()).then_some(())
    })
    .unwrap();
}

#[test]
fn a_daemon_that_goes_is_missed_and_found_again() {
    let Some(netns) = furnished("topgone") else {
        return;
    };
    let none = fingerpost(&netns, &["top", "--once"]);
    assert_eq!(none.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&none.stderr);
    assert!(complaint.contains("fingerpost up"), "{complaint}");
    let daemon = Daemon::up(&netns, &[]);
    let terminal = Terminal::open(&netns);
    terminal.top("");
    daemon.end();
    let screen = terminal.shows("no daemon mirrors this namespace");
    assert!(
        screen.contains("trying again") && screen.contains("veth0"),
        "{screen}"
    );
    let _daemon = Daemon::up(&netns, &[]);
    terminal.shows("q quit");
    netns
        .ip(&["link", "add", "newer", "type", "bridge"])
        .unwrap();
    terminal.shows("newer");
    terminal.types(&["q"]);
    terminal.is_given_back();
}

#[test]
fn without_a_terminal_it_reports() {
    let Some(netns) = furnished("toponce") else {
        return;
    };
    let _daemon = Daemon::up(&netns, &[]);
    let refused = fingerpost(&netns, &["top"]);
    assert_eq!(refused.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&refused.stderr);
    assert!(
        complaint.contains("--once") && complaint.contains("--json"),
        "{complaint}"
    );
    let _busy = busy(&netns);
    let text = says(&netns, &["top", "--once"]);
    for word in ["live", "TABLE", "routes", "RX BIT/S", "veth0"] {
        assert!(text.contains(word), "{word}:\n{text}");
    }
    // What changes is heard of a moment later on a busy machine.
    let report = wait_until(PATIENCE, "rates and changes", || {
        let text = says(&netns, &["top", "--once", "--json", "--interval", "2"]);
        let report: Value = serde_json::from_str(&text).unwrap();
        let links = report["links"].as_array().unwrap();
        let lo = links.iter().find(|link| link["ifname"] == "lo").unwrap();
        let flows = lo["rates"]["rx_packets"]
            .as_f64()
            .is_some_and(|rate| rate > 0.0);
        let changes = report["neighbours"][0]["dst"] == "10.9.0.7"
            && report["prefixes"][0]["dst"] == "10.77.0.0/16";
        (flows && changes).then_some(report)
    });
    let report = report.unwrap();
    assert_eq!(report["tables"][0]["table"], "links");
    assert_eq!(report["tables"][0]["rows"], 4);
    assert_eq!(report["prefixes"][0]["table"], "main");
}
