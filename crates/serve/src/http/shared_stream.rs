//! A connection that is read and written at one place and looked at from
//! another: whether the client has closed its side.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// A connection. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub struct SharedStream(Arc<TcpStream>);

impl SharedStream {
    /// Of a connection.
    pub fn new(stream: TcpStream) -> Self {
        Self(Arc::new(stream))
    }

    /// Waits until the client has closed its side, or the connection broke;
    /// what it sent before that may lie unread.
    pub async fn closed(&self) {
        // Whoever waits for urgent data hears of the end as well, and not of
        // what is there to be read.
        while let Ok(ready) = self.0.ready(Interest::PRIORITY).await {
            if ready.is_read_closed() {
                return;
            }
            let nobody_reads_it = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
            let _ = self.0.try_io(Interest::PRIORITY, nobody_reads_it);
        }
    }
}

impl AsyncRead for SharedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read(into.initialize_unfilled()) {
                Ok(read) => {
                    into.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl SharedStream {
    fn poll_with(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match write(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }
}

impl AsyncWrite for SharedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(cx, |stream| stream.try_write(octets))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(cx, |stream| stream.try_write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = socket2::SockRef::from(&*self.0).shutdown(std::net::Shutdown::Write);
        match done {
            // The client was quicker.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            done => Poll::Ready(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::io::Write as _;
    use std::pin::pin;

    use tokio::net::TcpListener;

    use super::*;

    /// Without a clock: nothing here can look again after a while.
    #[test]
    fn the_end_of_a_client_is_told_though_what_it_sent_lies_unread() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let to = listener.local_addr().unwrap();
            let mut client = std::net::TcpStream::connect(to).unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            client.write_all(b"unread").unwrap();
            stream.readable().await.unwrap();
            let stream = SharedStream::new(stream);
            let mut closed = pin!(stream.closed());
            let is_closed = poll_fn(|cx| Poll::Ready(closed.as_mut().poll(cx).is_ready()));
            assert!(!is_closed.await, "it is there");
            client.shutdown(std::net::Shutdown::Write).unwrap();
            closed.await;
        });
    }
}
