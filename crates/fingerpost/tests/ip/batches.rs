//! Long files of `ip -batch`, of which many lines have been read when one
//! fails: what is done, said and left is what iproute2 does, says and
//! leaves.

use std::io::Write as _;
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lab::{Netns, skip};

use super::common::{program, sorted};

/// What both sides begin with.
const SITUATION: &str = "\
    link add v0 address 02:00:00:00:00:01 type veth peer name v1 address 02:00:00:00:00:02\n\
    link set v0 up\nlink set v1 up\naddr add 192.0.2.1/24 dev v0\n";
/// Long enough for lines to be read while others are sent.
const LINES: usize = 1000;

fn host(number: usize) -> String {
    format!("10.0.{}.{}", number >> 8, number & 255)
}

fn route(number: usize) -> String {
    format!("route add {}/32 via 192.0.2.9 dev v0", host(number))
}

fn neighbour(number: usize) -> String {
    format!(
        "neigh add {} lladdr 02:00:00:00:00:05 nud permanent dev v0",
        host(number)
    )
}

/// Lines of which some are others than usual.
fn lines(usual: fn(usize) -> String, others: &[(usize, &str)]) -> String {
    let line = |number: usize| {
        let other = others.iter().find(|(at, _)| *at == number);
        other.map_or_else(|| usual(number), |(_, line)| (*line).to_owned())
    };
    (1..=LINES).map(|number| line(number) + "\n").collect()
}

fn start(netns: &Netns, who: &[&str], options: &[&str]) -> Child {
    let (program, words) = who.split_first().unwrap();
    let mut command = netns.command("timeout");
    command.args(["60", program]).args(words).args(options);
    command.args(["-batch", "-"]);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    piped.stderr(Stdio::piped()).spawn().unwrap()
}

fn run(netns: &Netns, who: &[&str], options: &[&str], text: &str) -> Output {
    let mut child = start(netns, who, options);
    let mut input = child.stdin.take().unwrap();
    thread::scope(|scope| {
        // Who leaves closes the pipe.
        scope.spawn(move || drop(input.write_all(text.as_bytes())));
        child.wait_with_output().unwrap()
    })
}

/// What a run ended with and said, and what it has left, in order: the
/// kernel lists neighbours by chance.
fn told(netns: &Netns, output: Output) -> [String; 4] {
    let mut left = String::new();
    for words in ["route show", "neigh show nud permanent", "-4 -br addr show"] {
        let words: Vec<&str> = words.split(' ').collect();
        left.push_str(&netns.ip(&words).unwrap());
    }
    [
        format!("{}", output.status),
        String::from_utf8(output.stderr).unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        sorted(&left).join("\n"),
    ]
}

/// Runs a batch by both; gives what both told, which is the same.
fn both(options: &[&str], text: &str) -> Option<[String; 4]> {
    let ways: [&[&str]; 2] = [&["ip"], &[program(), "ip"]];
    let mut answers = Vec::new();
    for who in ways {
        let netns = skip::unless(Netns::new("batches"))?;
        netns.ip_batch(SITUATION).unwrap();
        let output = run(&netns, who, options, text);
        answers.push(told(&netns, output));
    }
    let ours = answers.pop().unwrap();
    for (theirs, ours) in answers.pop().unwrap().iter().zip(&ours) {
        let mut lines = theirs.lines().zip(ours.lines());
        let different = lines.find(|(theirs, ours)| theirs != ours);
        let counts = [theirs, ours].map(|text| text.lines().count());
        assert!(theirs == ours, "{different:?}, of {counts:?} lines");
    }
    Some(ours)
}

fn count(text: &str, part: &str) -> usize {
    text.lines().filter(|line| line.contains(part)).count()
}

#[test]
fn no_line_is_done_behind_one_that_the_kernel_refused() {
    // The second is wrong by its words, and read before the first is sent.
    let text = lines(
        route,
        &[(700, &route(3)), (705, "route add 10.1.0.0/16 bogus")],
    );
    let Some([status, said, _, left]) = both(&[], &text) else {
        return;
    };
    assert_eq!(status, "exit status: 1");
    assert_eq!(
        said,
        "RTNETLINK answers: File exists\nCommand failed -:700\n"
    );
    assert_eq!(count(&left, "via 192.0.2.9"), 699);
}

