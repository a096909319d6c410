//! HTTP/1.1 of the origin, a thread for each connection.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
};

use super::responses::{Responses, WEBSOCKET_ACCEPT, is_measured};
use crate::fair::priority::{lower_priority, raise_priority};

/// Serves a connection until its end.
pub(super) fn serve(connection: &TcpStream, responses: &Responses) -> Option<()> {
    let mut reader = BufReader::new(connection);
    let mut has_priority = true;
    loop {
        let request = Request::read(&mut reader, |is_measured| {
            if has_priority != is_measured {
                has_priority = is_measured;
                if is_measured { raise_priority() } else { lower_priority() }
            }
        })?;
        if request.is_websocket {
            return discard_messages(connection, &mut reader);
        }
        respond(connection, responses, responses.length(&request.path))?;
    }
}

fn respond(connection: &TcpStream, responses: &Responses, length: usize) -> Option<()> {
    let mut writer = io::BufWriter::new(connection);
    write!(writer, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n").ok()?;
    for piece in responses.body(length) {
        writer.write_all(&piece).ok()?;
    }
    writer.flush().ok()
}

/// Accepts a WebSocket, and reads it to its end.
fn discard_messages(mut connection: &TcpStream, reader: &mut impl Read) -> Option<()> {
    let response = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {WEBSOCKET_ACCEPT}\r\n\r\n"
    );
    connection.write_all(response.as_bytes()).ok()?;
    io::copy(reader, &mut io::sink()).ok().map(drop)
}

struct Request {
    path: String,
    is_websocket: bool,
}

impl Request {
    /// Reads a request with its body. Calls `begins` before the body, with whether it is the well-behaved client's.
    fn read(reader: &mut impl BufRead, begins: impl FnOnce(bool)) -> Option<Self> {
        let first = line(reader)?;
        let path = first.split(' ').nth(1)?.to_owned();
        begins(is_measured(&path));
        let (mut length, mut is_chunked, mut is_websocket) = (0, false, false);
        loop {
            let field = line(reader)?.to_ascii_lowercase();
            match field.split_once(':') {
                None => break,
                Some(("content-length", value)) => length = value.trim().parse().ok()?,
                Some(("transfer-encoding", _)) => is_chunked = true,
                Some(("upgrade", value)) => is_websocket = value.trim() == "websocket",
                Some(_) => {}
            }
        }
        match is_chunked {
            true => while chunk(reader)? > 0 {},
            false => skip(reader, length)?,
        }
        Some(Self { path, is_websocket })
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
        assert_eq!(Request::read(&mut reader, |_| ()).unwrap().path, "/a");
        assert_eq!(Request::read(&mut reader, |_| ()).unwrap().path, "/large");
        assert!(Request::read(&mut reader, |_| ()).is_none());
    }
}
