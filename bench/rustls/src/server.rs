//! The server: one thread that waits for all connections with epoll.

use crate::Outcome;
use mio::{
    Events, Interest, Poll, Token,
    net::{TcpListener, TcpStream},
};
use rustls::{
    ServerConfig, ServerConnection,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::NoServerSessionStorage,
};
use std::{
    collections::HashMap,
    io::{ErrorKind, Read, Write},
    net::SocketAddr,
    sync::Arc,
};

const LISTENER: Token = Token(0);
const END_OF_REQUEST: &[u8] = b"\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";

/// Serves until the process ends.
pub(crate) fn serve(address: SocketAddr, chain: &str, key: &str) -> Outcome<()> {
    let config = Arc::new(config(chain, key)?);
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1024);
    let mut listener = TcpListener::bind(address)?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut connections = HashMap::new();
    let mut next = LISTENER.0;
    loop {
        poll.poll(&mut events, None)?;
        for event in &events {
            if event.token() != LISTENER {
                let is_open = connections.get_mut(&event.token()).is_some_and(Connection::advance);
                if !is_open {
                    connections.remove(&event.token());
                }
                continue;
            }
            while let Ok((mut socket, _)) = listener.accept() {
                next += 1;
                socket.set_nodelay(true)?;
                poll.registry().register(
                    &mut socket,
                    Token(next),
                    Interest::READABLE | Interest::WRITABLE,
                )?;
                let tls = ServerConnection::new(Arc::clone(&config))?;
                connections.insert(Token(next), Connection { socket, tls, request: Vec::new() });
            }
        }
    }
}

/// Returns the configuration: rustls' defaults, without tickets and sessions.
fn config(chain: &str, key: &str) -> Outcome<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(chain)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

struct Connection {
    socket: TcpStream,
    tls: ServerConnection,
    /// Received bytes of the next request.
    request: Vec<u8>,
}

impl Connection {
    /// Reads, responds and writes until the socket would block. Returns whether the connection stays open.
    fn advance(&mut self) -> bool {
        let is_open = self.receive();
        if !is_open {
            self.tls.send_close_notify();
        }
        self.send() && is_open
    }

    fn receive(&mut self) -> bool {
        loop {
            match self.tls.read_tls(&mut self.socket) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
            if self.tls.process_new_packets().is_err() || !self.respond() {
                return false;
            }
        }
    }

    /// Responds to complete requests. Returns whether the client may send more.
    fn respond(&mut self) -> bool {
        let mut bytes = [0; 4096];
        loop {
            match self.tls.reader().read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => self.request.extend_from_slice(&bytes[..count]),
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
            while let Some(end) = self.request.windows(4).position(|window| window == END_OF_REQUEST) {
                self.request.drain(..end + END_OF_REQUEST.len());
                if self.tls.writer().write_all(RESPONSE).is_err() {
                    return false;
                }
            }
        }
    }

    fn send(&mut self) -> bool {
        while self.tls.wants_write() {
            if let Err(error) = self.tls.write_tls(&mut self.socket) {
                return error.kind() == ErrorKind::WouldBlock;
            }
        }
        true
    }
}
