//! `fingerpost snmp …` on the command line.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use snmp::usm::{AuthProtocol, PrivacyProtocol};

use super::super::hex;
use super::{Add, Command as Wanted};

/// The command and those below it.
pub fn command() -> Command {
    Command::new("snmp")
        .about("Users of SNMP version 3, and running behind another agent")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("user")
                .about("Users of version 3 and their keys")
                .subcommand_required(true)
                .arg_required_else_help(true)
                .subcommand(add())
                .subcommand(
                    Command::new("remove")
                        .about("Remove a user")
                        .args([name(), config()]),
                )
                .subcommand(
                    Command::new("list")
                        .about("Users and their protocols")
                        .arg(config()),
                ),
        )
        .subcommand(
            Command::new("agentx-help")
                .about("What net-snmp's snmpd needs to have fingerpost behind it (AgentX)"),
        )
}

fn add() -> Command {
    Command::new("add")
        .about("Make a user's keys from passphrases, and store the keys")
        .arg(name())
        .arg(
            Arg::new("auth")
                .long("auth")
                .short('a')
                .value_name("PROTOCOL")
                .default_value("SHA-256")
                .help("MD5, SHA, SHA-224, SHA-256, SHA-384, SHA-512, none"),
        )
        .arg(
            Arg::new("privacy")
                .long("privacy")
                .short('x')
                .value_name("PROTOCOL")
                .default_value("AES")
                .help("DES, AES, AES-192, AES-256, AES-192-C, AES-256-C, none"),
        )
        .arg(
            Arg::new("passphrase-file")
                .long("passphrase-file")
                .value_name("FILE")
                .value_hint(ValueHint::FilePath)
                .value_parser(value_parser!(PathBuf))
                .help(
                    "First line: the passphrase; second: another for privacy; `-`: standard \
                     input. Asked for at the terminal unless said",
                ),
        )
        .arg(
            Arg::new("engine-id")
                .long("engine-id")
                .value_name("HEX")
                .value_parser(engine_id)
                .help(
                    "Make the keys for this engine, of a receiver of informs, beside those for \
                     the daemon's own",
                ),
        )
        .arg(config())
}

/// `snmpEngineID`: 5 to 32 octets (RFC 3411 §5).
fn engine_id(said: &str) -> Result<EngineId, String> {
    let digits = said.strip_prefix("0x").unwrap_or(said);
    let id = hex::octets(digits).filter(|id| (5..=32).contains(&id.len()));
    id.map(EngineId).ok_or_else(|| {
        "an engine id of 5 to 32 octets in hexadecimal digits is expected, as \
         0x80001f8880e9630000d61ff449"
            .to_owned()
    })
}

#[derive(Debug, Clone)]
struct EngineId(Vec<u8>);

fn name() -> Arg {
    Arg::new("name")
        .value_name("NAME")
        .required(true)
        .help("The user")
}

fn config() -> Arg {
    Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_hint(ValueHint::FilePath)
        .value_parser(value_parser!(PathBuf))
        .help("The daemon's configuration: it may name the state directory")
}

/// What is wanted of it.
pub fn wanted(matches: &ArgMatches) -> Result<Wanted, String> {
    let user = match matches.subcommand() {
        Some(("agentx-help", _)) => return Ok(Wanted::AgentxHelp),
        Some(("user", user)) => user.subcommand(),
        _ => None,
    };
    let path = |matches: &ArgMatches, id: &str| matches.get_one::<PathBuf>(id).cloned();
    let name = |matches: &ArgMatches| {
        let name = matches.get_one::<String>("name");
        name.cloned().unwrap_or_default()
    };
    match user {
        Some(("add", add)) => Ok(Wanted::Add(Add {
            name: name(add),
            auth: auth(add)?,
            privacy: privacy(add)?,
            of_engine: of_engine(add)?,
            passphrase_file: path(add, "passphrase-file"),
            config: path(add, "config"),
        })),
        Some(("remove", remove)) => Ok(Wanted::Remove {
            name: name(remove),
            config: path(remove, "config"),
        }),
        Some(("list", list)) => Ok(Wanted::List {
            config: path(list, "config"),
        }),
        _ => Err("user or agentx-help?".to_owned()),
    }
}

/// Keys alone can be for another engine.
fn of_engine(matches: &ArgMatches) -> Result<Option<Vec<u8>>, String> {
    let said = matches.get_one::<EngineId>("engine-id");
    match said {
        Some(_) if auth(matches)?.is_none() => {
            Err("--engine-id says what keys are for: leave it out, or --auth none".into())
        }
        said => Ok(said.map(|id| id.0.clone())),
    }
}

fn auth(matches: &ArgMatches) -> Result<Option<AuthProtocol>, String> {
    let said = matches.get_one::<String>("auth").map(String::as_str);
    match said.unwrap_or("SHA-256") {
        "none" if is_said(matches, "privacy") && privacy(matches)?.is_some() => {
            Err("privacy needs authentication: leave out --auth none, or say --privacy none".into())
        }
        "none" => Ok(None),
        protocol => protocol
            .parse::<AuthProtocol>()
            .map(Some)
            .map_err(|error| error.to_string()),
    }
}

fn is_said(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

fn privacy(matches: &ArgMatches) -> Result<Option<PrivacyProtocol>, String> {
    let said = matches.get_one::<String>("privacy").map(String::as_str);
    match said.unwrap_or("none") {
        "none" => Ok(None),
        protocol => protocol
            .parse::<PrivacyProtocol>()
            .map(Some)
            .map_err(|error| error.to_string()),
    }
}
