//! What every request passes before it is answered: is it a question, is
//! it meant for this host, may this one ask, and not too often.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use http::header::{
    AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, ORIGIN, TRANSFER_ENCODING,
};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};

use super::problem::Problem;
use super::query::MAX_QUERY_BYTES;
use super::statement;
use super::token::Token;
use crate::source::Source;

/// Bytes of a path at most.
const MAX_PATH_BYTES: usize = 1024;
/// Sources whose requests are counted, at most.
const MAX_SOURCES: usize = 4096;

/// Who may ask for what.
#[derive(Debug)]
pub struct AccessPolicy {
    /// Names of the host, in lower case.
    pub hosts: Vec<String>,
    /// What must be shown.
    pub token: Option<Token>,
    /// Other namespaces than the daemon's own are told without one.
    pub netns_without_token: bool,
}

/// What a request has shown that was let in, and may be told. Goes with it: what
/// is read of a configuration meanwhile says nothing of what it has shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LetIn {
    /// The token.
    pub has_token: bool,
    /// It may be answered from other namespaces than the daemon's own.
    pub tells_others: bool,
}

impl LetIn {
    /// Of a request; one that was not looked at has shown nothing.
    pub fn of(request: &Parts) -> Self {
        request.extensions.get().copied().unwrap_or_default()
    }
}

impl AccessPolicy {
    /// Lets a request in, or says why not.
    pub fn check(&self, request: &Parts) -> Result<LetIn, Problem> {
        let states = request.uri.path() == statement::PATH;
        if states {
            statement::check(request)?;
        } else if request.method != Method::GET && request.method != Method::HEAD {
            return Err(Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "only questions are answered here: use GET",
            )
            .closing());
        }
        if !states {
            no_body(&request.headers)?;
        }
        let path = request.uri.path();
        if path.len() > MAX_PATH_BYTES
            || request
                .uri
                .query()
                .is_some_and(|q| q.len() > MAX_QUERY_BYTES)
        {
            return Err(Problem::new(
                StatusCode::URI_TOO_LONG,
                format!(
                    "the path has more than {MAX_PATH_BYTES} or the query more than \
                     {MAX_QUERY_BYTES} octets: ask for less at once"
                ),
            ));
        }
        self.is_meant(request)?;
        let tells = is_api(path);
        if tells {
            own_site(&request.headers)?;
            self.authorize(&request.headers)?;
        }
        let has_token = tells && self.token.is_some();
        Ok(LetIn {
            has_token,
            tells_others: has_token || self.netns_without_token,
        })
    }

    /// Against DNS rebinding: a page of elsewhere whose name is made to
    /// point here still calls the host by its own name.
    fn is_meant(&self, request: &Parts) -> Result<(), Problem> {
        let mut hosts = request.headers.get_all(HOST).iter();
        let (host, second) = (hosts.next(), hosts.next());
        let (Some(host), None) = (host, second) else {
            return Err(Problem::bad_request("one Host header is expected"));
        };
        let host = host.to_str().unwrap_or_default();
        let absolute = request.uri.authority().map(|authority| authority.as_str());
        for name in [Some(host), absolute].into_iter().flatten() {
            if !self.is_own(name) {
                return Err(Problem::new(
                    StatusCode::MISDIRECTED_REQUEST,
                    "this host is asked by its address, as localhost, or by a name that \
                     `hosts` in `[http]` of the configuration lists",
                ));
            }
        }
        Ok(())
    }

    fn is_own(&self, authority: &str) -> bool {
        let name = if let Some(v6) = authority.strip_prefix('[') {
            match v6.split_once(']') {
                Some((address, port)) if is_port(port) => {
                    return address.parse::<std::net::Ipv6Addr>().is_ok();
                }
                _ => return false,
            }
        } else {
            match authority.split_once(':') {
                Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
                Some(_) => return false,
                None => authority,
            }
        };
        if name.parse::<std::net::Ipv4Addr>().is_ok() {
            return true;
        }
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        name == "localhost" || name.ends_with(".localhost") || self.hosts.contains(&name)
    }

    fn authorize(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        let offered = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let offered = offered.and_then(|value| {
            let (scheme, rest) = value.split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"Bearer ").then_some(rest)
        });
        match offered {
            Some(offered) if token.is(offered) => Ok(()),
            _ => Err(Problem::new(
                StatusCode::UNAUTHORIZED,
                "the token is missing or another one: send `Authorization: Bearer …` with what \
                 `token_file` in `[http]` of the configuration holds",
            )),
        }
    }
}

/// Whether a path tells something of this host: all but the page's own
/// files, which are the same everywhere, and `/healthz`.
fn is_api(path: &str) -> bool {
    path.starts_with("/v1/") || matches!(path, "/metrics" | "/openapi.json")
}

fn is_port(rest: &str) -> bool {
    rest.is_empty()
        || rest
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

/// A question has no body; one that is sent is not read.
fn no_body(headers: &HeaderMap) -> Result<(), Problem> {
    let length = headers.get(CONTENT_LENGTH).map(HeaderValue::as_bytes);
    if headers.contains_key(TRANSFER_ENCODING) || length.is_some_and(|length| length != b"0") {
        return Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "a question has no body: ask by path and query",
        )
        .closing());
    }
    Ok(())
}

/// A browser says where a request comes from; pages of elsewhere get
/// nothing.
fn own_site(headers: &HeaderMap) -> Result<(), Problem> {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let elsewhere = matches!(site, Some(b"cross-site" | b"same-site"));
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let foreign = origin.is_some_and(|origin| {
        let of = origin.split_once("://").map(|(_, rest)| rest);
        of.is_none() || of != host
    });
    if elsewhere || foreign {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "a page of another site asks: only pages of this host may",
        ));
    }
    Ok(())
}

