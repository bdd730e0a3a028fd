//! `fingerpost ifconfig`: the listings of ifconfig(8), of FreeBSD and of
//! Linux's net-tools. It changes nothing.
//!
//! Called by `main` with the words after the command's name. One dump of
//! links with counters, one of addresses, joined; [`view::ifconfig`] writes
//! them.

mod arguments;
mod instead;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Result, bail};
use linux::Namespace;
use view::ifconfig::{Interface, Selection, Style, list};

use crate::arp::{Called, Rows};

/// Runs the command. `arguments` are those after the name. A wrong command
/// line is said on standard error and ends with 2; a link that is not
/// there ends with 1.
pub fn run(arguments: Vec<OsString>, called: Called) -> Result<ExitCode> {
    let wanted = match arguments::parse(arguments, called) {
        Ok(wanted) => wanted,
        Err(error) => {
            // A reader that is gone changes nothing.
            let _ = error.print();
            return Ok(ExitCode::from(error.exit_code() as u8));
        }
    };
    if let Some(commands) = instead::commands(&wanted.words) {
        bail!("ifconfig only lists here; to change a link:\n{commands}");
    }
    let namespace = match &wanted.netns {
        Some(spec) => Namespace::open(spec)?,
        None => Namespace::current()?,
    };
    let name = wanted.words.first();
    let selection = match name {
        Some(name) => Selection::Named(name),
        None => wanted.selection,
    };
    let blocks = show(&namespace, selection, wanted.style)?;
    let Some(name) = name.filter(|_| blocks == 0) else {
        return Ok(ExitCode::SUCCESS);
    };
    let mut error = io::stderr().lock();
    match wanted.style {
        Style::Linux | Style::LinuxShort => writeln!(
            error,
            "{name}: error fetching interface information: Device not found"
        )?,
        Style::Bsd | Style::BsdNames => {
            writeln!(error, "ifconfig: interface {name} does not exist")?;
        }
    }
    Ok(ExitCode::FAILURE)
}

fn show(namespace: &Namespace, selection: Selection<'_>, style: Style) -> Result<u64> {
    let rows = Rows::new(namespace)?;
    let links = rows.links(matches!(style, Style::Linux | Style::LinuxShort))?;
    let addresses = rows.addresses(0)?;
    let mut rest = addresses.as_slice();
    let interfaces: Vec<Interface<'_>> = links
        .iter()
        .map(|(link, counters)| {
            // Both are ordered by link. An address of a link that is not
            // listed (it went or came in between) is passed over.
            let begin = rest.partition_point(|address| address.link < link.index);
            let end = rest.partition_point(|address| address.link <= link.index);
            let (done, after) = rest.split_at(end);
            rest = after;
            Interface {
                link,
                counters: counters.as_ref(),
                addresses: &done[begin..],
            }
        })
        .collect();
    Ok(list(&interfaces, selection, style, io::stdout().lock())?)
}
