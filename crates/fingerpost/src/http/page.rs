//! The page at `/` and its files at `/assets/…`: compiled in, nothing
//! fetched from elsewhere. The same for everybody, so no token is asked.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::problem::Problem;

/// A file of the page.
struct File {
    /// Its path.
    path: &'static str,
    media_type: &'static str,
    octets: &'static [u8],
}

/// All files.
static FILES: &[File] = &[File {
    path: "/",
    media_type: "text/html; charset=utf-8",
    octets: include_bytes!("page/index.html"),
}];

/// Scripts, styles and data come from here and nowhere else; nothing is
/// written into the page by a script's text, and nobody frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' \
                      data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// The file of a path.
pub fn serve(path: &str, headers: &HeaderMap) -> Response {
    let Some(file) = FILES.iter().find(|file| file.path == path) else {
        return Problem::not_found("there is no such file; / is the page").into_response();
    };
    let mut hasher = DefaultHasher::new();
    file.octets.hash(&mut hasher);
    let etag = format!("\"{:016x}\"", hasher.finish());
    let known = headers
        .get(IF_NONE_MATCH)
        .and_then(|tags| tags.to_str().ok());
    let is_known = known.is_some_and(|tags| tags.contains(&etag));
    let mut response = if is_known {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        Response::new(Body::from(file.octets))
    };
    let to = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, file.media_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-cache"),
        (X_FRAME_OPTIONS, "DENY"),
    ] {
        to.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        to.insert(ETAG, etag);
    }
    response
}
