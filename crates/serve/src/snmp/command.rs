//! `fingerpost snmp …`: users of version 3, and what an existing agent needs
//! to have fingerpost behind it.
//!
//! Passphrases are asked for without an echo, or read from a file or a
//! pipe; never from the command line, which everybody on the host can read.

mod definition;

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use snmp::usm::{AuthProtocol, PrivacyProtocol};

use super::hex::digits;
use super::state;
use super::users::{self, Passphrases, Users};
pub use definition::{command, wanted};

/// A passphrase longer than this is none.
const MAX_PASSPHRASE_BYTES: u64 = 1_024;

/// What is wanted.
#[derive(Debug, Clone)]
pub enum Command {
    /// A user's keys are made and stored.
    Add(Add),
    /// A user is removed.
    Remove {
        /// Whose.
        name: String,
        /// The configuration that names the state directory.
        config: Option<PathBuf>,
    },
    /// The users are listed.
    List {
        /// The configuration that names the state directory.
        config: Option<PathBuf>,
    },
    /// What an existing snmpd needs.
    AgentxHelp,
}

/// A user to add.
#[derive(Debug, Clone)]
pub struct Add {
    /// His name.
    pub name: String,
    /// For authentication; without one he has no keys.
    pub auth: Option<AuthProtocol>,
    /// For privacy.
    pub privacy: Option<PrivacyProtocol>,
    /// The engine that the keys are for: that of a receiver of informs.
    /// `None`: this one.
    pub of_engine: Option<Vec<u8>>,
    /// File with the passphrase, and in its second line the one for
    /// privacy, if that is another; `-`: standard input.
    pub passphrase_file: Option<PathBuf>,
    /// The configuration that names the state directory.
    pub config: Option<PathBuf>,
}

/// Does it.
///
/// `named` tells the state directory that a configuration names, if it
/// does.
pub fn run(command: &Command, named: Named<'_>, out: &mut impl Write) -> Result<()> {
    match command {
        Command::Add(add) => self::add(add, named, out),
        Command::Remove { name, config } => {
            if !users::remove(&directory(named, config.as_deref())?, name)? {
                bail!("there is no SNMP user `{name}`; `fingerpost snmp user list` shows them");
            }
            writeln!(out, "SNMP user `{name}` is removed. {RELOAD}")?;
            Ok(())
        }
        Command::List { config } => list(named, config.as_deref(), out),
        Command::AgentxHelp => Ok(out.write_all(AGENTX_HELP.as_bytes())?),
    }
}

const RELOAD: &str = "A running daemon takes it in with SIGHUP.";

/// The state directory that a configuration names; `None`: the usual one.
pub type Named<'a> = &'a dyn Fn(Option<&Path>) -> Result<Option<PathBuf>>;

fn directory(named: Named<'_>, config: Option<&Path>) -> Result<PathBuf> {
    state::directory(named(config)?.as_deref())
}

fn add(add: &Add, named: Named<'_>, out: &mut impl Write) -> Result<()> {
    let directory = directory(named, add.config.as_deref())?;
    let Some(auth) = add.auth else {
        let replaced = users::add_without_keys(&directory, &add.name)?;
        let done = if replaced {
            "has no keys any more"
        } else {
            "is added without keys"
        };
        writeln!(
            out,
            "SNMP user `{0}` {done}: anybody may say that he is {0}. He is \
             answered where [[snmp.user]] names him with level = \"noAuthNoPriv\". {RELOAD}",
            add.name
        )?;
        return Ok(());
    };
    let passphrases = match &add.passphrase_file {
        Some(path) if path == Path::new("-") => read(io::stdin().lock()),
        Some(path) => File::open(path)
            .map_err(anyhow::Error::from)
            .and_then(read)
            .with_context(|| path.display().to_string()),
        None => ask(add.privacy.is_some()),
    }?;
    let replaced = users::add(
        &directory,
        &add.name,
        auth,
        add.privacy,
        add.of_engine.as_deref(),
        &passphrases,
    )?;
    let protocols = match add.privacy {
        Some(privacy) => format!("{} and {}", auth.name(), privacy.name()),
        None => auth.name().to_owned(),
    };
    let done = if replaced { "changed" } else { "added" };
    let engine = add.of_engine.as_deref();
    let engine = engine.map_or(String::new(), |id| {
        format!(" for the engine 0x{}", digits(id))
    });
    writeln!(
        out,
        "SNMP user `{}` is {done}, with {protocols}{engine}, in {}. {RELOAD}",
        add.name,
        directory.display()
    )?;
    Ok(())
}

