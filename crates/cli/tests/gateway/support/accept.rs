//! Servers that run on a thread of their own.

use super::ports;
use std::{
    future::Future,
    net::{SocketAddr, TcpListener},
    thread,
};
use tokio::net::TcpStream;

/// Starts a server that serves each connection with this function, until the process ends; returns its address.
pub fn accept<F: Future<Output: Send> + Send + 'static>(
    mut serve: impl FnMut(TcpStream) -> F + Send + 'static,
) -> SocketAddr {
    let address = SocketAddr::from(([127, 0, 0, 1], ports::free()));
    let listener = TcpListener::bind(address).expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
    });
    address
}
