//! Two namespaces that are alike, one for iproute2 (or net-tools) and one
//! for our program, each with mounts of its own, so that names of namespaces
//! are its own too; and tables of commands that are run in both.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use lab::{Netns, skip};
use tempfile::TempDir;

/// Holds the namespaces; addresses of IPv6 are valid at once in them. Names
/// are asked for at a port of their own loopback that nobody has: a question
/// that leaves by a link would make a neighbour there.
const HOLD: &str = "\
    mkdir -p /run/netns && mount -t tmpfs none /run/netns && \
    { test ! -e /etc/resolv.conf || mount --bind /dev/null /etc/resolv.conf; } && \
    for of in all default; do \
        echo 0 > /proc/sys/net/ipv6/conf/$of/accept_dad; \
        echo 0 > /proc/sys/net/ipv6/conf/$of/router_solicitations; \
    done && echo ready && exec cat";

/// How often two that differ are asked again, and the time between: what
/// the kernel does by and by (IPv6's own addresses) comes to an end.
const TRIES: u32 = 50;
const BETWEEN: Duration = Duration::from_millis(40);
/// Times that a command is tried from the beginning before it differs.
const AGAIN: usize = 3;

/// What every pair begins with.
const ALWAYS: &str = "link set lo up";

/// How a command went in both.
pub enum Outcome {
    Alike { same_message: bool },
    Refused,
    Different(String),
}

/// What a line of a table begins with.
#[derive(PartialEq)]
enum Mark {
    /// Nothing: both do the same.
    Alike,
    /// `-`: it is refused by name.
    Refused,
    /// `~`: either, by what the kernel has.
    ByKernel,
}

/// Runs a table; all its failures are told at once.
/// `asks`: its commands have no effect to look for; `least` of them are to be
/// alike.
pub fn table(name: &str, text: &str, asks: bool, least: usize) {
    let Some(mut twins) = Twins::new() else {
        return;
    };
    let (mut alike, mut refused, mut said) = (0, 0, 0);
    let mut failures = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(situation) = line.strip_prefix('@') {
            twins.begin(situation);
            continue;
        }
        let (mark, command) = match line.split_at_checked(2) {
            Some(("- ", command)) => (Mark::Refused, command),
            Some(("~ ", command)) => (Mark::ByKernel, command),
            _ => (Mark::Alike, line),
        };
        let place = number + 1;
        match (twins.run(command, asks), mark) {
            (Outcome::Alike { .. }, Mark::Refused) => {
                failures.push(format!(
                    "{place}: {command}\n  is built: take its mark away"
                ));
            }
            (Outcome::Alike { same_message }, Mark::Alike | Mark::ByKernel) => {
                alike += 1;
                said += usize::from(same_message);
            }
            (Outcome::Refused, Mark::Refused | Mark::ByKernel) => refused += 1,
            (Outcome::Refused, Mark::Alike) => {
                failures.push(format!("{place}: {command}\n  is refused, and not marked"));
            }
            (Outcome::Different(how), _) => failures.push(format!("{place}: {command}\n{how}")),
        }
    }
    eprintln!(
        "{name}: {alike} alike ({said} with the same message), {refused} refused by name, {} \
         different",
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(alike >= least, "{name}: {alike} commands of {least}");
}

/// One of the two.
struct Side {
    holder: Child,
}

