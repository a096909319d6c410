//! The servers behind the measured one. Each reads a request to its end, and then responds: the origin with a small or
//! a large body, the authorization server and the server of mirrored requests with none.
//!
//! Over HTTP/1.1 a thread serves a connection; for requests of the well-behaved client it runs at its priority. Over
//! HTTP/2, where a connection has requests of all clients, one thread serves all at that priority.

mod http1;
mod http2;
mod responses;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread,
};

use nix::sys::socket::{Backlog, listen, setsockopt, sockopt::SndBuf};

use self::responses::Responses;
pub(super) use self::responses::WEBSOCKET_ACCEPT;
use super::{priority::raise_priority, tls::KERNEL_BUFFER};
use crate::rival::Protocol;

/// A running origin. It serves until the process ends.
#[derive(Debug)]
pub struct Origin {
    /// Address that it listens on.
    pub address: SocketAddr,
}

/// Length of the response to `/large`.
const LARGE: usize = 64 << 20;
const SMALL: usize = 1_400;
/// Number of connections that wait to be accepted.
const BACKLOG: i32 = 4096;
const STACK: usize = 128 << 10;

impl Origin {
    /// Starts an origin on a port that the kernel selects.
    pub fn start(protocol: Protocol) -> io::Result<Self> {
        Self::responding(protocol, Responses::new(SMALL, LARGE)?)
    }

    /// Starts a server whose responses have no body, over HTTP/1.1.
    pub fn without_bodies() -> io::Result<Self> {
        Self::responding(Protocol::Http1, Responses::new(0, 0)?)
    }

    fn responding(protocol: Protocol, responses: Responses) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        // `bind` has set a backlog of 128, which a thousand uploads at once exceed.
        listen(&listener, Backlog::new(BACKLOG)?)?;
        // Accepted sockets inherit it. The memory of these ends would be another machine's, and is limited here.
        setsockopt(&listener, SndBuf, &KERNEL_BUFFER)?;
        match protocol {
            Protocol::Http1 => drop(thread::spawn(move || accept(&listener, &Arc::new(responses)))),
            Protocol::Http2 => http2::start(listener, responses)?,
        }
        Ok(Self { address })
    }
}

/// Serves all connections over HTTP/1.1.
fn accept(listener: &TcpListener, responses: &Arc<Responses>) {
    // The threads of connections inherit it.
    raise_priority();
    for connection in listener.incoming().map_while(Result::ok) {
        let responses = Arc::clone(responses);
        let serve = move || http1::serve(&connection, &responses);
        // Without a thread the connection is closed, which the server reports.
        let _ = thread::Builder::new().stack_size(STACK).spawn(serve);
    }
}
