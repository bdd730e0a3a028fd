//! Case `kinds`: `ip -j -d addr` and `ip -j -d link` at 4,000 links of ten
//! kinds, by iproute2 and by our program under its name. That both say the
//! same is looked at before.

use std::path::Path;

use ::lab::Netns;
use ::lab::bench::Samples;
use ::lab::situation::kinds;
use anyhow::{Context, Result, bail};

use super::Setting;
use super::command::{Contender, in_turn};
use crate::host::say;

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
        let mut all = Vec::new();
        for question in QUESTIONS {
            let ours = format!("ip {question}");
            all.push(Contender::new("ip", question, Path::new("ip"), question));
            all.push(Contender::new(
                "fingerpost ip",
                question,
                &setting.fingerpost,
                &ours,
            ));
        }
        in_turn(setting, &netns, size as u64, &mut all, samples)?;
    }
    Ok(())
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
