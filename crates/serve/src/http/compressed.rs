//! Compression, when asked: so many answers at a time as memory allows,
//! the others go as they are.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::HeaderMap;
use http::header::ACCEPT_ENCODING;
use http::request::Parts;
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::OwnedSemaphorePermit;
use tower_http::CompressionLevel;
use tower_http::compression::{CompressionLayer, Predicate};

use super::shared::{Shared, source_of};
use crate::budget::Lease;

/// Answers compressed at a time, at most: it takes processor time.
pub const MAX_COMPRESSED: usize = 64;
/// What compressing one takes of memory: its window and tables.
const COMPRESSING_BYTES: usize = 336 << 10;
/// Less is not worth it.
const MIN_OCTETS: u64 = 1024;

/// The right to compress an answer, for as long as it is under way.
pub type Permit = Option<Arc<(OwnedSemaphorePermit, Lease)>>;

/// An answer that may be compressed.
#[derive(Debug, Clone)]
struct MayBe;

/// The layer that does it.
pub fn layer() -> CompressionLayer<WhereMarked> {
    CompressionLayer::new()
        .gzip(true)
        .quality(CompressionLevel::Fastest)
        .compress_when(WhereMarked)
}

/// Compresses what is marked.
#[derive(Debug, Clone, Copy)]
pub struct WhereMarked;

impl Predicate for WhereMarked {
    fn should_compress<B: HttpBody>(&self, response: &http::Response<B>) -> bool {
        let worth = response.body().size_hint().exact();
        response.extensions().get::<MayBe>().is_some()
            && worth.is_none_or(|octets| octets >= MIN_OCTETS)
    }
}

/// The right to compress the answer to a request that asks for it; `None`:
/// it does not, too many are compressed already, or there is no memory for
/// it.
pub fn permit(shared: &Shared, request: &Parts) -> Permit {
    if !takes_gzip(&request.headers) {
        return None;
    }
    let permit = Arc::clone(&shared.compressed).try_acquire_owned().ok()?;
    let source = source_of(request);
    let lease = shared.budget.lease(source, COMPRESSING_BYTES)?;
    Some(Arc::new((permit, lease)))
}

/// Whether an answer may be sent with gzip (RFC 9110 §12.5.3).
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let said = headers.get_all(ACCEPT_ENCODING).iter();
    said.filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|one| {
            let mut parts = one.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let quality = parts.find_map(|part| part.strip_prefix("q="));
            let refused = quality.is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0));
            !refused && name.eq_ignore_ascii_case("gzip")
        })
}

/// Marks an answer as one that may be compressed.
pub fn mark(response: &mut Response, may_be: bool) {
    if may_be {
        response.extensions_mut().insert(MayBe);
    }
}

/// A body that keeps the right as long as it lives.
pub fn body<B>(body: B, permit: &Permit) -> Body
where
    B: HttpBody<Data = Bytes, Error = axum::Error> + Send + Unpin + 'static,
{
    Body::new(Holding {
        body,
        _permit: permit.clone(),
    })
}

struct Holding<B> {
    body: B,
    _permit: Permit,
}

impl<B: HttpBody + Unpin> HttpBody for Holding<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
