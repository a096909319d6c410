//! Servers that run on threads of their own.

use super::ports;
use std::{
    future::Future,
    net::{self, SocketAddr, TcpListener},
    thread,
};
use tokio::net::TcpStream;

/// Starts a server that serves each connection with this function, on a thread for each, until the process ends; returns
/// its address.
pub fn accept_blocking<R>(serve: impl Fn(net::TcpStream) -> R + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for tcp in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            thread::spawn(move || drop(serve(tcp)));
        }
    });
    address
}

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