fn list(named: Named<'_>, config: Option<&Path>, out: &mut impl Write) -> Result<()> {
    let directory = directory(named, config)?;
    let engine = state::engine(&directory)?;
    for line in Users::load(&directory, &engine.engine_id)?.lines() {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// One line, or two.
fn read(from: impl Read) -> Result<Passphrases> {
    let mut lines = BufReader::new(from.take(2 * MAX_PASSPHRASE_BYTES)).lines();
    let auth = lines.next().transpose()?.unwrap_or_default();
    let privacy = lines.next().transpose()?.filter(|line| !line.is_empty());
    Ok(Passphrases { auth, privacy })
}

/// Asks the user, twice each.
fn ask(with_privacy: bool) -> Result<Passphrases> {
    if !io::stdin().is_terminal() {
        bail!(
            "there is no terminal to ask for a passphrase at; name a file with \
             --passphrase-file, or `-` for standard input"
        );
    }
    let auth = ask_twice("Passphrase for authentication: ")?;
    let privacy = if with_privacy {
        Some(ask_twice("Passphrase for privacy (empty: the same): ")?)
    } else {
        None
    };
    Ok(Passphrases {
        auth,
        privacy: privacy.filter(|said| !said.is_empty()),
    })
}

fn ask_twice(prompt: &str) -> Result<String> {
    let said = ask_once(prompt)?;
    if !said.is_empty() && ask_once("Once more: ")? != said {
        bail!("the two differ");
    }
    Ok(said)
}

fn ask_once(prompt: &str) -> Result<String> {
    let mut terminal = io::stderr().lock();
    write!(terminal, "{prompt}")?;
    terminal.flush()?;
    let stdin = io::stdin();
    let _silence = Silence::over(&stdin)?;
    let mut line = String::new();
    stdin
        .lock()
        .take(MAX_PASSPHRASE_BYTES)
        .read_line(&mut line)?;
    writeln!(terminal)?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// A terminal without an echo, until dropped.
struct Silence(Termios);

impl Silence {
    fn over(stdin: &io::Stdin) -> Result<Self> {
        let before = tcgetattr(stdin).context("cannot ask the terminal")?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(stdin, OptionalActions::Flush, &silent).context("cannot silence the terminal")?;
        Ok(Self(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // A terminal that is gone echoes nothing any more.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}

/// What net-snmp's snmpd needs; the names are those of 5.9.3.
const AGENTX_HELP: &str = "\
# 1. In /etc/snmp/snmpd.conf: be an AgentX master, at a socket that root's
#    fingerpost may use.
master agentx
agentXSocket /var/agentx/master
agentXPerms 0660 0550 root root

# 2. On snmpd's command line (Debian: ExecStart in `systemctl edit snmpd`):
#    without its own modules for what fingerpost answers; they read routes,
#    neighbours, interfaces and addresses into caches of their own, again
#    and again. fingerpost registers with priority 100 (snmpd's modules have
#    127), so it is asked in any case; this saves the master's work. The
#    first three are those that Debian switches off.
-I -smux,mteTrigger,mteTriggerConf,inetCidrRouteTable,ipCidrRouteTable,var_route,\
inetNetToMediaTable,at,ifTable,ifXTable,interface,ipAddressTable,ipAddressPrefixTable,\
ipDefaultRouterTable,ipSystemStatsTable,ipIfStatsTable,ip,ip_scalars,ipv6,\
dot3StatsTable,hr_network

# 3. In /etc/fingerpost/fingerpost.toml, then `systemctl reload fingerpost` (SIGHUP):
[snmp]
agentx = \"/var/agentx/master\"
listen = []        # nobody asks fingerpost but the master

# `fingerpost status` says whether the master opened a session.

# What it costs: snmpd asks its subagents for one row at a time, and waits for
# each. A walk of a large table through it takes a hundred times as long as
# one that asks fingerpost; a million routes take hours. snmpd passes whole
# requests on instead, as fast as fingerpost answers them, where it is told so
# (and 1. and 2. are not needed for what it passes on). In
# /etc/snmp/snmpd.conf:
#
#   proxy -v 2c -c public 127.0.0.1:1161 .1.3.6.1.2.1.4.24
#   proxy -v 2c -c public 127.0.0.1:1161 .1.3.6.1.2.1.2.2
#   proxy -v 2c -c public 127.0.0.1:1161 .1.3.6.1.2.1.31
#
# with `listen = [\"127.0.0.1:1161\"]` in [snmp]. Times (ifLastChange) are then
# told by fingerpost's sysUpTime, not by snmpd's.
";