/// Headers of every answer. Nothing of it is for pages of elsewhere.
pub const ALWAYS: [(HeaderName, HeaderValue); 3] = [
    (
        http::header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        http::header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    ),
];

/// Counts requests by where they come from: each source has a bucket that
/// holds the requests of a second and fills evenly.
#[derive(Debug)]
pub struct Rates {
    per_sec: f64,
    buckets: Mutex<HashMap<Source, Bucket>>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Rates {
    /// Requests a second of one source at most.
    pub fn new(per_sec: u32) -> Self {
        Self {
            per_sec: per_sec.into(),
            buckets: Mutex::default(),
        }
    }

    /// Counts a request; whether it may be answered. O(1); every some
    /// thousand sources O(sources).
    pub fn take(&self, source: Source, now: Instant) -> Result<(), Problem> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_SOURCES && !buckets.contains_key(&source) {
            // Full buckets say nothing; if none is, all sources are busy
            // and begin anew.
            buckets.retain(|_, bucket| bucket.at(now, self.per_sec) < self.per_sec);
            if buckets.len() >= MAX_SOURCES {
                buckets.clear();
            }
        }
        let bucket = buckets.entry(source).or_insert(Bucket {
            tokens: self.per_sec,
            filled: now,
        });
        bucket.tokens = bucket.at(now, self.per_sec);
        bucket.filled = now;
        if bucket.tokens < 1.0 {
            return Err(Problem {
                retry_after_secs: Some(1),
                ..Problem::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    format!(
                        "more than {} requests a second from one address or user: ask for more rows at \
                         once, or raise `requests_per_sec` in `[http]` of the configuration",
                        self.per_sec
                    ),
                )
            });
        }
        bucket.tokens -= 1.0;
        Ok(())
    }
}

impl Bucket {
    fn at(self, now: Instant, per_sec: f64) -> f64 {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        (self.tokens + passed * per_sec).min(per_sec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn access_policy() -> AccessPolicy {
        AccessPolicy {
            hosts: vec!["router.example.net".to_owned()],
            token: None,
            netns_without_token: false,
        }
    }

    fn parts(headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().uri("/v1/links");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn the_host_is_called_by_its_own_names_only() {
        for own in [
            "127.0.0.1:9797",
            "localhost",
            "LOCALHOST:80",
            "[::1]:9797",
            "[::1]",
            "192.0.2.1",
            "router.example.net.",
            "Router.Example.Net:443",
        ] {
            assert!(
                access_policy().check(&parts(&[("host", own)])).is_ok(),
                "{own}"
            );
        }
        for other in [
            "",
            "evil.example",
            "evil.example:9797",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "[::1].evil.example",
            "[::1",
            "127.0.0.1:x",
            "user@127.0.0.1",
        ] {
            let refused = access_policy()
                .check(&parts(&[("host", other)]))
                .unwrap_err();
            assert_eq!(refused.status, StatusCode::MISDIRECTED_REQUEST, "{other}");
        }
        assert_eq!(
            access_policy().check(&parts(&[])).unwrap_err().status,
            StatusCode::BAD_REQUEST
        );
        let two = parts(&[("host", "localhost"), ("host", "localhost")]);
        assert!(access_policy().check(&two).is_err());
    }

    #[test]
    fn what_a_request_has_shown_goes_with_it() {
        let shown = |netns_without_token| {
            let policy = AccessPolicy {
                netns_without_token,
                ..access_policy()
            };
            policy.check(&parts(&[("host", "localhost")])).unwrap()
        };
        assert_eq!(shown(false), LetIn::default());
        let open = LetIn {
            tells_others: true,
            ..LetIn::default()
        };
        assert_eq!(shown(true), open);
        let mut request = parts(&[]);
        assert_eq!(LetIn::of(&request), LetIn::default());
        request.extensions.insert(open);
        assert_eq!(LetIn::of(&request), open);
    }

    #[test]
    fn pages_of_elsewhere_and_bodies_are_refused() {
        let host = ("host", "localhost:9797");
        for (header, status) in [
            (("origin", "http://evil.example"), 403),
            (("origin", "null"), 403),
            (("sec-fetch-site", "cross-site"), 403),
            (("content-length", "5"), 413),
            (("transfer-encoding", "chunked"), 413),
        ] {
            let refused = access_policy().check(&parts(&[host, header])).unwrap_err();
            assert_eq!(refused.status.as_u16(), status, "{header:?}");
        }
        for header in [
            ("origin", "http://localhost:9797"),
            ("sec-fetch-site", "same-origin"),
            ("content-length", "0"),
        ] {
            assert!(
                access_policy().check(&parts(&[host, header])).is_ok(),
                "{header:?}"
            );
        }
    }

    #[test]
    fn a_source_has_so_many_requests_a_second_and_others_have_theirs() {
        let rates = Rates::new(3);
        let now = Instant::now();
        let one = Source::User(1);
        for _ in 0..3 {
            rates.take(one, now).unwrap();
        }
        assert_eq!(rates.take(one, now).unwrap_err().status.as_u16(), 429);
        rates.take(Source::User(2), now).unwrap();
        rates.take(one, now + Duration::from_millis(400)).unwrap();
        assert!(rates.take(one, now + Duration::from_millis(400)).is_err());
        for n in 0..3 * MAX_SOURCES as u32 {
            rates.take(Source::of(n.to_be_bytes().into()), now).unwrap();
        }
        assert!(rates.buckets.lock().unwrap().len() <= MAX_SOURCES);
    }
}
