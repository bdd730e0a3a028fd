//! The command line of `fingerpost top`.

use std::path::PathBuf;
use std::time::Duration;

use change::arguments::switch;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};

use super::subscribers::usual;
use crate::ask::From;

const AFTER_HELP: &str = "\
Keys: q quits, ? lists them all. Rates are those since the last look; the rows
that change most are kept, 4,096 of neighbours and of prefixes.
Counters are read by the daemon once a second at most.";

/// What is wanted of `top`.
#[derive(Debug, Clone)]
pub struct Top {
    /// From whom.
    pub from: From,
    /// Between two looks.
    pub interval: Duration,
    /// One report, then the end.
    pub once: bool,
    /// JSON instead of a screen.
    pub json: bool,
    /// The control socket of the translation whose subscribers are shown.
    pub nat: PathBuf,
}

/// The command's definition.
pub fn command() -> Command {
    Command::new("top")
        .about("Rates of links, sizes and changes of the tables, on a full screen")
        .after_help(AFTER_HELP)
        .arg(
            Arg::new("interval")
                .long("interval")
                .short('i')
                .value_name("SECONDS")
                .default_value("1")
                .value_parser(interval)
                .help("Between two looks, 0.5 to 3600"),
        )
        .arg(switch("once", None, "One report as text over one interval"))
        .arg(switch(
            "json",
            Some('j'),
            "One JSON object an interval; with --once only one, then the end",
        ))
        .arg(
            Arg::new("netns")
                .long("netns")
                .short('n')
                .value_name("NAME|PATH|PID")
                .help("Of this namespace instead of the current one"),
        )
        .arg(
            Arg::new("socket")
                .long("socket")
                .value_name("PATH")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("netns")
                .help("From the daemon that listens here"),
        )
        .arg(
            Arg::new("nat")
                .long("nat")
                .value_name("PATH")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("Subscribers of the translation with this control socket")
                .long_help(
                    "Subscribers of the translation with this control socket; without: \
                     /run/fingerpost-nat.sock, where there is one",
                ),
        )
}

/// What the command line asks for.
pub fn wanted(matches: &ArgMatches) -> Top {
    Top {
        from: From {
            netns: matches.get_one("netns").cloned(),
            socket: matches.get_one("socket").cloned(),
            ..From::default()
        },
        interval: matches
            .get_one("interval")
            .copied()
            .unwrap_or(Duration::from_secs(1)),
        once: matches.get_flag("once"),
        json: matches.get_flag("json"),
        nat: matches.get_one("nat").cloned().unwrap_or_else(usual),
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let secs: f64 = text.parse().map_err(|_| "not a number of seconds")?;
    if !(0.5..=3600.0).contains(&secs) {
        return Err("0.5 seconds at least, an hour at most".to_owned());
    }
    Ok(Duration::from_secs_f64(secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_bounded() {
        assert_eq!(interval("0.5").unwrap(), Duration::from_millis(500));
        for bad in ["0", "-1", "1e9", "NaN", "soon", "inf"] {
            assert!(interval(bad).is_err(), "{bad}");
        }
    }
}
