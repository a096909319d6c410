//! The origin behind the servers: reads each request to its end, and then responds. A thread serves a connection; for
//! requests of the well-behaved client it runs at its priority.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use nix::sys::socket::{Backlog, listen, setsockopt, sockopt::SndBuf};

use super::{
    priority::{lower_priority, raise_priority},
    tls::KERNEL_BUFFER,
};

/// Length of the response to `/large`.
const LARGE: usize = 64 << 20;
const SMALL: usize = 1_400;
/// Number of connections that wait to be accepted.
const BACKLOG: i32 = 4096;
const STACK: usize = 128 << 10;

/// A running origin. It serves until the process ends.
#[derive(Debug)]
pub struct Origin {
    /// Address that it listens on.
    pub address: SocketAddr,
}

impl Origin {
    /// Starts it on a port that the kernel selects.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        // `bind` has set a backlog of 128, which a thousand uploads at once exceed.
        listen(&listener, Backlog::new(BACKLOG)?)?;
        // Accepted sockets inherit it. The memory of these ends would be another machine's, and is limited here.
        setsockopt(&listener, SndBuf, &KERNEL_BUFFER)?;
        thread::spawn(move || {
            // The threads of connections inherit it.
            raise_priority();
            for connection in listener.incoming().map_while(Result::ok) {
                // Without a thread the connection is closed, which the server reports.
                let _ = thread::Builder::new().stack_size(STACK).spawn(move || serve(&connection));
            }
        });
        Ok(Self { address })
    }
}

fn serve(connection: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(connection);
    let mut has_priority = true;
    loop {
        let request = Request::read(&mut reader, |is_well_behaved| {
            if has_priority != is_well_behaved {
                has_priority = is_well_behaved;
                if is_well_behaved { raise_priority() } else { lower_priority() }
            }
        })?;
        let length = if request.is_large { LARGE } else { SMALL };
        let mut writer = io::BufWriter::new(connection);
        write!(writer, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").ok()?;
        let piece = [b'x'; 16 << 10];
        let mut left = length;
        while left > 0 {
            let count = left.min(piece.len());
            writer.write_all(&piece[..count]).ok()?;
            left -= count;
        }
        writer.flush().ok()?;
    }
}

struct Request {
    is_large: bool,
}

impl Request {
    /// Reads a request with its body. Calls `begins` before the body, with whether it is the well-behaved client's.
    fn read(reader: &mut impl BufRead, begins: impl FnOnce(bool)) -> Option<Self> {
        let first = line(reader)?;
        begins(first.contains(" /well-behaved"));
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let field = line(reader)?.to_ascii_lowercase();
            match field.split_once(':') {
                None => break,
                Some(("content-length", value)) => length = value.trim().parse().ok()?,
                Some(("transfer-encoding", _)) => is_chunked = true,
                Some(_) => {}
            }
        }
        match is_chunked {
            true => while chunk(reader)? > 0 {},
            false => skip(reader, length)?,
        }
        Some(Self { is_large: first.contains(" /large") })
    }
}

/// Reads a chunk, and returns its length.
fn chunk(reader: &mut impl BufRead) -> Option<u64> {
    let length = u64::from_str_radix(line(reader)?.split(';').next()?.trim(), 16).ok()?;
    skip(reader, length)?;
    line(reader)?;
    Some(length)
}

fn skip(reader: &mut impl BufRead, length: u64) -> Option<()> {
    let skipped = io::copy(&mut reader.take(length), &mut io::sink()).ok()?;
    (skipped == length).then_some(())
}

/// Reads a line without its end; `None` when the connection has ended.
fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    (reader.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_to_their_end() {
        let chunked = "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let sized = "GET /large HTTP/1.1\r\nContent-Length: 2\r\n\r\nxy";
        let both = [chunked, sized].concat();
        let mut reader = both.as_bytes();
        assert!(!Request::read(&mut reader, |_| ()).unwrap().is_large);
        assert!(Request::read(&mut reader, |_| ()).unwrap().is_large);
        assert!(Request::read(&mut reader, |_| ()).is_none());
    }
}
