//! One misbehaving client: its connections, and common ways to use them.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use boring::ssl::SslStream;

use crate::fair::tls::{TICK, receive, send, tcp, tls};

/// A misbehaving client.
pub(super) struct Client<'a> {
    pub(super) server: SocketAddr,
    pub(super) stop: &'a AtomicBool,
    pub(super) counts: &'a Counts,
}

/// Counts of misbehaving connections.
#[derive(Debug, Default)]
pub(in crate::fair) struct Counts {
    /// Number of connections that were opened; of a kind that sends Initials alone, the number of these.
    opened: AtomicU64,
    /// Number of connections that the server ended or refused.
    ended: AtomicU64,
}

/// Address of all misbehaving clients, in a network of its own.
pub(super) const SOURCE: Ipv4Addr = Ipv4Addr::new(127, 66, 0, 1);
/// Pause of slow clients, and before a closed connection is opened again.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

impl Counts {
    /// Returns the number of connections that were opened.
    pub(in crate::fair) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Returns how often the server ended or refused a connection.
    pub(in crate::fair) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }
}

impl Client<'_> {
    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Counts a connection that was opened.
    pub(super) fn count(&self) {
        self.counts.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that the server ended or refused.
    pub(super) fn count_end(&self) {
        self.counts.ended.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn tcp(&self) -> io::Result<TcpStream> {
        let stream = tcp(SOURCE, self.server)?;
        self.count();
        Ok(stream)
    }

    pub(super) fn http1(&self) -> io::Result<SslStream<TcpStream>> {
        tls(self.tcp()?, "http/1.1")
    }

    pub(super) fn send(&self, stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
        send(stream, bytes, || self.is_over())
    }

    /// Reads and discards what arrives, until the end.
    pub(super) fn hold(&self, mut stream: impl Read) -> io::Result<()> {
        while !self.is_over() {
            receive(&mut stream, &mut [0; 4096])?;
        }
        Ok(())
    }

    /// Reads nothing, until the end.
    pub(super) fn ignore(&self) {
        while !self.is_over() {
            thread::sleep(TICK);
        }
    }

    /// Sends bytes again and again, and discards what arrives.
    pub(super) fn flood(
        &self,
        mut stream: SslStream<TcpStream>,
        mut next: impl FnMut() -> Vec<u8>,
    ) -> io::Result<()> {
        stream.get_ref().set_read_timeout(Some(Duration::from_micros(1)))?;
        while !self.is_over() {
            let bytes = next();
            self.send(&mut stream, &bytes)?;
            receive(&mut stream, &mut [0; 16 << 10])?;
        }
        Ok(())
    }

    /// Sends bytes in large intervals, and discards what arrives.
    pub(super) fn trickle(&self, mut stream: SslStream<TcpStream>, bytes: &[u8]) -> io::Result<()> {
        while !self.is_over() {
            self.send(&mut stream, bytes)?;
            receive(&mut stream, &mut [0; 4096])?;
        }
        Ok(())
    }
}
