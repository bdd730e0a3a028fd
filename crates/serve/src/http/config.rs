//! `[http]` of the configuration: where it is asked, by whom, how much.
//!
//! [`SECTION`] says what each key is for.
//!
//! An address beyond loopback is only listened at with a certificate, its
//! key and a token.
//!
//! Read by the program; used by [`super::Service`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::setting::{Section, Setting, Without};

/// Addresses to listen at, at most.
const MAX_LISTEN: usize = 16;
/// Names of the host at most.
const MAX_HOSTS: usize = 1_000;

/// What the keys are for.
pub const SECTION: Section = Section {
    head: "[http]",
    about: "Questions, events, metrics and a page for people, over HTTP.",
    settings: &[
        Setting::usual(
            "listen",
            "[\"127.0.0.1:9797\"]",
            "TCP addresses to listen at, 16 at most; none: []. Beyond loopback only with \
             certificate_file, key_file and token_file.",
        ),
        Setting::new(
            "hosts",
            Without::Value("[]"),
            "[\"router.example.net\"]",
            "Names that requests may call this host by, beside its addresses and localhost; \
             requests by other names are refused.",
        ),
        Setting::new(
            "token_file",
            Without::Words("no token is asked"),
            "\"/etc/fingerpost/token\"",
            "A file with the token that requests must show, as `Authorization: Bearer TOKEN`.",
        ),
        Setting::new(
            "certificate_file",
            Without::Words("no TLS"),
            "\"/etc/fingerpost/certificate.pem\"",
            "A file with the certificates for TLS (PEM), the own one first. Belongs together with \
             key_file.",
        ),
        Setting::new(
            "key_file",
            Without::Words("no TLS"),
            "\"/etc/fingerpost/key.pem\"",
            "A file with the key of the certificate (PEM). Nobody else should be able to read it.",
        ),
        Setting::usual(
            "netns_without_token",
            "false",
            "Tells other namespaces than the daemon's own without a token, too.",
        ),
        Setting::usual(
            "sql_beyond_loopback",
            "false",
            "Answers statements of SQL (POST /v1/sql) beyond loopback, too.",
        ),
        Setting::usual("clients", "2048", "Connections at a time, 1 to 1048576."),
        Setting::usual(
            "event_streams",
            "1024",
            "Event streams among them, 1 to 1048576.",
        ),
        Setting::usual(
            "requests_per_sec",
            "10000",
            "Requests a second from one address (of IPv6: one /64) or one user of this host, in \
             bursts of as many; 1 to 1073741824.",
        ),
        Setting::usual(
            "header_timeout_secs",
            "10",
            "Seconds for the head of a request to arrive, and for a connection to be without \
             requests; 1 to 3600.",
        ),
        Setting::usual(
            "write_timeout_secs",
            "30",
            "Seconds without the client taking anything of its answer; 1 to 3600.",
        ),
    ],
};

/// HTTP.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// TCP addresses it listens at.
    pub listen: Vec<SocketAddr>,
    /// Names that requests may call this host by (`Host`).
    pub hosts: Vec<String>,
    /// File with the token that requests must have.
    pub token_file: Option<PathBuf>,
    /// File with the certificates, PEM, the own one first.
    pub certificate_file: Option<PathBuf>,
    /// File with the key of the certificate, PEM.
    pub key_file: Option<PathBuf>,
    /// Connections at a time.
    pub clients: usize,
    /// Of them event streams.
    pub event_streams: usize,
    /// Requests a second from one address (IPv6: one /64), in bursts of as
    /// many.
    pub requests_per_sec: u32,
    /// Other namespaces than the daemon's own are told without a token.
    pub netns_without_token: bool,
    /// Statements of SQL are answered beyond loopback, too.
    pub sql_beyond_loopback: bool,
    /// For the head of a request to arrive, and to wait for the next one.
    pub header_timeout_secs: u64,
    /// Without the client taking anything of its answer.
    pub write_timeout_secs: u64,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 9797))],
            hosts: Vec::new(),
            token_file: None,
            certificate_file: None,
            key_file: None,
            clients: 2048,
            event_streams: 1024,
            requests_per_sec: 10_000,
            netns_without_token: false,
            sql_beyond_loopback: false,
            header_timeout_secs: 10,
            write_timeout_secs: 30,
        }
    }
}

