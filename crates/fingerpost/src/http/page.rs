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
static FILES: &[File] = &[
    html("/", include_bytes!("page/index.html")),
    file(
        "/assets/style.css",
        "text/css; charset=utf-8",
        include_bytes!("page/style.css"),
    ),
    file(
        "/assets/icon.svg",
        "image/svg+xml",
        include_bytes!("page/icon.svg"),
    ),
    module("/assets/main.js", include_bytes!("page/main.js")),
    module("/assets/log.js", include_bytes!("page/log.js")),
    module("/assets/look.js", include_bytes!("page/look.js")),
    module("/assets/overview.js", include_bytes!("page/overview.js")),
    module("/assets/api.js", include_bytes!("page/api.js")),
    module("/assets/detail.js", include_bytes!("page/detail.js")),
    module("/assets/dom.js", include_bytes!("page/dom.js")),
    module("/assets/grid.js", include_bytes!("page/grid.js")),
    module("/assets/past.js", include_bytes!("page/past.js")),
    module("/assets/plot.js", include_bytes!("page/plot.js")),
    module("/assets/source.js", include_bytes!("page/source.js")),
    module("/assets/tables.js", include_bytes!("page/tables.js")),
];

const fn file(path: &'static str, media_type: &'static str, octets: &'static [u8]) -> File {
    File {
        path,
        media_type,
        octets,
    }
}

const fn html(path: &'static str, octets: &'static [u8]) -> File {
    file(path, "text/html; charset=utf-8", octets)
}

const fn module(path: &'static str, octets: &'static [u8]) -> File {
    file(path, "text/javascript; charset=utf-8", octets)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str) -> &'static str {
        let file = FILES.iter().find(|file| file.path == path).unwrap();
        std::str::from_utf8(file.octets).unwrap()
    }

    #[test]
    fn every_module_that_is_imported_is_served() {
        for file in FILES.iter().filter(|file| file.path.ends_with(".js")) {
            for import in text(file.path).split("from \"./").skip(1) {
                let name = import.split('"').next().unwrap();
                text(&format!("/assets/{name}"));
            }
        }
    }

    #[test]
    fn text_is_never_read_as_markup_and_nothing_comes_from_elsewhere() {
        for file in FILES {
            let text = text(file.path);
            for word in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
            ] {
                assert!(!text.contains(word), "{}: {word}", file.path);
            }
            let elsewhere = text.replace("http://www.w3.org/2000/svg", "");
            assert!(
                !elsewhere.contains("http://") && !elsewhere.contains("https://"),
                "{}",
                file.path
            );
        }
        let page = text("/");
        assert!(!page.contains("style=") && !page.contains("onclick"));
    }
}
