//! The well-behaved client: small requests on kept connections, at a fixed rate or a fixed number of them.

use std::{
    io::{self, Read},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use boring::ssl::SslStream;
use hdrhistogram::Histogram;

use super::{
    priority::raise_priority,
    tls::{receive, send, tcp, tls},
};

/// Requests per second on all connections together.
const RATE: f64 = 200.0;
const CONNECTIONS: u32 = 8;
/// Time after which a request has failed, at the fixed rate.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time after which a request has failed where requests are counted, on a busy machine.
const LONG_PATIENCE: Duration = Duration::from_secs(120);
/// Address in a network of its own.
const SOURCE: Ipv4Addr = Ipv4Addr::new(127, 10, 0, 1);
const REQUEST: &[u8] = b"GET /well-behaved HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Number of requests of a run.
#[derive(Clone, Copy)]
pub(super) enum Amount {
    /// Requests at the fixed rate for this time.
    Time(Duration),
    /// This number on each connection, one after another.
    Requests(u32),
}

/// Client of one server, with its open connections.
pub(super) struct WellBehaved {
    connections: Vec<Connection>,
}

struct Connection {
    address: SocketAddr,
    /// `None` after a failure, until the next request.
    open: Option<SslStream<TcpStream>>,
}

/// Results of the client.
pub(super) struct Seen {
    /// Time from when a request was due, or was sent by an idle client, to the end of its response, microseconds.
    pub(super) latency_us: Histogram<u64>,
    /// Number of requests without a complete response with status 200.
    pub(super) failed: u64,
}

impl WellBehaved {
    /// Opens all connections.
    pub(super) fn open(address: SocketAddr) -> io::Result<Self> {
        let open = |_| Ok(Connection { address, open: Some(connect(address)?) });
        Ok(Self { connections: (0..CONNECTIONS).map(open).collect::<io::Result<_>>()? })
    }

    /// Makes requests on all connections at once.
    pub(super) fn run(&mut self, amount: Amount) -> Result<Seen> {
        let start = Instant::now();
        let parts = thread::scope(|scope| {
            let all: Vec<_> = (0..)
                .zip(&mut self.connections)
                .map(|(number, connection)| {
                    scope.spawn(move || match amount {
                        Amount::Time(time) => {
                            raise_priority();
                            connection.run_for(number, start, time)
                        }
                        Amount::Requests(count) => connection.run_count(count),
                    })
                })
                .collect();
            all.into_iter()
                .map(|thread| thread.join().map_err(|_| anyhow!("a client has panicked"))?)
                .collect::<Result<Vec<_>>>()
        })?;
        let mut seen = Seen { latency_us: Histogram::new(3)?, failed: 0 };
        for part in parts {
            seen.latency_us.add(&part.latency_us)?;
            seen.failed += part.failed;
        }
        Ok(seen)
    }
}

impl Connection {
    /// Makes the requests of this connection, each when it is due or when the previous one has ended.
    fn run_for(&mut self, number: u32, start: Instant, time: Duration) -> Result<Seen> {
        let interval = Duration::from_secs_f64(f64::from(CONNECTIONS) / RATE);
        let mut due = start + interval * number / CONNECTIONS;
        let mut seen = Seen { latency_us: Histogram::new(3)?, failed: 0 };
        while due < start + time {
            self.record(wait_until(due), PATIENCE, &mut seen)?;
            due += interval;
        }
        Ok(seen)
    }

    /// Makes this number of requests, one after another.
    fn run_count(&mut self, count: u32) -> Result<Seen> {
        let mut seen = Seen { latency_us: Histogram::new(3)?, failed: 0 };
        for _ in 0..count {
            self.record(Instant::now(), LONG_PATIENCE, &mut seen)?;
        }
        Ok(seen)
    }

    /// Makes a request that was due at `due`, and records its latency or its failure.
    fn record(&mut self, due: Instant, patience: Duration, seen: &mut Seen) -> Result<()> {
        match self.request(patience) {
            Ok(()) => seen.latency_us.record(due.elapsed().as_micros() as u64)?,
            Err(_) => {
                self.open = None;
                seen.failed += 1;
            }
        }
        Ok(())
    }

    fn request(&mut self, patience: Duration) -> io::Result<()> {
        let until = Until::after(patience);
        if self.open.is_none() {
            self.open = Some(connect(self.address)?);
        }
        let Some(stream) = &mut self.open else { return Err(io::ErrorKind::NotConnected.into()) };
        send(stream, REQUEST, || until.is_over())?;
        read_response(stream, until)
    }
}

/// Sleeps until a request is due; returns since when it counts as waiting. A request that is late because of the
/// previous response has waited since it was due. A late timer of the client is not the server's: a virtual machine
/// whose cores are all busy can be paused for milliseconds.
fn wait_until(due: Instant) -> Instant {
    let early = due.saturating_duration_since(Instant::now());
    if early.is_zero() {
        return due;
    }
    thread::sleep(early);
    Instant::now()
}

fn connect(address: SocketAddr) -> io::Result<SslStream<TcpStream>> {
    tls(tcp(SOURCE, address)?, "http/1.1")
}

/// Reads a response with status 200 and a Content-Length to its end.
fn read_response(stream: &mut impl Read, until: Until) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let (mut bytes, mut room) = (Vec::new(), [0; 4096]);
    loop {
        if until.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let count = receive(stream, &mut room)?;
        bytes.extend_from_slice(&room[..count]);
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        if !head.starts_with("http/1.1 200") {
            return Err(invalid());
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.and_then(|length| length.trim().parse().ok()).ok_or_else(invalid)?;
        if bytes.len() >= end + 4 + length {
            return Ok(());
        }
    }
}

/// Counts down to a time, for loops that check a condition on the way.
#[derive(Clone, Copy)]
struct Until(Instant);

impl Until {
    fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    fn is_over(self) -> bool {
        Instant::now() >= self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_responses_with_status_200_count() {
        let until = Until::after(Duration::from_secs(60));
        let read = |text: &str| read_response(&mut text.as_bytes(), until).is_ok();
        assert!(read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
        assert!(!read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok"));
        assert!(!read("HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nok"));
    }
}