impl Http {
    /// For the head of a request to arrive.
    pub fn header_timeout(&self) -> Duration {
        Duration::from_secs(self.header_timeout_secs)
    }

    /// Without the client taking anything.
    pub fn write_timeout(&self) -> Duration {
        Duration::from_secs(self.write_timeout_secs)
    }

    fn check(&self) -> Result<(), String> {
        if self.listen.len() > MAX_LISTEN {
            return Err(format!("`listen`: {MAX_LISTEN} addresses at most"));
        }
        if self.hosts.len() > MAX_HOSTS {
            return Err(format!("`hosts`: {MAX_HOSTS} names at most"));
        }
        if let Some(host) = self.hosts.iter().find(|host| !is_name(host)) {
            return Err(format!(
                "`hosts`: `{host}` is no name of a host: write it without scheme and port"
            ));
        }
        if self.certificate_file.is_some() != self.key_file.is_some() {
            return Err("`certificate_file` and `key_file` belong together".to_owned());
        }
        for (key, value, most) in [
            ("clients", self.clients as u64, 1 << 20),
            ("event_streams", self.event_streams as u64, 1 << 20),
            ("requests_per_sec", self.requests_per_sec.into(), 1 << 30),
            ("header_timeout_secs", self.header_timeout_secs, 3_600),
            ("write_timeout_secs", self.write_timeout_secs, 3_600),
        ] {
            if !(1..=most).contains(&value) {
                return Err(format!("`{key}`: {value} is not between 1 and {most}"));
            }
        }
        let beyond = self.listen.iter().find(|at| !at.ip().is_loopback());
        match beyond {
            Some(at) if self.certificate_file.is_none() || self.token_file.is_none() => {
                Err(format!(
                    "`listen`: {at} is beyond loopback, where others can listen in: set \
                     `certificate_file`, `key_file` and `token_file`, or stay at 127.0.0.1 and \
                     let a proxy or ssh carry it"
                ))
            }
            _ => Ok(()),
        }
    }
}

fn is_name(host: &str) -> bool {
    let legal = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_');
    (1..=253).contains(&host.len()) && host.bytes().all(legal)
}

/// Reads the section and checks what the fields alone cannot say.
pub fn section<'de, D: Deserializer<'de>>(from: D) -> Result<Http, D::Error> {
    let http = Http::deserialize(from)?;
    http.check().map_err(D::Error::custom)?;
    Ok(http)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let http: Http = toml::from_str(text).unwrap();
        http.check().unwrap_err()
    }

    #[test]
    fn the_default_is_loopback_and_good() {
        let http = Http::default();
        assert!(http.listen.iter().all(|at| at.ip().is_loopback()));
        http.check().unwrap();
    }

    #[test]
    fn beyond_loopback_only_with_certificate_and_token() {
        let outside = "listen = ['0.0.0.0:443']\n";
        let certificate = "certificate_file = '/c'\nkey_file = '/k'\n";
        let token = "token_file = '/t'\n";
        assert!(refusal(outside).contains("beyond loopback"));
        assert!(refusal(&format!("{outside}{certificate}")).contains("beyond loopback"));
        assert!(refusal(&format!("{outside}{token}")).contains("beyond loopback"));
        let http: Http = toml::from_str(&format!("{outside}{certificate}{token}")).unwrap();
        http.check().unwrap();
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_its_key() {
        for (text, says) in [
            ("clients = 0", "`clients`"),
            ("write_timeout_secs = 0", "`write_timeout_secs`"),
            ("hosts = ['https://x']", "`hosts`"),
            ("key_file = '/k'", "`certificate_file`"),
        ] {
            assert!(refusal(text).contains(says), "{text}");
        }
        assert!(toml::from_str::<Http>("listn = []").is_err());
    }
}
