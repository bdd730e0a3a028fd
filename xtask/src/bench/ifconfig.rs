//! Case `ifconfig`: interfaces and addresses, 4,096 aliases on one
//! interface and up to 4,000 interfaces.

use ::lab::Netns;
use ::lab::bench::Samples;
use ::lab::situation::{aliases, links};
use anyhow::Result;

use super::Setting;
use super::command::{Contender, in_turn, output_bytes};
use crate::host::say;

pub fn measure(setting: &Setting, samples: &mut Samples) -> Result<()> {
    let netns = Netns::new("bench")?;
    say(format_args!("ifconfig: {} aliases", aliases::ADDRESSES));
    aliases::build(&netns, 0)?;
    let rows = u64::from(aliases::ADDRESSES);
    let mut all = contenders(setting, &netns, "aliases on one interface")?;
    in_turn(setting, &netns, rows, &mut all, samples)?;
    let mut sizes = vec![1_000];
    if !setting.quick {
        sizes.push(4_000);
    }
    for size in sizes {
        say(format_args!("ifconfig: {size} interfaces"));
        let netns = Netns::new("bench")?;
        links::build(&netns, size)?;
        let mut all = contenders(setting, &netns, "interfaces")?;
        in_turn(setting, &netns, size as u64, &mut all, samples)?;
    }
    Ok(())
}

fn contenders(setting: &Setting, netns: &Netns, what: &str) -> Result<Vec<Contender>> {
    let bare = setting.programs.join("bare-dump");
    let ours = Contender::new("fingerpost", what, &setting.fingerpost, "ifconfig -a");
    let bytes = format!("ifconfig {}", output_bytes(netns, &ours)?);
    Ok(vec![
        ours,
        Contender::peer(what, "ifconfig -a"),
        Contender::peer(what, "ip addr"),
        Contender::new("bare dumps", what, &bare, "ifconfig"),
        Contender::new("bare dumps, and writing", what, &bare, &bytes),
    ])
}
