//! The page at `/` and its files at `/assets/…`: compiled in, nothing
//! fetched from elsewhere. The same for everybody, so no token is asked,
//! and they are compressed once. One is made of the list of columns.

mod columns;

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::sync::LazyLock;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    VARY, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::compressed;
use super::problem::Problem;

/// A file of the page.
#[derive(Clone)]
struct File {
    /// Its path.
    path: &'static str,
    media_type: &'static str,
    octets: Cow<'static, [u8]>,
}

/// All files: those that are written, and the one that is made.
static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let made = File {
        path: "/assets/columns.js",
        media_type: SCRIPT,
        octets: Cow::Owned(columns::script().into_bytes()),
    };
    WRITTEN.iter().cloned().chain([made]).collect()
});

/// What scripts are served as.
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The files that are written.
static WRITTEN: &[File] = &[
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
    module("/assets/flaps.js", include_bytes!("page/flaps.js")),
    module("/assets/nat.js", include_bytes!("page/nat.js")),
    module("/assets/overview.js", include_bytes!("page/overview.js")),
    module("/assets/api.js", include_bytes!("page/api.js")),
    module("/assets/chooser.js", include_bytes!("page/chooser.js")),
    module("/assets/detail.js", include_bytes!("page/detail.js")),
    module("/assets/dom.js", include_bytes!("page/dom.js")),
    module("/assets/grid.js", include_bytes!("page/grid.js")),
    module("/assets/past.js", include_bytes!("page/past.js")),
    module("/assets/plot.js", include_bytes!("page/plot.js")),
    module("/assets/source.js", include_bytes!("page/source.js")),
    module("/assets/suggest.js", include_bytes!("page/suggest.js")),
    module("/assets/tables.js", include_bytes!("page/tables.js")),
];

const fn file(path: &'static str, media_type: &'static str, octets: &'static [u8]) -> File {
    File {
        path,
        media_type,
        octets: Cow::Borrowed(octets),
    }
}

const fn html(path: &'static str, octets: &'static [u8]) -> File {
    file(path, "text/html; charset=utf-8", octets)
}

const fn module(path: &'static str, octets: &'static [u8]) -> File {
    file(path, SCRIPT, octets)
}

/// Scripts, styles and data come from here and nowhere else; nothing is
/// written into the page by a script's text, and nobody frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' \
                      data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// A file as it is sent.
struct Sent {
    etag: String,
    /// With gzip, if that is less.
    gzip: Option<Bytes>,
}

/// One for each file. Some milliseconds, once.
static SENT: LazyLock<Vec<Sent>> = LazyLock::new(|| FILES.iter().map(Sent::of).collect());

impl Sent {
    fn of(file: &File) -> Self {
        let mut hasher = DefaultHasher::new();
        file.octets.hash(&mut hasher);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        let written = gzip.write_all(&file.octets).and_then(|()| gzip.finish());
        let gzip = written.ok().map(Bytes::from);
        Self {
            etag: format!("{:016x}", hasher.finish()),
            gzip: gzip.filter(|gzip| gzip.len() < file.octets.len()),
        }
    }
}

/// Makes the files ready, so that nobody waits for it later.
pub fn prepare() {
    LazyLock::force(&SENT);
}

/// The file of a path.
pub fn serve(path: &str, headers: &HeaderMap) -> Response {
    let found = FILES.iter().zip(&*SENT).find(|(file, _)| file.path == path);
    let Some((file, sent)) = found else {
        return Problem::not_found("there is no such file; / is the page").into_response();
    };
    let gzip = sent.gzip.clone();
    let gzip = gzip.filter(|_| compressed::takes_gzip(headers));
    // Other octets are another representation (RFC 9110 §8.8.3.3).
    let coding = if gzip.is_some() { "-gzip" } else { "" };
    let etag = format!("\"{}{coding}\"", sent.etag);
    let known = headers
        .get(IF_NONE_MATCH)
        .and_then(|tags| tags.to_str().ok());
    let is_known = known.is_some_and(|tags| tags.contains(&etag));
    let is_coded = gzip.is_some() && !is_known;
    let mut response = match gzip {
        _ if is_known => Response::new(Body::empty()),
        Some(gzip) => Response::new(Body::from(gzip)),
        None => Response::new(Body::from(&*file.octets)),
    };
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let to = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, file.media_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-cache"),
        (VARY, "accept-encoding"),
        (X_FRAME_OPTIONS, "DENY"),
    ] {
        to.insert(name, HeaderValue::from_static(value));
    }
    if is_coded {
        to.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        to.insert(ETAG, etag);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::ACCEPT_ENCODING;

    fn text(path: &str) -> &'static str {
        let file = FILES.iter().find(|file| file.path == path).unwrap();
        std::str::from_utf8(&file.octets).unwrap()
    }

    fn asked(headers: &[(http::HeaderName, &str)]) -> Response {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.insert(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        serve("/assets/main.js", &all)
    }

    #[test]
    fn whoever_takes_gzip_gets_it_under_a_tag_of_its_own() {
        let plain = asked(&[]);
        let coded = asked(&[(ACCEPT_ENCODING, "deflate, gzip;q=0.5")]);
        assert!(!plain.headers().contains_key(CONTENT_ENCODING));
        assert_eq!(coded.headers()[CONTENT_ENCODING], "gzip");
        assert_ne!(plain.headers()[ETAG], coded.headers()[ETAG]);
        for response in [&plain, &coded] {
            assert_eq!(response.headers()[VARY], "accept-encoding");
        }
        let etag = coded.headers()[ETAG].to_str().unwrap();
        let known = asked(&[(ACCEPT_ENCODING, "gzip"), (IF_NONE_MATCH, etag)]);
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
        assert!(!known.headers().contains_key(CONTENT_ENCODING));
        let other = asked(&[(IF_NONE_MATCH, etag)]);
        assert_eq!(other.status(), StatusCode::OK);
        let refused = asked(&[(ACCEPT_ENCODING, "gzip;q=0, br")]);
        assert!(!refused.headers().contains_key(CONTENT_ENCODING));
    }

    #[test]
    fn what_is_compressed_is_the_same_file() {
        for (file, sent) in FILES.iter().zip(&*SENT) {
            let Some(gzip) = &sent.gzip else { continue };
            let mut plain = Vec::new();
            let mut gunzip = flate2::read::GzDecoder::new(&gzip[..]);
            std::io::Read::read_to_end(&mut gunzip, &mut plain).unwrap();
            assert!(plain == *file.octets, "{}", file.path);
        }
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
        for file in &*FILES {
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
