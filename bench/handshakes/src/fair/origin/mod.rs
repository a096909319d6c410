//! The servers behind the measured one. Each reads a request to its end, and then responds: the origin with a small or
//! a large body, the authorization server and the server of mirrored requests with none.
//!
//! A thread at the priority of the well-behaved client serves all connections, which have requests of all clients. Over
//! HTTP/1.1 it leaves the requests of misbehaving clients to another thread, of ordinary priority, once it has their
//! head.

mod http1;
mod http2;
mod responses;

use std::{
    io,
    net::{SocketAddr, TcpListener},
};

use nix::sys::socket::{Backlog, listen, setsockopt, sockopt::SndBuf};

use self::responses::Responses;
pub(super) use self::responses::WEBSOCKET_ACCEPT;
use super::tls::KERNEL_BUFFER;
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
            Protocol::Http1 => http1::start(listener, responses)?,
            Protocol::Http2 => http2::start(listener, responses)?,
        }
        Ok(Self { address })
    }
}
