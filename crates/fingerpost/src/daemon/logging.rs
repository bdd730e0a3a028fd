//! What the daemon logs, and where: standard error.

use std::env;
use std::io::{self, IsTerminal};

use anyhow::{Result, anyhow};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, registry, reload};

use crate::config;

/// Logged unless said otherwise.
const USUAL: &str = "info";

/// Changes what is logged.
pub struct Logging {
    /// What the command line or `RUST_LOG` said: it stands above the file.
    said: Option<String>,
    change: Box<dyn Fn(Targets) -> Result<()>>,
}

/// Starts to log: as the command line says, else `RUST_LOG`, else the
/// configuration.
pub fn start(command_line: Option<&str>, configured: Option<&str>) -> Result<Logging> {
    let said = command_line
        .map(str::to_owned)
        .or_else(|| env::var("RUST_LOG").ok().filter(|said| !said.is_empty()));
    let (filter, handle) = reload::Layer::new(filter(said.as_deref().or(configured))?);
    let lines = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        // It would say so on standard error, and panic if that is closed.
        .log_internal_errors(false);
    let change = Box::new(move |filter| Ok(handle.reload(filter)?));
    registry()
        .with(filter)
        .with(lines)
        .try_init()
        .map_err(|error| anyhow!("cannot log: {error}"))?;
    Ok(Logging { said, change })
}

fn filter(text: Option<&str>) -> Result<Targets> {
    let text = text.unwrap_or(USUAL);
    config::check_log_filter(text).map_err(|message| anyhow!("what to log, `{text}`: {message}"))
}

impl Logging {
    /// Follows a new configuration.
    pub fn reconfigure(&self, configured: Option<&str>) -> Result<()> {
        (self.change)(filter(self.said.as_deref().or(configured))?)
    }
}
