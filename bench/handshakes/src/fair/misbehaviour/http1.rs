//! Misbehaviour over HTTP/1.1, and over WebSocket.

use std::{io, thread};

use super::{
    client::{Client, PAUSE},
    kind::Misbehaviour,
};
use crate::fair::{origin::WEBSOCKET_ACCEPT, tls::receive};

/// Length of a header line in floods.
const LONG: usize = 4_000;
/// Download that servers with compression compress.
const GET_LARGE: &[u8] = b"GET /large HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n";
/// Handshake of RFC 6455 section 1.3.
const UPGRADE: &[u8] = b"GET /websocket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
/// Binary message of one byte, with a mask of zeros (RFC 6455 section 5.2).
const MESSAGE: &[u8] = &[0x82, 0x81, 0, 0, 0, 0, b'x'];
/// Maximum number of header bytes of the response to a handshake.
const LONGEST_HEADER: usize = 8 << 10;

/// All kinds, in the order of the table.
pub(super) const KINDS: &[Misbehaviour] = &[
    Misbehaviour::new("HTTP/1.1, half a header", 400, half_header),
    Misbehaviour::new("HTTP/1.1, a header byte at a time", 200, slow_header),
    Misbehaviour::new("HTTP/1.1, half a body", 200, half_body),
    Misbehaviour::new("HTTP/1.1, 1,000 large uploads", 1000, slow_upload),
    Misbehaviour::new("HTTP/1.1, chunks of one byte", 32, tiny_chunks),
    Misbehaviour::new("HTTP/1.1, 20 slow downloads", 20, slow_download),
    Misbehaviour::new("HTTP/1.1, downloads that are not read", 200, unread_download),
    Misbehaviour::new("HTTP/1.1, pipelined requests, responses not read", 64, pipelined),
    Misbehaviour::new("HTTP/1.1, large headers", 32, header_flood),
    Misbehaviour::new("HTTP/1.1, small WebSocket messages", 16, websocket_flood).to_http1_origins(),
];

fn half_header(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    client.send(&mut stream, b"GET /small HTTP/1.1\r\nHost: localh")?;
    client.hold(stream)
}

fn slow_header(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    client.send(&mut stream, b"GET /small HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")?;
    client.trickle(stream, b"x")
}

fn half_body(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    client.send(&mut stream, b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")?;
    client.send(&mut stream, &[b'x'; 16 << 10])?;
    client.hold(stream)
}

fn slow_upload(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    client.send(&mut stream, b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n")?;
    client.trickle(stream, &[b'x'; 1024])
}

fn tiny_chunks(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    client.send(&mut stream, b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    for _ in 0..60_000 {
        if client.is_over() {
            return Ok(());
        }
        client.send(&mut stream, b"1\r\nx\r\n")?;
    }
    client.hold(stream)
}

fn slow_download(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    client.send(&mut stream, GET_LARGE)?;
    while !client.is_over() {
        receive(&mut stream, &mut [0; 2048])?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

fn unread_download(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    client.send(&mut stream, GET_LARGE)?;
    client.ignore();
    Ok(())
}

fn pipelined(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    let requests = b"GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    while !client.is_over() {
        client.send(&mut stream, &requests)?;
    }
    Ok(())
}

fn header_flood(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    let line = format!("X-Long: {}\r\n", "x".repeat(LONG));
    let request = format!("GET /small HTTP/1.1\r\nHost: localhost\r\n{}\r\n", line.repeat(8));
    while !client.is_over() {
        client.send(&mut stream, request.as_bytes())?;
        receive(&mut stream, &mut [0; 16 << 10])?;
    }
    Ok(())
}

fn websocket_flood(client: &Client<'_>) -> io::Result<()> {
    let mut stream = client.http1()?;
    client.send(&mut stream, UPGRADE)?;
    let mut header = Vec::new();
    while !header.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        let count = receive(&mut stream, &mut byte)?;
        header.extend_from_slice(&byte[..count]);
        if client.is_over() {
            return Ok(());
        }
        if header.len() > LONGEST_HEADER {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let header = String::from_utf8_lossy(&header);
    if !header.starts_with("HTTP/1.1 101 ") || !header.contains(WEBSOCKET_ACCEPT) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    client.flood(stream, || MESSAGE.repeat(50))
}
