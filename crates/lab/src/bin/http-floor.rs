//! The floor of `cargo xtask bench http`: axum over hyper on one thread,
//! as the daemon has it, with a constant answer and nothing else.
//!
//! `http-floor ADDRESS`: answers until it is killed.

use std::env;

use anyhow::{Context, Result};
use axum::Router;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

/// As long as a row of a route.
const ANSWER: &str = "[{\"dst\":\"10.1.0.0/16\",\"gateway\":\"10.9.0.7\",\"dev\":\"up0\",\
                      \"protocol\":\"bgp\",\"metric\":20,\"flags\":[]}]\n";

fn main() -> Result<()> {
    let address = env::args().nth(1).context("usage: http-floor ADDRESS")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let router: Router = Router::new().route("/", get(|| async { ANSWER }));
        let listener = TcpListener::bind(address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let service = TowerToHyperService::new(router.clone());
            tokio::spawn(async move {
                let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                // A client that goes is no news.
                let _ = served.await;
            });
        }
    })
}