impl Side {
    fn new() -> Self {
        // It ends when its standard input does, and the namespaces with it.
        let mut holder = Command::new("unshare")
            .args(["--net", "--mount", "--", "sh", "-c"])
            .arg(HOLD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        let told = BufReader::new(holder.stdout.as_mut().unwrap()).read_line(&mut ready);
        assert_eq!((told.unwrap(), ready.trim()), (6, "ready"));
        let side = Self { holder };
        side.batch(ALWAYS);
        side
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let holder = self.holder.id().to_string();
        command.args(["--target", &holder, "--net", "--mount", "--"]);
        // No command of a table lasts.
        command.args(["timeout", "20", program]);
        command
    }

    fn run(&self, program: &str, words: &[String], input: &str) -> Output {
        let mut child = self
            .command(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Who reads none of it closes the pipe.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Lines with `;` between, by iproute2.
    fn batch(&self, lines: &str) {
        let lines = lines.replace(';', "\n") + "\n";
        let output = self.run("ip", &["-batch".to_owned(), "-".to_owned()], &lines);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{lines}: {error}");
    }

    /// All that iproute2 tells of the namespace.
    fn state(&self) -> String {
        const ASK: &str = "\
            printf 'addr show\nrule show\nneigh show nud all\nneigh show proxy\nnexthop show\n\
            route show table all\nnetns list\n' | ip -d -j -batch -; \
            printf 'route show table all\nrule show\n' | ip -6 -d -j -batch -; \
            printf 'fdb show\nvlan show\nlink show\nmdb show\n' | bridge -d -j -batch -";
        let output = self.command("sh").args(["-c", ASK]).output().unwrap();
        normal(&String::from_utf8_lossy(&output.stdout))
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// The two of them.
pub struct Twins {
    theirs: Side,
    ours: Side,
    names: TempDir,
    /// What was done since the beginning, to do it again.
    situation: String,
    done: Vec<String>,
}

impl Twins {
    /// `None` (and counted as skipped) where namespaces cannot be made.
    pub fn new() -> Option<Self> {
        skip::unless(Netns::new("twins"))?;
        let names = tempfile::tempdir().unwrap();
        for name in ["ip", "bridge", "arp", "ifconfig", "route", "netstat"] {
            std::os::unix::fs::symlink(common_program(), names.path().join(name)).unwrap();
        }
        Some(Self {
            theirs: Side::new(),
            ours: Side::new(),
            names,
            situation: String::new(),
            done: Vec::new(),
        })
    }

    /// Begins anew.
    pub fn begin(&mut self, situation: &str) {
        self.theirs = Side::new();
        self.ours = Side::new();
        for side in [&self.theirs, &self.ours] {
            side.batch(situation);
        }
        self.situation = situation.to_owned();
        self.done.clear();
    }

    /// Makes both alike again after one that had another effect in each.
    fn again(&mut self) {
        let done = std::mem::take(&mut self.done);
        let situation = self.situation.clone();
        self.begin(&situation);
        for command in &done {
            let (words, input) = parted(command);
            let (tool, rest) = words.split_first().unwrap();
            for side in [&self.theirs, &self.ours] {
                side.run(tool, rest, &input);
            }
        }
        self.done = done;
    }

    /// What iproute2 tells of both, once they have come to rest.
    fn states(&self) -> [String; 2] {
        let both = || {
            thread::scope(|scope| {
                let theirs = scope.spawn(|| self.theirs.state());
                let ours = self.ours.state();
                [theirs.join().unwrap(), ours]
            })
        };
        let mut states = both();
        for _ in 0..TRIES {
            if states[0] == states[1] {
                break;
            }
            thread::sleep(BETWEEN);
            states = both();
        }
        states
    }

    /// Runs a command in both; one that only asks has no effect to look for.
    pub fn run(&mut self, command: &str, asks: bool) -> Outcome {
        let mut outcome = self.ran(command, asks);
        // What a kernel does meanwhile (duplicate address detection, packets
        // of its own) falls before a command in one and behind it in the
        // other: a difference is one if it comes each time from the beginning.
        for _ in 0..AGAIN {
            let Outcome::Different(how) = &outcome else {
                break;
            };
            // Each costs as much as all before it: who waits sees which.
            eprintln!("again: {command}\n{how}");
            self.again();
            outcome = self.ran(command, asks);
        }
        if !asks {
            self.done.push(command.to_owned());
            if matches!(outcome, Outcome::Different(_)) {
                self.again();
            }
        }
        outcome
    }

    fn ran(&self, command: &str, asks: bool) -> Outcome {
        let (words, input) = parted(command);
        let (tool, rest) = words.split_first().unwrap();
        let own = self.names.path().join(tool).display().to_string();
        let run = || {
            [
                self.theirs.run(tool, rest, &input),
                self.ours.run(&own, rest, &input),
            ]
        };
        let [mut theirs, mut ours] = run();
        let complaint = first_line(&ours.stderr);
        if complaint.contains("is not built here, and nothing was done") {
            if !ours.stdout.is_empty() || ours.status.code() != Some(255) {
                return Outcome::Different(format!("  refused, but not plainly: {ours:?}"));
            }
            // If ours changed something by then, theirs does not have the
            // same effect now.
            if asks {
                return Outcome::Refused;
            }
            self.ours.run(tool, rest, &input);
            let states = self.states();
            let mut how = String::new();
            compare("changed, though refused", &states[0], &states[1], &mut how);
            return match how.is_empty() {
                true => Outcome::Refused,
                false => Outcome::Different(how),
            };
        }
        let mut how = String::new();
        for _ in 0..TRIES {
            if !asks || said(&theirs) == said(&ours) {
                break;
            }
            thread::sleep(BETWEEN);
            [theirs, ours] = run();
        }
        compare(
            "status",
            &theirs.status.to_string(),
            &ours.status.to_string(),
            &mut how,
        );
        compare("output", &said(&theirs), &said(&ours), &mut how);
        if !asks {
            let states = self.states();
            compare("effect", &states[0], &states[1], &mut how);
        }
        if how.is_empty() {
            return Outcome::Alike {
                same_message: first_line(&theirs.stderr) == complaint,
            };
        }
        how.push_str(&format!(
            "  theirs said: {}\n  ours said: {complaint}",
            first_line(&theirs.stderr)
        ));
        Outcome::Different(how)
    }
}

/// What a program wrote, without what passes.
fn said(output: &Output) -> String {
    normal(&String::from_utf8_lossy(&output.stdout))
}

fn common_program() -> std::path::PathBuf {
    super::common::program().into()
}

fn first_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines().next().unwrap_or_default().to_owned()
}

/// The words of a command, and its standard input.
fn parted(command: &str) -> (Vec<String>, String) {
    match command.split_once(" < ") {
        Some((words, input)) => (split(words), input.replace(';', "\n") + "\n"),
        None => (split(command), String::new()),
    }
}

/// Words, with quotes around those that have blanks.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(inside) => inside.split_once('"').unwrap(),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

/// Says where two texts differ.
fn compare(what: &str, theirs: &str, ours: &str, how: &mut String) {
    if theirs == ours {
        return;
    }
    let mut lines = (theirs.lines(), ours.lines());
    loop {
        match (lines.0.next(), lines.1.next()) {
            (None, None) => {
                how.push_str(&format!("  {what}: line ends differ\n"));
                return;
            }
            (a, b) if a == b => {}
            (a, b) => {
                let shown = |line: Option<&str>| line.unwrap_or("(nothing)").to_owned();
                how.push_str(&format!("  {what}:\n    {}\n    {}\n", shown(a), shown(b)));
                return;
            }
        }
    }
}

/// Neighbours in an order of their own: each namespace hashes them by
/// numbers of its own.
fn in_order(lines: Vec<&str>) -> Vec<String> {
    let is_neighbour = |line: &str| {
        let states = ["PERMANENT", "NOARP", "STALE", "REACHABLE", "DELAY"];
        let text = states.iter().any(|state| line.trim_end().ends_with(state));
        // One that has failed, or has no state, has no address either.
        let is_bare = line.starts_with("{\"dst\":") && !line.contains("\"flags\":");
        line.contains("\"lladdr\":") || is_bare || text || line.contains(" lladdr ")
    };
    let bare = |line: &str| line.trim_end_matches([']', ',']).to_owned();
    let mut out: Vec<String> = Vec::with_capacity(lines.len());
    let mut run = 0;
    for line in lines {
        if is_neighbour(line) {
            out.push(bare(line));
            run += 1;
            let start = out.len() - run;
            out[start..].sort_unstable();
        } else {
            out.push(line.to_owned());
            run = 0;
        }
    }
    out
}

/// The addresses of links, as entries of a bridge name them.
fn stations(text: &str) -> Vec<String> {
    text.split("\"address\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|address| address.len() == 17)
        .map(|address| format!("\"mac\":\"{address}\""))
        .collect()
}

/// What link-layer addresses of tables begin with, and those that are no
/// station's; all others the kernel chose by chance.
const SAID: [&str; 6] = ["02:00:00", "00:00:00", "01:", "33:33", "ff:ff", "de:ad"];

/// What addresses of links at bridges begin with in the tables.
const STATION: &str = "02:00:00:00:00:1";

/// A text without what is chosen by chance: addresses of links that were made
/// without one, and what follows from them.
fn without_chance(text: &str) -> String {
    let is_part = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b':';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| is_part(&byte)) {
        let (before, from) = rest.split_at(at);
        let len = from.bytes().take_while(is_part).count();
        let (word, after) = from.split_at(len);
        out.push_str(before);
        let octets = word.split(':');
        // A bridge's number has no leading zeros.
        let is_number = out.ends_with('.');
        let is_address = octets.clone().count() == 6
            && octets.clone().all(|octet| (1..=2).contains(&octet.len()))
            && (word.len() == 17 || is_number);
        let is_chosen = is_address && !SAID.iter().any(|said| word.starts_with(said));
        let is_local = word.starts_with("fe80::") && word.contains("ff:fe");
        let is_known = word.starts_with("fe80::ff:fe00:");
        // Of the tunnel that each namespace has from the beginning.
        let is_permanent = out.ends_with("permaddr ") || out.ends_with("\"permaddr\":\"");
        let is_tunnel_s = is_permanent && word.ends_with("::");
        match is_chosen || is_address && is_number || is_local && !is_known || is_tunnel_s {
            true => out.push_str("CHANCE"),
            false => out.push_str(word),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A text without what passes with time: rests of lifetimes, timers.
fn normal(text: &str) -> String {
    const PASSING: &[&str] = &[
        "valid_lft ",
        "preferred_lft ",
        "expires ",
        "idle_time ",
        "\"idle_time\":",
        "\"valid_life_time\":",
        "\"preferred_life_time\":",
        "\"expires\":",
        "hold_timer ",
        "message_age_timer ",
        "forward_delay_timer ",
        "\"hold_timer\":",
        "\"message_age_timer\":",
        "\"forward_delay_timer\":",
        "hello_timer ",
        "tcn_timer ",
        "topology_change_timer ",
        "gc_timer ",
        "\"hello_timer\":",
        "\"tcn_timer\":",
        "\"topology_change_timer\":",
        "\"gc_timer\":",
        "used ",
        "\"used\":",
        "\"confirmed\":",
        "\"updated\":",
    ];
    // Set by `linkwatch`, by what happened in which order.
    let text = text.replace("LOWERLAYERDOWN", "DOWN");
    let text = text.replace("},{", "},\n{").replace("[{", "[\n{");
    let stations = stations(&text);
    let passes = |line: &&str| {
        // What a bridge learns from whatever packet goes first.
        let learned = line.contains("\"state\":\"\"")
            && stations.iter().any(|mac| line.contains(mac))
            || line.starts_with(STATION)
                && line.contains(" master ")
                && !["permanent", "static"].iter().any(|of| line.contains(of));
        // Groups that the kernel joins by itself.
        let group = ["01:00:5e", "33:33:"]
            .iter()
            .any(|group| line.contains(group));
        // Of several links their order is that in which they came up.
        let own = [
            "\"fe80::/64\"",
            "\"ff00::/8\"",
            "fe80::/64 dev",
            "ff00::/8 dev",
        ];
        let joined = line.contains("temp")
            && ["grp ff02::", "\"grp\":\"ff02::"]
                .iter()
                .any(|of| line.contains(of));
        learned
            || joined
            || group && !line.contains("self")
            || own.iter().any(|own| line.contains(own))
    };
    let text: Vec<&str> = text.lines().filter(|line| !passes(line)).collect();
    let text = without_chance(&in_order(text).join("\n"));
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    'next: while let Some(first) = rest.chars().next() {
        for word in PASSING {
            let Some(after) = rest.strip_prefix(word) else {
                continue;
            };
            let after_blanks = after.trim_start_matches(' ');
            let is_number = |c: char| c.is_ascii_digit() || c == '.' || c == '/';
            let end = after_blanks
                .find(|c| !is_number(c))
                .unwrap_or(after_blanks.len());
            let number = after_blanks.get(..end).unwrap_or_default();
            let shown = match number {
                "" | "4294967295" => number,
                _ => "N",
            };
            out.push_str(word);
            out.push_str(shown);
            rest = after_blanks.get(end..).unwrap_or_default();
            continue 'next;
        }
        out.push(first);
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    out
}
