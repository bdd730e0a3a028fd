//! Connections to collectors: UDP, TCP, TLS. One that broke is made again
//! when there is something to send.

use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// How long a connection or a write may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// To where, and how.
#[derive(Debug, Clone)]
pub enum To {
    Udp(SocketAddr),
    Tcp(SocketAddr),
    /// With the name that the collector's certificate must have.
    Tls(SocketAddr, ServerName<'static>, Arc<ClientConfig>),
}

enum Open {
    Udp(UdpSocket),
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A connection, or where it will lead.
pub struct Connection {
    to: To,
    open: Option<Open>,
}

impl Connection {
    pub fn new(to: To) -> Self {
        Self { to, open: None }
    }

    /// Whether what is sent are bytes without bounds.
    pub fn is_stream(&self) -> bool {
        !matches!(self.to, To::Udp(_))
    }

    /// Sends all of it, or says why not; it is closed then. Waits for seconds
    /// at most.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let sent = self.try_send(bytes);
        if sent.is_err() {
            self.open = None;
        }
        sent.map_err(|error| format!("sending: {error}"))
    }

    fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.connect()?,
        };
        match self.open.insert(open) {
            Open::Udp(socket) => socket.send(bytes).map(drop),
            Open::Tcp(stream) => stream.write_all(bytes),
            Open::Tls(stream) => {
                stream.write_all(bytes)?;
                stream.flush()
            }
        }
    }

    fn connect(&self) -> std::io::Result<Open> {
        match &self.to {
            To::Udp(to) => {
                let any: SocketAddr = match to {
                    SocketAddr::V4(_) => ([0; 4], 0).into(),
                    SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
                };
                let socket = UdpSocket::bind(any)?;
                socket.connect(to)?;
                socket.set_write_timeout(Some(PATIENCE))?;
                Ok(Open::Udp(socket))
            }
            To::Tcp(to) => tcp(to).map(Open::Tcp),
            To::Tls(to, name, config) => {
                let stream = tcp(to)?;
                let session = ClientConnection::new(Arc::clone(config), name.clone());
                let session = session.map_err(std::io::Error::other)?;
                Ok(Open::Tls(Box::new(StreamOwned::new(session, stream))))
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(Open::Tls(stream)) = &mut self.open {
            // So that the collector knows that nothing was cut off.
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    }
}

fn tcp(to: &SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(to, PATIENCE)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
