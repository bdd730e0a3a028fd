//! What a request with a statement of SQL has to be, looked at before it is
//! let in. What becomes of it is `sql`'s; called by `access_policy`.

use http::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Method, StatusCode};

use super::problem::Problem;

/// Where it is asked.
pub const PATH: &str = "/v1/sql";
/// Octets of a statement at most.
pub const MAX_STATEMENT: usize = 64 << 10;
/// Statements at a time.
pub const AT_ONCE: usize = 4;

/// Whether a request may send a statement; else what is wrong with it.
pub fn check(request: &Parts) -> Result<(), Problem> {
    if request.method != Method::POST {
        let problem = Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "a statement is sent: use POST, with the statement as the body",
        );
        return Err(problem.allowing("POST").closing());
    }
    let length = length(&request.headers);
    match length {
        Some(length) if length <= MAX_STATEMENT as u64 => Ok(()),
        Some(_) => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the statement is longer than {} KiB", MAX_STATEMENT >> 10),
        )
        .closing()),
        None => Err(Problem::new(
            StatusCode::LENGTH_REQUIRED,
            "the length of the statement is expected, as Content-Length",
        )
        .closing()),
    }
}

fn length(headers: &HeaderMap) -> Option<u64> {
    if headers.contains_key(TRANSFER_ENCODING) {
        return None;
    }
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
