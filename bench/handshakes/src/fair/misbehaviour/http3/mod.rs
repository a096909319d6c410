//! Misbehaviour over QUIC and HTTP/3.

mod connection;
mod frames;

use std::{io, time::Duration};

use self::{
    connection::{BLOCKED, Connection, configuration, udp},
    frames::{DATA, control, frame, request},
};
use super::{
    client::{Client, PAUSE, SOURCE},
    kind::{Misbehaviour, STREAMS},
};
use crate::fair::tls::TICK;

/// All kinds, in the order of the table.
pub(super) const KINDS: &[Misbehaviour] = &[
    Misbehaviour::new("HTTP/3, Initials without the rest of a handshake", 16, initials).over_http3(),
    Misbehaviour::new("HTTP/3, silent after the handshake", 200, idle).over_http3(),
    Misbehaviour::new("HTTP/3, half a header block", 200, half_header_block).over_http3(),
    Misbehaviour::new("HTTP/3, 100 streams with a small window", 16, stalled_streams).over_http3(),
    Misbehaviour::new("HTTP/3, 100 slow downloads", 4, slow_streams).over_http3(),
    Misbehaviour::new("HTTP/3, 100 slow uploads", 4, slow_upload_streams).over_http3(),
    Misbehaviour::new("HTTP/3, reset after each request", 16, rapid_reset).over_http3(),
    Misbehaviour::new("HTTP/3, PING flood", 16, ping_flood).over_http3(),
    Misbehaviour::new("HTTP/3, empty DATA frames", 16, empty_data).over_http3(),
    Misbehaviour::new("HTTP/3, a byte of DATA in each packet", 16, tiny_data).over_http3(),
];

/// Identifier of the client's control stream: its first unidirectional stream.
const CONTROL: u64 = 2;
/// Windows of streams: for a response's header without its body, for some body, and for all that a client reads.
const SMALL: u64 = 1 << 10;
const MEDIUM: u64 = 64 << 10;
const LARGE: u64 = 1 << 20;
/// Number of requests or packets before the next look at what has arrived.
const BURST: usize = 20;

/// Sends one Initial of each connection from one socket, and reads no reply.
fn initials(client: &Client<'_>) -> io::Result<()> {
    let socket = udp(SOURCE, client.server)?;
    let mut config = configuration(LARGE)?;
    while !client.is_over() {
        Connection::new(socket.try_clone()?, &mut config)?.flush()?;
        client.count();
    }
    Ok(())
}

fn idle(client: &Client<'_>) -> io::Result<()> {
    hold(client, connect(client, LARGE)?)
}

fn half_header_block(client: &Client<'_>) -> io::Result<()> {
    let mut connection = connect(client, LARGE)?;
    let whole = request("GET", "/small");
    connection.write(id(0), &whole[..whole.len() - 4], false, || client.is_over())?;
    hold(client, connection)
}

fn stalled_streams(client: &Client<'_>) -> io::Result<()> {
    let mut connection = connect(client, SMALL)?;
    open_streams(client, &mut connection, "GET", "/large")?;
    hold(client, connection)
}

/// Reads two kilobytes of each of all streams in turn.
fn slow_streams(client: &Client<'_>) -> io::Result<()> {
    let mut connection = connect(client, MEDIUM)?;
    let streams = open_streams(client, &mut connection, "GET", "/large")?;
    let mut number = 0;
    while !client.is_over() {
        number = (number + 1) % streams;
        connection.read(id(number), 2048);
        connection.run_for(PAUSE)?;
    }
    Ok(())
}

/// Sends a kilobyte on each of all streams in turn.
fn slow_upload_streams(client: &Client<'_>) -> io::Result<()> {
    let mut connection = connect(client, LARGE)?;
    let streams = open_streams(client, &mut connection, "POST", "/")?;
    let mut number = 0;
    while !client.is_over() {
        number = (number + 1) % streams;
        connection.write(id(number), &frame(DATA, &[b'x'; 1024]), false, || client.is_over())?;
        connection.run_for(TICK)?;
        connection.discard(|_| true);
    }
    Ok(())
}

/// Sends requests without their end, and cancels both directions of each.
fn rapid_reset(client: &Client<'_>) -> io::Result<()> {
    let mut connection = connect(client, LARGE)?;
    let get = request("GET", "/small");
    let mut number = 0;
    while !client.is_over() {
        let first = number;
        for _ in 0..BURST {
            connection.write(id(number), &get, false, || client.is_over())?;
            number += 1;
        }
        (first..number).for_each(|number| connection.cancel(id(number)));
        connection.turn(Duration::ZERO)?;
        connection.discard(|_| true);
    }
    Ok(())
}

fn ping_flood(client: &Client<'_>) -> io::Result<()> {
    let mut connection = connect(client, LARGE)?;
    while !client.is_over() {
        let mut sent = 0;
        for _ in 0..BURST {
            connection.ping()?;
            sent += connection.flush()?;
        }
        // Congestion control delays packets.
        connection.turn(if sent == 0 { BLOCKED } else { Duration::ZERO })?;
        connection.discard(|_| true);
    }
    Ok(())
}

fn empty_data(client: &Client<'_>) -> io::Result<()> {
    upload(client, &frame(DATA, &[]).repeat(500))
}

fn tiny_data(client: &Client<'_>) -> io::Result<()> {
    upload(client, &frame(DATA, b"x"))
}

/// Sends these bytes again and again in packets of their own.
fn upload(client: &Client<'_>, bytes: &[u8]) -> io::Result<()> {
    let mut connection = connect(client, LARGE)?;
    connection.write(id(0), &request("POST", "/"), false, || client.is_over())?;
    while !client.is_over() {
        for _ in 0..BURST {
            connection.write(id(0), bytes, false, || client.is_over())?;
        }
        connection.turn(Duration::ZERO)?;
        connection.discard(|_| true);
    }
    Ok(())
}

/// Opens a connection with this initial window of streams, and its control stream.
fn connect(client: &Client<'_>, window: u64) -> io::Result<Connection> {
    let mut connection = Connection::new(udp(SOURCE, client.server)?, &mut configuration(window)?)?;
    connection.establish(|| client.is_over())?;
    client.count();
    connection.write(CONTROL, &control(), false, || client.is_over())?;
    Ok(connection)
}

/// Keeps the connection open until the end, and reads only the server's own streams.
fn hold(client: &Client<'_>, mut connection: Connection) -> io::Result<()> {
    while !client.is_over() {
        connection.turn(TICK)?;
        connection.discard(is_unidirectional);
    }
    Ok(())
}

/// Opens as many streams as the server allows, at most 100, and returns their number.
fn open_streams(
    client: &Client<'_>,
    connection: &mut Connection,
    method: &str,
    path: &str,
) -> io::Result<u32> {
    let streams = connection.streams_left().min(STREAMS);
    for number in 0..streams {
        connection.write(id(number), &request(method, path), method == "GET", || client.is_over())?;
    }
    if streams == 0 { Err(io::ErrorKind::QuotaExceeded.into()) } else { Ok(streams) }
}

/// Returns the identifier of the client's request stream with this number (RFC 9000 section 2.1).
fn id(number: u32) -> u64 {
    4 * u64::from(number)
}

fn is_unidirectional(stream: u64) -> bool {
    stream & 2 != 0
}
