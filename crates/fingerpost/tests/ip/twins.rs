//! Two namespaces that are alike, one for iproute2 and one for our program,
//! each with mounts of its own, so that names of namespaces are its own too.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use lab::{Netns, skip};
use tempfile::TempDir;

/// Holds the namespaces; addresses of IPv6 are valid at once in them.
const HOLD: &str = "\
    mkdir -p /run/netns && mount -t tmpfs none /run/netns && \
    for of in all default; do \
        echo 0 > /proc/sys/net/ipv6/conf/$of/accept_dad; \
        echo 0 > /proc/sys/net/ipv6/conf/$of/router_solicitations; \
    done && echo ready && exec cat";

/// How often two that differ are asked again, and the time between: what
/// the kernel does by and by (IPv6's own addresses) comes to an end.
const TRIES: u32 = 3;
const BETWEEN: Duration = Duration::from_millis(40);

/// What every pair begins with.
const ALWAYS: &str = "link set lo up";

/// How a command went in both.
pub enum Outcome {
    Alike { same_message: bool },
    Refused,
    Different(String),
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
        command.args(["--target", &holder, "--net", "--mount", "--", program]);
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
            printf 'fdb show\nvlan show\nlink show\n' | bridge -d -j -batch -";
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
}

impl Twins {
    /// `None` (and counted as skipped) where namespaces cannot be made.
    pub fn new() -> Option<Self> {
        skip::unless(Netns::new("twins"))?;
        let names = tempfile::tempdir().unwrap();
        for name in ["ip", "bridge"] {
            std::os::unix::fs::symlink(common_program(), names.path().join(name)).unwrap();
        }
        Some(Self {
            theirs: Side::new(),
            ours: Side::new(),
            names,
        })
    }

    /// Begins anew.
    pub fn begin(&mut self, situation: &str) {
        self.theirs = Side::new();
        self.ours = Side::new();
        for side in [&self.theirs, &self.ours] {
            side.batch(situation);
        }
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
    pub fn run(&self, command: &str, asks: bool) -> Outcome {
        let (words, input) = match command.split_once(" < ") {
            Some((words, input)) => (words, input.replace(';', "\n") + "\n"),
            None => (command, String::new()),
        };
        let words = split(words);
        let (tool, rest) = words.split_first().unwrap();
        let own = self.names.path().join(tool).display().to_string();
        let run = || [self.theirs.run(tool, rest, &input), self.ours.run(&own, rest, &input)];
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
        compare("status", &theirs.status.to_string(), &ours.status.to_string(), &mut how);
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

/// A text without what passes with time: rests of lifetimes, timers.
fn normal(text: &str) -> String {
    const PASSING: &[&str] = &[
        "valid_lft ",
        "preferred_lft ",
        "expires ",
        "\"valid_life_time\":",
        "\"preferred_life_time\":",
        "\"expires\":",
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
    let text = text.replace("},{", "},\n{").replace("[{", "[\n{");
    let passes = |line: &&str| {
        // Groups that the kernel joins by itself.
        ["01:00:5e", "33:33:"].iter().any(|group| line.contains(group)) && !line.contains("self")
    };
    let text: Vec<&str> = text.lines().filter(|line| !passes(line)).collect();
    let text = text.join("\n");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    'next: while let Some(first) = rest.chars().next() {
        for word in PASSING {
            let Some(after) = rest.strip_prefix(word) else {
                continue;
            };
            let after_blanks = after.trim_start_matches(' ');
            let is_number = |c: char| c.is_ascii_digit() || c == '.' || c == '/';
            let end = after_blanks.find(|c| !is_number(c)).unwrap_or(after_blanks.len());
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
