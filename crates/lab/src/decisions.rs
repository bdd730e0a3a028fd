//! Which way the kernel says a packet goes, beside what the daemon or a set
//! of tables says: situations and questions at random, the kernel's answers
//! (`ip -batch`, so that hundreds take a moment), and what differs.
//!
//! Called by the soak and by the tests of `route get`. A question is the
//! words behind `route get`, the same for `ip` and for the program.

mod asked;
mod situation;

use std::io::Write;
use std::process::Stdio;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::Netns;
pub use situation::{questions, situation};

/// The object that `-j route get` gives, or the kernel's words for why
/// there is none.
pub type Answer = std::result::Result<Value, String>;

/// How often the kernel is asked again where it answered otherwise: between
/// default routes it takes turns from one question to the next
/// (`fib_select_default`).
const AGAIN: usize = 4;

/// Of so many questions one is put to the program, whatever its daemon says.
const TO_PROGRAM: usize = 20;

/// Asks both sides the same questions; gives what differs. Calm is the
/// caller's affair: what changes meanwhile differs.
///
/// The daemon is asked over its socket. The program is asked where that does
/// not give the kernel's answer: where it leaves a part of it to the kernel,
/// where there is no daemon, and before anything counts as a difference.
pub fn compare(netns: &Netns, program: &str, questions: &[String]) -> Result<Vec<String>> {
    let theirs = of_kernel(netns, questions)?;
    let socket = asked::socket(netns)?;
    let is_settled = |at: usize, question: &String, theirs: &Answer| {
        let ours = asked::ask(&socket, question).ok().flatten();
        !at.is_multiple_of(TO_PROGRAM) && ours.is_some_and(|ours| agree(&ours, theirs))
    };
    let both = questions.iter().zip(theirs).enumerate();
    let (questions, theirs): (Vec<String>, Vec<Answer>) = both
        .filter(|(at, (question, theirs))| !is_settled(*at, question, theirs))
        .map(|(_, (question, theirs))| (question.clone(), theirs))
        .unzip();
    let ours = of_program(netns, program, &questions)?;
    let mut left: Vec<(String, Answer, Answer)> = questions
        .into_iter()
        .zip(ours.into_iter().zip(theirs))
        .map(|(question, (ours, theirs))| (question, ours, theirs))
        .collect();
    left.retain(|(_, ours, theirs)| !agree(ours, theirs));
    for _ in 0..AGAIN {
        let questions: Vec<String> = left.iter().map(|(question, ..)| question.clone()).collect();
        let mut again = of_kernel(netns, &questions)?.into_iter();
        left.retain(|(_, ours, _)| again.next().is_none_or(|theirs| !agree(ours, &theirs)));
    }
    let all = left.iter();
    Ok(all
        .flat_map(|(question, ours, theirs)| difference(question, ours, theirs))
        .collect())
}

/// What the kernel answers.
pub fn of_kernel(netns: &Netns, questions: &[String]) -> Result<Vec<Answer>> {
    let lines: String = questions
        .iter()
        .map(|question| format!("route get {question}\n"))
        .collect();
    let (output, errors) = batch(netns, &["-j"], &lines)?;
    let failed = failures(&errors);
    let mut objects = serde_json::Deserializer::from_str(&output).into_iter::<Value>();
    let mut answers = Vec::new();
    for at in 1..=questions.len() {
        let refused = failed.iter().find(|(line, _)| *line == at);
        answers.push(match refused {
            Some((_, why)) => Err(why.clone()),
            None => {
                let rows = objects.next().context("an answer of ip")??;
                Ok(rows.get(0).cloned().context("a row of ip")?)
            }
        });
    }
    Ok(answers)
}

/// Runs `ip` over lines; those that are refused are part of the game.
pub fn change(netns: &Netns, lines: &[String]) -> Result<()> {
    let text: String = lines.iter().map(|line| line.clone() + "\n").collect();
    batch(netns, &[], &text).map(|_| ())
}

/// What `ip -batch` says, and what it complains of.
fn batch(netns: &Netns, options: &[&str], lines: &str) -> Result<(String, String)> {
    let mut command = netns.command("ip");
    command.args(options).args(["-force", "-batch", "-"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = command.spawn().context("starting ip -batch")?;
    let mut stdin = process.stdin.take().context("the input of ip")?;
    let lines = lines.to_owned();
    // Beside the reading, or both would wait for ever.
    let feeder = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = process.wait_with_output()?;
    feeder
        .join()
        .map_err(|_| anyhow::anyhow!("feeding ip panicked"))??;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&output.stdout), text(&output.stderr)))
}

/// The lines that failed, from 1, and why.
fn failures(errors: &str) -> Vec<(usize, String)> {
    let mut why = String::new();
    let mut failed = Vec::new();
    for line in errors.lines() {
        match line.strip_prefix("Command failed -:") {
            Some(at) => {
                let at = at.trim().parse().unwrap_or(0);
                failed.push((at, std::mem::take(&mut why)));
            }
            None => line
                .trim_start_matches("RTNETLINK answers: ")
                .clone_into(&mut why),
        }
    }
    failed
}