#[test]
fn lines_behind_refused_ones_are_done_by_force() {
    let others = [
        (100, &*route(3)),
        (400, "route show 10.0.1.0/28"),
        (401, &route(5)),
        (402, "route add 10.2.0.0/16 dev nope"),
        (900, &route(6)),
    ];
    let Some([status, said, answers, left]) = both(&["-force"], &lines(route, &others)) else {
        return;
    };
    assert_eq!(status, "exit status: 1");
    assert_eq!(count(&said, "Command failed"), 4);
    assert_eq!(
        (count(&answers, "10.0.1."), count(&left, "via 192.0.2.9")),
        (0, 995)
    );
}

#[test]
fn what_was_asked_between_sees_the_lines_before_it_alone() {
    let show = "route show 10.0.1.0/24";
    for options in [&[][..], &["-force"]] {
        // 10.0.1.0 is number 256.
        let others = [
            (300, "route show root 10.0.1.0/24"),
            (301, show),
            (302, "rule show"),
        ];
        let Some([status, _, answers, _]) = both(options, &lines(route, &others)) else {
            return;
        };
        assert_eq!(status, "exit status: 0");
        assert_eq!(count(&answers, "via 192.0.2.9"), 300 - 256);
    }
}

#[test]
fn a_refused_neighbour_ends_it_at_once() {
    for options in [&[][..], &["-force"]] {
        let others = [(5, &*route(900)), (6, &route(900)), (700, &neighbour(3))];
        let others = if options.is_empty() {
            &others[2..]
        } else {
            &others
        };
        let Some([status, said, _, left]) = both(options, &lines(neighbour, others)) else {
            return;
        };
        assert_eq!(status, "exit status: 2");
        assert!(said.ends_with("RTNETLINK answers: File exists\n"), "{said}");
        assert_eq!(count(&left, "PERMANENT"), 700 - others.len());
    }
}

#[test]
fn a_link_s_name_means_what_it_means_at_its_line() {
    for options in [&[][..], &["-force"]] {
        let others = [
            (400, "link set v1 name w1"),
            (401, "route add 10.1.0.0/16 dev w1"),
            (402, "link add name v1 type veth peer name w2"),
            (403, "link set v1 up"),
            (404, "route add 10.2.0.0/16 dev v1"),
            (800, "link del v1"),
            (801, "route add 10.3.0.0/16 dev v1"),
        ];
        let Some([status, said, _, left]) = both(options, &lines(route, &others)) else {
            return;
        };
        assert_eq!(status, "exit status: 1");
        assert_eq!(said, "Cannot find device \"v1\"\nCommand failed -:801\n");
        assert!(left.contains("10.1.0.0/16 dev w1") && !left.contains("10.2.0.0/16"));
    }
}

#[test]
fn warnings_stand_behind_what_failed_before_them() {
    let others = [
        (100, &*route(3)),
        (101, "addr add 10.9.0.1/24 dev v0 nodad"),
        (102, &route(3)),
    ];
    let Some([_, said, ..]) = both(&["-force"], &lines(route, &others)) else {
        return;
    };
    let starts = said.lines().map(|line| line.split(' ').next().unwrap());
    let starts: Vec<&str> = starts.collect();
    assert_eq!(
        starts,
        ["RTNETLINK", "Command", "Warning:", "RTNETLINK", "Command"]
    );
}

#[test]
fn nothing_is_left_undone_while_it_waits_for_lines() {
    let Some(netns) = skip::unless(Netns::new("batches")) else {
        return;
    };
    netns.ip_batch(SITUATION).unwrap();
    let mut child = start(&netns, &[program(), "ip"], &["-force"]);
    let mut input = child.stdin.take().unwrap();
    let text = lines(route, &[]);
    let begun = text.lines().take(300).map(|line| format!("{line}\n"));
    input
        .write_all(begun.collect::<String>().as_bytes())
        .unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while count(&netns.ip(&["route", "show"]).unwrap(), "via 192.0.2.9") < 300 {
        assert!(Instant::now() < until, "lines that were read are not done");
        thread::sleep(Duration::from_millis(20));
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}
