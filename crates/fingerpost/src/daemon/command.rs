//! The command line of `fingerpost up`.

use std::net::SocketAddr;
use std::path::PathBuf;

use ::feed::{BMP_PORT, FPM_PORT, loopback_address};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};

use crate::config;

/// How the daemon is started.
#[derive(Debug, Clone, Default)]
pub struct Up {
    /// Namespaces by name, path or process id.
    pub netns: Vec<String>,
    /// All named namespaces.
    pub all_netns: bool,
    /// The configuration; `None`: the usual place.
    pub config: Option<PathBuf>,
    /// What is logged.
    pub log: Option<String>,
    /// Where to record what the mirrors are fed with.
    pub record: Option<PathBuf>,
    /// Octets that the recording takes at most.
    pub record_limit: Option<u64>,
    /// Where zebra connects, for the feed `frr`.
    pub fpm: Option<SocketAddr>,
    /// Where routers connect, for the feed `bmp`.
    pub bmp: Option<SocketAddr>,
}

/// The command's definition.
pub fn command() -> Command {
    Command::new("up")
        .about("Mirror the network tables and answer questions, in the foreground")
        .arg(
            Arg::new("netns")
                .long("netns")
                .short('n')
                .value_name("NAME|PATH|PID")
                .action(ArgAction::Append)
                .help("Mirror this namespace instead of the current one; may be given several times"),
        )
        .arg(
            Arg::new("all-netns")
                .long("all-netns")
                .action(ArgAction::SetTrue)
                .help("Mirror all named namespaces, as they come and go, and the current one"),
        )
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("Configuration [default: /etc/fingerpost/fingerpost.toml or /etc/fingerpost.toml, if there is one]"),
        )
        .arg(
            Arg::new("log")
                .long("log")
                .value_name("LEVEL")
                .help("What is logged: error, warn, info, debug, trace, or a RUST_LOG filter"),
        )
        .arg(
            Arg::new("record")
                .long("record")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help("Record what the kernel says, with its time, for `fingerpost replay`"),
        )
        .arg(
            Arg::new("record-limit")
                .long("record-limit")
                .value_name("BYTES")
                .value_parser(record_limit)
                .help("FILE and FILE.1, the part before it, together [default: 1G]"),
        )
        .arg(
            Arg::new("fpm")
                .long("fpm")
                .value_name("ADDRESS[:PORT]")
                .value_parser(fpm_address)
                .help("Where FRR's zebra tells its routes (FPM), for `--source frr`; of this host only, and port 2620 unless said"),
        )
        .arg(
            Arg::new("bmp")
                .long("bmp")
                .value_name("ADDRESS[:PORT]")
                .value_parser(bmp_address)
                .help("Where routers tell what their BGP peers tell (BMP), for `--source bmp:PEER`; of this host only, and port 11019 unless said"),
        )
}

/// What the command line asks for.
pub fn wanted(matches: &ArgMatches) -> Up {
    let path = |id: &str| matches.get_one::<PathBuf>(id).cloned();
    Up {
        netns: matches
            .get_many("netns")
            .unwrap_or_default()
            .cloned()
            .collect(),
        all_netns: matches.get_flag("all-netns"),
        config: path("config"),
        log: matches.get_one("log").cloned(),
        record: path("record"),
        record_limit: matches.get_one("record-limit").copied(),
        fpm: matches.get_one("fpm").copied(),
        bmp: matches.get_one("bmp").copied(),
    }
}

fn fpm_address(text: &str) -> Result<SocketAddr, String> {
    loopback_address(text, FPM_PORT)
}

fn bmp_address(text: &str) -> Result<SocketAddr, String> {
    loopback_address(text, BMP_PORT)
}

/// Octets, also as `64M` or `2G`.
fn record_limit(text: &str) -> Result<u64, String> {
    let shift = match text.chars().last() {
        Some('K' | 'k') => 10,
        Some('M') => 20,
        Some('G') => 30,
        Some('T') => 40,
        _ => 0,
    };
    let number = if shift == 0 {
        text
    } else {
        text.get(..text.len() - 1).unwrap_or_default()
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "a number of bytes is expected, such as 512M or 2G".to_owned())?;
    let bytes = number.checked_mul(1 << shift);
    config::check_record_limit(bytes.ok_or("that is more than there is")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_understood() {
        assert_eq!(record_limit("2M").unwrap(), 2 << 20);
        assert_eq!(record_limit("3000000").unwrap(), 3_000_000);
        assert_eq!(fpm_address("127.0.0.1").unwrap().port(), 2620);
        assert_eq!(fpm_address("[::1]:7").unwrap().port(), 7);
        assert!(fpm_address("192.0.2.1:2620").unwrap_err().contains("peers"));
        assert!(fpm_address("2620").is_err());
        assert_eq!(bmp_address("::1").unwrap().port(), 11_019);
        assert!(bmp_address("0.0.0.0").unwrap_err().contains("peers"));
        for wrong in ["", "M", "1K", "12X", "99999999999T", "-1"] {
            assert!(record_limit(wrong).is_err(), "{wrong}");
        }
    }
}
