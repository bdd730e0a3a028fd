//! Case `kinds`: `ip -j -d addr` and `ip -j -d link` at 4,000 links of ten
//! kinds, by iproute2 and by our program under its name, from the kernel and
//! from a daemon. That both say the same is looked at before.

use std::path::Path;

use ::lab::Netns;
use ::lab::bench::Samples;
use ::lab::situation::kinds;
use anyhow::{Context, Result, bail};

use super::Setting;
use super::command::{Contender, Daemon, ask_often, in_turn};
use crate::host::say;

/// Our program, where a daemon runs.
const FROM_DAEMON: &str = "fingerpost ip (daemon)";

const QUESTIONS: [&str; 3] = ["-j -d addr", "-j -d link", "-d link"];

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    let mut sizes = vec![1_000];
    if !setting.quick {
        sizes.push(4_000);
    }
    for size in sizes {
        say(format_args!("kinds: {size} links"));
        let netns = Netns::new("bench")?;
        kinds::build(&netns, size / kinds::OF_A_SET)?;
        equal(setting, &netns)?;
        beside(setting, &netns, "fingerpost ip", size, samples)?;
        let daemon = Daemon::start(setting, &netns)?;
        equal(setting, &netns)?;
        beside(setting, &netns, FROM_DAEMON, size, samples)?;
        for question in QUESTIONS {
            ask_often(
                setting,
                &netns,
                &daemon,
                size as u64,
                question,
                &ours(question),
                samples,
            )?;
        }
        drop(daemon);
    }
    Ok(())
}

/// iproute2 and our program in turn.
fn beside(
    setting: &Setting,
    netns: &Netns,
    who: &str,
    size: usize,
    samples: &mut Samples,
) -> Result<()> {
    let mut all = Vec::new();
    for question in QUESTIONS {
        all.push(Contender::new("ip", question, Path::new("ip"), question));
        let program = &setting.fingerpost;
        all.push(Contender::new(who, question, program, &ours(question)));
    }
    in_turn(setting, netns, size as u64, &mut all, samples)
}

fn ours(question: &str) -> String {
    format!("ip {question}")
}

/// Whether both say the same, but for timers.
fn equal(setting: &Setting, netns: &Netns) -> Result<()> {
    let program = setting
        .fingerpost
        .to_str()
        .context("a path that is not UTF-8")?;
    for question in ["addr", "link"] {
        let theirs = netns.ip(&["-j", "-d", question])?;
        let ours = netns.run(program, &["ip", "-j", "-d", question])?;
        if kinds::steady(&theirs) != kinds::steady(&ours) {
            bail!("ip -j -d {question} says another thing than iproute2's");
        }
    }
    Ok(())
}
