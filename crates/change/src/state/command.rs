//! `apply`, `diff` and `export`: their options.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};

use super::{Applying, Task, Wanted};
use crate::arguments::switch;

const APPLY_HELP: &str = "\
A file is TOML, or the JSON that --ndjson prints; docs/state.md says what may
stand in it:
  [[link]]
  name = \"cust{1..4096}\"
  kind = \"veth\"
  peer = \"custb{}\"
  addresses = \"10.0.{/64}.{%64*4+1}/30\"
What is as it is wanted is not touched: a second time nothing is sent. What a
file does not say stays as it is. Several files own their parts; where two
contradict each other, nothing is done, and both places are named. What stands
on a link that is not there waits for it, and is told (status 1).
With --atomic one failure, Ctrl-C or a kill takes all back. With --confirm 60s
all is taken back unless `fingerpost apply --confirmed` is said in time; a
process of its own sees to it when the session ends.
--prune removes what carries the mark of an earlier apply and is not wanted any
more: protocol 70 of rows, the alternative name fingerpost.INDEX of links.
Exit status: 0 all is as wanted, 1 something is not (each is named), 2 the
files make no sense and nothing was done.";

const DIFF_HELP: &str = "\
+ is made, ~ changed (field by field), - deleted, in the order in which apply
does it; ! goes along with it in the kernel; ? waits for a link.
Exit status: 0 nothing would change, 1 something would, 2 the files make no
sense.";

const EXPORT_HELP: &str = "\
What somebody made of links, addresses, neighbours, next hops, routes, rules
and forwarding entries; not what the kernel makes by itself, nor what expires.
What a file cannot say is listed in comments at its beginning. Applied where it
was written it changes nothing.";

/// The commands.
pub fn commands() -> [Command; 3] {
    [apply(), diff(), export()]
}

fn apply() -> Command {
    Command::new("apply")
        .about("Make links and rows as files say, and nothing else")
        .after_help(APPLY_HELP)
        .arg(files().required_unless_present_any(["confirmed", "recover", "keep"]))
        .args([
            switch("dry-run", None, "Only show what would change, as diff does"),
            switch(
                "atomic",
                None,
                "All or nothing: after a failure, Ctrl-C or a kill all is taken back",
            )
            .conflicts_with_all(["dry-run", "watch"]),
            Arg::new("confirm")
                .long("confirm")
                .value_name("TIME")
                .value_parser(time)
                .conflicts_with_all(["dry-run", "watch"])
                .help("Take all back after this time (60s, 5m), unless it is confirmed"),
            Arg::new("confirmed")
                .long("confirmed")
                .value_name("ID")
                .num_args(0..=1)
                .default_missing_value("")
                .conflicts_with("files")
                .help("What was applied with --confirm stays"),
            switch(
                "recover",
                None,
                "Take back what a killed apply left, and do nothing else",
            )
            .conflicts_with("files"),
            switch(
                "watch",
                None,
                "Keep it so: a link that comes gets its part, what others change is put right",
            ),
            switch(
                "tell",
                None,
                "With --watch: only tell what is not as wanted",
            )
            .requires("watch"),
            Arg::new("keep").long("keep").value_name("ID").hide(true),
        ])
        .args(arguments())
        .args([prune(), colour(), journal()])
}

fn diff() -> Command {
    Command::new("diff")
        .about("Show what apply would change, field by field")
        .after_help(DIFF_HELP)
        .arg(files().required(true))
        .args(arguments())
        .args([prune(), colour()])
}

fn export() -> Command {
    Command::new("export")
        .about("Write the current state as a file for apply")
        .after_help(EXPORT_HELP)
        .args(arguments())
}

fn files() -> Arg {
    Arg::new("files")
        .value_name("FILE")
        .num_args(1..)
        .action(ArgAction::Append)
        .value_hint(ValueHint::FilePath)
        .value_parser(value_parser!(PathBuf))
        .help("TOML, or JSON as --ndjson prints it; -: standard input")
}

fn arguments() -> [Arg; 2] {
    [
        switch("json", Some('j'), "As lines of JSON"),
        Arg::new("netns")
            .long("netns")
            .value_name("NAME|PATH|PID")
            .help("In this namespace instead of the current one"),
    ]
}

fn prune() -> Arg {
    switch(
        "prune",
        None,
        "What an earlier apply made and no file wants goes",
    )
}

fn colour() -> Arg {
    Arg::new("colour")
        .long("colour")
        .alias("color")
        .value_name("WHEN")
        .value_parser(["auto", "always", "never"])
        .help("Colours [default: auto, on a terminal]")
}

fn journal() -> Arg {
    Arg::new("journal")
        .long("journal")
        .value_name("DIR")
        .value_hint(ValueHint::DirPath)
        .value_parser(value_parser!(PathBuf))
        .help("Keep the journal here [default: /run/fingerpost-journal, or below XDG_RUNTIME_DIR]")
}

/// `60s`, `5m`, `1h`, `500ms`; a number alone is of seconds.
fn time(text: &str) -> Result<Duration, String> {
    let expected = || format!("`{text}`: a time like 60s, 5m or 1h is expected, up to a week");
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| expected())?;
    let millis = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(expected()),
    };
    let time = number
        .checked_mul(millis)
        .filter(|time| (1..=604_800_000).contains(time));
    time.map(Duration::from_millis).ok_or_else(expected)
}

/// What one of the commands asks for; `None`: it is another command.
pub fn wanted(name: &str, matches: &ArgMatches) -> Option<Wanted> {
    let flag = |id: &str| matches.try_get_one::<bool>(id).ok().flatten() == Some(&true);
    let text = |id: &str| matches.try_get_one::<String>(id).ok().flatten().cloned();
    let path = |id: &str| matches.try_get_one::<PathBuf>(id).ok().flatten().cloned();
    let confirm = matches
        .try_get_one::<Duration>("confirm")
        .ok()
        .flatten()
        .copied();
    let task = match name {
        "diff" => Task::Diff,
        "export" => Task::Export,
        "apply" => match (text("keep"), text("confirmed")) {
            (Some(id), _) => Task::Keep { id, confirm },
            (_, Some(id)) => Task::Confirmed(Some(id).filter(|id| !id.is_empty())),
            _ if flag("recover") => Task::Recover,
            _ if flag("dry-run") => Task::Diff,
            _ if flag("watch") => Task::Watch { tell: flag("tell") },
            _ => Task::Apply(Applying {
                atomic: flag("atomic"),
                confirm,
            }),
        },
        _ => return None,
    };
    let files = matches.try_get_many::<PathBuf>("files").ok().flatten();
    Some(Wanted {
        task,
        files: files.unwrap_or_default().cloned().collect(),
        netns: text("netns"),
        prune: flag("prune"),
        json: flag("json"),
        colour: match text("colour").as_deref() {
            Some("always") => Some(true),
            Some("never") => Some(false),
            _ => None,
        },
        journal: path("journal"),
    })
}
