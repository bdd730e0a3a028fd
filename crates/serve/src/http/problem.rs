//! What a refused request is told: `application/problem+json` (RFC 9457),
//! in words that say what to do.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use view::{AnswerError, BadQuestion};

/// The media type of what a refused request is told.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The status.
    pub status: StatusCode,
    /// What is wrong and what to do.
    pub detail: String,
    /// After how many seconds it may be tried again.
    pub retry_after_secs: Option<u32>,
    /// The connection ends with it.
    pub closes: bool,
    /// Where the method is another one: those that there are.
    pub allowed: &'static str,
}

#[derive(Serialize)]
struct Said<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'a str,
    status: u16,
    detail: &'a str,
}

impl Problem {
    /// Of a status, in words.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            retry_after_secs: None,
            closes: false,
            allowed: "GET, HEAD",
        }
    }

    /// 400.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 404.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// 503, to be tried again soon.
    pub fn busy(detail: impl Into<String>) -> Self {
        Self {
            retry_after_secs: Some(1),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        }
    }

    /// The same where other methods are allowed.
    pub fn allowing(self, allowed: &'static str) -> Self {
        Self { allowed, ..self }
    }

    /// The same, and the connection ends with it.
    pub fn closing(self) -> Self {
        Self {
            closes: true,
            ..self
        }
    }

    /// As JSON.
    pub fn json(&self) -> Vec<u8> {
        let said = Said {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or_default(),
            status: self.status.as_u16(),
            detail: &self.detail,
        };
        let mut json = serde_json::to_vec(&said).unwrap_or_default();
        json.push(b'\n');
        json
    }

    /// As a whole answer in octets that ends the connection: for where no
    /// request could be read.
    pub fn raw(&self) -> Vec<u8> {
        let json = self.json();
        let retry = match self.retry_after_secs {
            Some(secs) => format!("retry-after: {secs}\r\n"),
            None => String::new(),
        };
        let mut raw = format!(
            "HTTP/1.1 {} {}\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {}\r\n{retry}\
             cache-control: no-store\r\nconnection: close\r\n\r\n",
            self.status.as_u16(),
            self.status.canonical_reason().unwrap_or_default(),
            json.len()
        )
        .into_bytes();
        raw.extend_from_slice(&json);
        raw
    }
}

impl From<BadQuestion> for Problem {
    fn from(bad: BadQuestion) -> Self {
        let status = match bad {
            BadQuestion::NoSuchDevice(_)
            | BadQuestion::NoRoute { .. }
            | BadQuestion::NoRouteOf { .. } => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, bad.to_string())
    }
}

impl From<AnswerError> for Problem {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::BadQuestion(bad) => bad.into(),
            AnswerError::NoRoom => Self::busy(error.to_string()),
            AnswerError::Write(error) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.json()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(secs) = self.retry_after_secs {
            headers.insert(RETRY_AFTER, secs.into());
        }
        if self.closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                headers.insert(ALLOW, HeaderValue::from_static(self.allowed));
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_is_what_hyper_would_write() {
        let problem = Problem::busy("later");
        let raw = String::from_utf8(problem.raw()).unwrap();
        let (head, body) = raw.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
        assert!(head.contains(&format!("content-length: {}", body.len())));
        assert!(head.contains("retry-after: 1"));
        let said: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(
            (said["status"].as_u64(), said["detail"].as_str()),
            (Some(503), Some("later"))
        );
    }
}
