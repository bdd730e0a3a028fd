//! An address that is listened at, until a configuration leaves it out: then
//! its socket is closed, and whoever came by it is answered no more.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// An open address.
#[derive(Debug)]
pub struct Listening {
    /// As configured: what a later configuration calls it.
    configured: SocketAddr,
    /// Where it is.
    address: SocketAddr,
    closed: AtomicBool,
    close: Notify,
}

impl Listening {
    /// Of a socket that is bound as configured.
    pub fn new(configured: SocketAddr, listener: &TcpListener) -> Self {
        Self {
            configured,
            address: listener.local_addr().unwrap_or(configured),
            closed: AtomicBool::new(false),
            close: Notify::new(),
        }
    }

    /// As configured.
    pub fn configured(&self) -> SocketAddr {
        self.configured
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes it. From when this returns, no request that came by it is let
    /// in.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.close.notify_waiters();
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Waits until it is closed.
    pub async fn closed(&self) {
        // Told from now on, so that nothing is missed in between.
        let told = self.close.notified();
        if !self.is_closed() {
            told.await;
        }
    }
}