/// What the program answers, by its daemon where one runs.
fn of_program(netns: &Netns, program: &str, questions: &[String]) -> Result<Vec<Answer>> {
    let script: String = questions
        .iter()
        .map(|question| format!("{program} -j route get {question} 2>&1; echo @@@@\n"))
        .collect();
    let text = netns.run("sh", &["-c", &script])?;
    let answers = text.split("@@@@\n").take(questions.len());
    Ok(answers.map(answer).collect())
}

fn answer(text: &str) -> Answer {
    let rows: Option<Value> = serde_json::from_str(text.trim()).ok();
    rows.and_then(|rows| rows.get(0).cloned())
        .ok_or_else(|| text.trim().to_owned())
}

/// Where the answers to some questions differ.
pub fn differences(questions: &[String], ours: &[Answer], theirs: &[Answer]) -> Vec<String> {
    let answers = ours.iter().zip(theirs);
    let both = questions.iter().zip(answers);
    both.flat_map(|(question, (ours, theirs))| difference(question, ours, theirs))
        .collect()
}

fn difference(question: &str, ours: &Answer, theirs: &Answer) -> Option<String> {
    let (of_ours, of_theirs) = (shown(ours), shown(theirs));
    (!agree(ours, theirs))
        .then(|| format!("{question}\n  ours:   {of_ours}\n  theirs: {of_theirs}"))
}

fn shown(answer: &Answer) -> String {
    match answer {
        Ok(row) => row.to_string(),
        Err(why) => why.clone(),
    }
}

/// Whether an answer is the kernel's. Of several members the kernel takes
/// one by a hash with a secret: ours must say all that it may be, and which
/// it is where the kernel could be asked.
pub fn agree(ours: &Answer, theirs: &Answer) -> bool {
    match (ours, theirs) {
        (Err(ours), Err(theirs)) => ours.contains(theirs.as_str()),
        (Ok(ours), Ok(theirs)) => {
            let (mut ours, theirs) = (ours.clone(), plain(theirs.clone()));
            choose(&mut ours, &theirs) && plain(ours) == theirs
        }
        _ => false,
    }
}

/// Takes the kernel's choice out of ours; false if it is not among them.
fn choose(ours: &mut Value, theirs: &Value) -> bool {
    let members = ours.as_object_mut().and_then(|row| row.remove("nexthops"));
    let Some(members) = members else {
        return true;
    };
    if ours.get("dev").is_some() {
        // Ours says which one it is.
        return true;
    }
    let of_hop = ["gateway", "via", "dev", "encap"];
    let is_theirs = |member: &&Value| {
        of_hop
            .iter()
            .all(|name| member.get(name) == theirs.get(name))
    };
    let member = members
        .as_array()
        .and_then(|all| all.iter().find(is_theirs));
    let Some(member) = member else {
        return false;
    };
    // By the loopback it is the host's own, whatever the others are.
    if theirs["dev"] == "lo" {
        ours["cache"] = theirs["cache"].clone();
    }
    for name in of_hop {
        if let Some(value) = member.get(name) {
            ours[name] = value.clone();
        }
    }
    // Each member has a source of its own; ours tells the first one's.
    for name in ["prefsrc", "flow"] {
        match theirs.get(name) {
            Some(value) => ours[name] = value.clone(),
            None => {
                ours.as_object_mut().and_then(|row| row.remove(name));
            }
        }
    }
    true
}

/// Without what is no decision: flags of the cache that `ip` takes for
/// flags of the route, the user who asks, how long a route lives; and of a
/// packet that came in, whether its sender is told of a better way, and the
/// realm that it is counted for.
fn plain(mut row: Value) -> Value {
    let Some(members) = row.as_object_mut() else {
        return row;
    };
    for name in ["flags", "uid", "expires"] {
        members.remove(name);
    }
    if members.contains_key("iif") {
        members.remove("flow");
        let cache = members.get_mut("cache").and_then(Value::as_array_mut);
        if let Some(cache) = cache {
            cache.retain(|flag| flag != "redirect");
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_member_agrees_and_another_does_not() {
        let ours = json!({"dst": "10.0.0.1", "nexthops": [
            {"gateway": "192.0.2.1", "dev": "a"}, {"gateway": "192.0.2.2", "dev": "b"}]});
        let of = |gateway| Ok(json!({"dst": "10.0.0.1", "gateway": gateway, "dev": "b"}));
        assert!(agree(&Ok(ours.clone()), &of("192.0.2.2")));
        assert!(!agree(&Ok(ours.clone()), &of("192.0.2.1")));
        assert!(!agree(&Ok(ours.clone()), &Err("No route to host".into())));
        // One that says which must be right about that.
        let mut chosen = ours;
        chosen["gateway"] = "192.0.2.2".into();
        chosen["dev"] = "b".into();
        assert!(agree(&Ok(chosen.clone()), &of("192.0.2.2")));
        chosen["gateway"] = "192.0.2.1".into();
        assert!(!agree(&Ok(chosen), &of("192.0.2.2")));
    }

    #[test]
    fn a_refusal_agrees_with_the_same_words_only() {
        let ours = || Err("route get 10.0.0.1: No route to host".to_owned());
        assert!(agree(&ours(), &Err("No route to host".into())));
        assert!(!agree(&ours(), &Err("Invalid argument".into())));
    }

    #[test]
    fn failed_lines_are_told_by_number() {
        let errors = "RTNETLINK answers: No route to host\nCommand failed -:2\n";
        assert_eq!(failures(errors), [(2, "No route to host".to_owned())]);
    }
}
