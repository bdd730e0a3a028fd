//! The options that say where records go.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueHint};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::ipfix::Ipfix;
use super::journal::{Journal, Limits};
use super::place::Place;
use super::stream::{Connection, To};
use super::syslog::Syslog;
use super::{Log, place};

/// Events that wait to be taken from the engine.
const EVENTS: usize = 1 << 16;

/// Where records go, of who had which ports.
#[derive(Debug, Clone, Default, Args)]
pub struct Options {
    /// Directory for a journal of who had which ports (see `nat who`)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    log_journal: Option<PathBuf>,
    /// Mebibytes of a file of the journal
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=4096))]
    log_journal_size: u64,
    /// Files of the journal; the oldest goes when there are more
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(2..=65536))]
    log_journal_files: u32,
    /// A collector of syslog messages (RFC 5424): udp://HOST:PORT,
    /// tcp://HOST:PORT or tls://HOST:PORT; may be given several times
    #[arg(long, value_name = "URL")]
    log_syslog: Vec<String>,
    /// File of the certificates (PEM) that a collector's must be signed by
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    log_ca: Option<PathBuf>,
    /// A collector of IPFIX (RFC 7011, 8158) over UDP, HOST:PORT; may be given
    /// several times
    #[arg(long, value_name = "HOST:PORT")]
    log_ipfix: Vec<String>,
    /// Write each session as well, where somebody insists: very many
    #[arg(long)]
    log_sessions: bool,
}

impl Options {
    /// Room for events in the engine, as far as somebody takes them: of
    /// blocks, of sessions.
    pub fn events(&self) -> (usize, usize) {
        let is_any =
            self.log_journal.is_some() || !self.log_syslog.is_empty() || !self.log_ipfix.is_empty();
        match (is_any, self.log_sessions) {
            (false, _) => (0, 0),
            (true, false) => (EVENTS, 0),
            (true, true) => (EVENTS, EVENTS),
        }
    }

    /// Where the journal is.
    pub fn journal(&self) -> Option<&Path> {
        self.log_journal.as_deref()
    }

    /// What one option says without the other that it is for.
    fn check(&self) -> anyhow::Result<()> {
        if self.log_sessions && self.events() == (0, 0) {
            bail!("--log-sessions needs --log-journal, --log-syslog or --log-ipfix");
        }
        let has_tls = self.log_syslog.iter().any(|url| url.starts_with("tls://"));
        if self.log_ca.is_some() && !has_tls {
            bail!("--log-ca is for --log-syslog tls://HOST:PORT");
        }
        Ok(())
    }

    /// Opens all places and starts their threads.
    pub fn open(&self) -> anyhow::Result<Log> {
        self.check()?;
        let mut places = Vec::new();
        if let Some(directory) = &self.log_journal {
            let limits = Limits {
                file_bytes: self.log_journal_size << 20,
                files: self.log_journal_files as usize,
            };
            let journal = Journal::new(directory, limits);
            let journal =
                journal.with_context(|| format!("opening the journal {}", directory.display()))?;
            let name = format!("journal {}", directory.display());
            places.push(start(name, Box::new(journal))?);
        }
        let host = host();
        for url in &self.log_syslog {
            let to = self
                .to(url)
                .with_context(|| format!("--log-syslog {url}"))?;
            let syslog = Syslog::new(Connection::new(to), host.clone());
            places.push(start(format!("syslog {url}"), Box::new(syslog))?);
        }
        for collector in &self.log_ipfix {
            let to = address(collector).with_context(|| format!("--log-ipfix {collector}"))?;
            let ipfix = Ipfix::new(Connection::new(To::Udp(to)), 1);
            places.push(start(format!("ipfix {collector}"), Box::new(ipfix))?);
        }
        Ok(Log { places })
    }

    fn to(&self, url: &str) -> anyhow::Result<To> {
        let Some((kind, to)) = url.split_once("://") else {
            bail!("say how: udp://{url}, tcp://{url} or tls://{url}");
        };
        match kind {
            "udp" => Ok(To::Udp(address(to)?)),
            "tcp" => Ok(To::Tcp(address(to)?)),
            "tls" => {
                let name = to.rsplit_once(':').map_or(to, |(name, _)| name);
                let name = ServerName::try_from(name.to_owned());
                let name = name.map_err(|_| anyhow!("`{to}` has no name of a host"))?;
                let Some(ca) = &self.log_ca else {
                    bail!("tls:// needs --log-ca FILE: whom to believe");
                };
                Ok(To::Tls(address(to)?, name, Arc::new(tls(ca)?)))
            }
            other => bail!("`{other}` is not udp, tcp or tls"),
        }
    }
}

fn start(name: String, writer: Box<dyn place::Writer>) -> anyhow::Result<Place> {
    Place::start(name, writer).context("starting a thread that writes records")
}

fn address(text: &str) -> anyhow::Result<SocketAddr> {
    let mut found = text
        .to_socket_addrs()
        .with_context(|| format!("`{text}` is not HOST:PORT"))?;
    found
        .next()
        .ok_or_else(|| anyhow!("`{text}` has no address"))
}

fn tls(ca: &Path) -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let reading = || format!("reading {}", ca.display());
    for certificate in CertificateDer::pem_file_iter(ca).with_context(reading)? {
        roots
            .add(certificate.with_context(reading)?)
            .with_context(reading)?;
    }
    if roots.is_empty() {
        bail!("{} has no certificate", ca.display());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("setting up TLS")?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// This machine's name, as messages have it.
fn host() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    let fits = |byte: &u8| byte.is_ascii_graphic();
    match name.is_empty() || !name.as_bytes().iter().all(fits) {
        true => "-".to_owned(),
        false => name.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_would_do_nothing_is_refused() {
        let sessions = Options {
            log_sessions: true,
            ..Options::default()
        };
        let ca = Options {
            log_ca: Some("ca.pem".into()),
            log_syslog: vec!["udp://127.0.0.1:514".to_owned()],
            ..Options::default()
        };
        for (options, needs) in [(sessions, "--log-journal"), (ca, "tls://")] {
            let error = options.open().unwrap_err().to_string();
            assert!(error.contains(needs), "{error}");
        }
    }
}
