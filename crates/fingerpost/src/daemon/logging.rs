//! What the daemon logs, and where: standard error.

use std::env;
use std::io::{self, IsTerminal};

use anyhow::{Result, anyhow};
use tracing_subscriber::EnvFilter;

use crate::config;

/// Logged unless said otherwise.
const USUAL: &str = "info";

/// Changes what is logged.
pub struct Logging {
    /// What the command line or `RUST_LOG` said: it stands above the file.
    said: Option<String>,
    change: Box<dyn Fn(EnvFilter) -> Result<()>>,
}

/// Starts to log: as the command line says, else `RUST_LOG`, else the
/// configuration.
pub fn start(command_line: Option<&str>, configured: Option<&str>) -> Result<Logging> {
    let said = command_line
        .map(str::to_owned)
        .or_else(|| env::var("RUST_LOG").ok().filter(|said| !said.is_empty()));
    let subscriber = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        // It would say so on standard error, and panic if that is closed.
        .log_internal_errors(false)
        .with_env_filter(filter(said.as_deref().or(configured))?)
        .with_filter_reloading();
    let handle = subscriber.reload_handle();
    let change = Box::new(move |filter| Ok(handle.reload(filter)?));
    subscriber
        .try_init()
        .map_err(|error| anyhow!("cannot log: {error}"))?;
    Ok(Logging { said, change })
}

fn filter(text: Option<&str>) -> Result<EnvFilter> {
    let text = text.unwrap_or(USUAL);
    config::check_log_filter(text).map_err(|message| anyhow!("what to log, `{text}`: {message}"))
}

impl Logging {
    /// Follows a new configuration.
    pub fn reconfigure(&self, configured: Option<&str>) -> Result<()> {
        (self.change)(filter(self.said.as_deref().or(configured))?)
    }
}
