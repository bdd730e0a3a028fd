//! The last that a client hears: why, and the end of the connection, each
//! within a bound. For `serve`.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;

use super::problem::Problem;

/// How long a client that was refused may go on sending before the
/// connection is reset.
const LINGER: Duration = Duration::from_secs(1);
/// Bytes of it that are thrown away.
const MAX_LINGER_BYTES: usize = 1 << 20;

/// Says a problem, and ends.
pub async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, problem: &Problem) {
    say(stream, problem).await;
    linger(stream).await;
}

/// Says a problem, as far as the client takes it at once.
async fn say<S: AsyncWrite + Unpin>(stream: &mut S, problem: &Problem) {
    let raw = problem.raw();
    let write = poll_fn(|cx| Pin::new(&mut *stream).poll_write(cx, &raw));
    // Whoever takes nothing is told nothing.
    let _ = timeout(LINGER, write).await;
}

/// Closes our side.
pub async fn shut_down<S: AsyncWrite + Unpin>(stream: &mut S) {
    let shutdown = poll_fn(|cx| Pin::new(&mut *stream).poll_shutdown(cx));
    let _ = timeout(LINGER, shutdown).await;
}

/// Throws away what a refused client still sends, for a while: closing on
/// it would reset the connection, and take the refusal back.
pub async fn linger<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) {
    shut_down(stream).await;
    let mut left = MAX_LINGER_BYTES;
    // Not in the connection itself: few linger.
    let mut thrown = vec![0; 4096];
    let _ = timeout(LINGER, async {
        while left > 0 {
            let mut into = ReadBuf::new(&mut thrown);
            let read: io::Result<()> =
                poll_fn(|cx| Pin::new(&mut *stream).poll_read(cx, &mut into)).await;
            match (read, into.filled().len()) {
                (Err(_), _) | (Ok(()), 0) => return,
                (Ok(()), read) => left = left.saturating_sub(read),
            }
        }
    })
    .await;
}
