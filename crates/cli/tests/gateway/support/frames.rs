//! A client that sends single HTTP/2 frames (RFC 9113 section 4), to test behaviour of non-conforming clients.

use super::{Connector, Uninterrupted};
use boring::ssl::SslStream;
use std::{
    io::{self, Read, Write},
    net::SocketAddr,
};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// A received frame.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// An HTTP/2 connection.
pub struct Frames {
    tls: SslStream<Uninterrupted>,
}

impl Frames {
    /// Opens a connection with this initial window for the server's streams.
    pub fn connect(connector: &Connector, address: SocketAddr, window: u32) -> Self {
        let tls = connector.http2(address).expect("a connection");
        let mut this = Self { tls };
        this.tls.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("sending the preface");
        let mut settings = vec![0, 4];
        settings.extend_from_slice(&window.to_be_bytes());
        this.send(SETTINGS, 0, 0, &settings);
        this
    }

    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.try_send(kind, flags, stream, payload).expect("sending a frame");
    }

    /// Sends a frame on a connection that may have ended.
    pub fn try_send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        self.tls.write_all(&frame(kind, flags, stream, payload))
    }

    /// Sends a request for a path without a body.
    pub fn get(&mut self, stream: u32, path: &str) {
        self.try_get(stream, path).expect("sending a frame");
    }

    /// Sends a request on a connection that may have ended.
    pub fn try_get(&mut self, stream: u32, path: &str) -> io::Result<()> {
        let mut block = vec![0x82, 0x87];
        literal(&mut block, 0x04, path);
        literal(&mut block, 0x01, "localhost");
        self.tls.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &block))
    }

    /// Sends data of a body in frames of this size.
    pub fn data(&mut self, stream: u32, bytes: usize, size: usize) {
        let one = frame(DATA, 0, stream, &vec![b'x'; size]);
        // Many frames share a TLS record.
        let batch = (16 * 1024 / one.len()).max(1);
        let mut left = bytes / size;
        while left > 0 {
            let now = left.min(batch);
            self.tls.write_all(&one.repeat(now)).expect("sending frames");
            left -= now;
        }
    }

    /// Sends a request whose body follows.
    pub fn post(&mut self, stream: u32, path: &str) {
        let mut block = vec![0x83, 0x87];
        literal(&mut block, 0x04, path);
        literal(&mut block, 0x01, "localhost");
        self.send(HEADERS, END_HEADERS, stream, &block);
    }

    /// Sends the trailers that end a request.
    pub fn trailers(&mut self, stream: u32, fields: &[(&str, &str)]) {
        let mut block = Vec::new();
        for (name, value) in fields {
            block.push(0x00);
            string(&mut block, name);
            string(&mut block, value);
        }
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, &block);
    }

    /// Sends a request without a body, with a header that may require several frames.
    pub fn get_with(&mut self, stream: u32, path: &str, name: &str, value: &str) {
        const CONTINUATION: u8 = 9;
        let mut block = vec![0x82, 0x87];
        literal(&mut block, 0x04, path);
        literal(&mut block, 0x01, "localhost");
        block.push(0x00);
        string(&mut block, name);
        string(&mut block, value);
        let pieces: Vec<&[u8]> = block.chunks(16 * 1024).collect();
        for (index, piece) in pieces.iter().enumerate() {
            let end = if index + 1 == pieces.len() { END_HEADERS } else { 0 };
            match index {
                0 => self.send(HEADERS, END_STREAM | end, stream, piece),
                _ => self.send(CONTINUATION, end, stream, piece),
            }
        }
    }

    /// Sends the WebSocket handshake of RFC 8441.
    pub fn websocket(&mut self, stream: u32, path: &str) {
        self.connect_protocol(stream, path, "websocket");
    }

    /// Sends an extended CONNECT for a protocol (RFC 8441 section 4).
    pub fn connect_protocol(&mut self, stream: u32, path: &str, protocol: &str) {
        let mut block = Vec::new();
        literal(&mut block, 0x02, "CONNECT");
        block.push(0x00);
        string(&mut block, ":protocol");
        string(&mut block, protocol);
        block.push(0x87);
        literal(&mut block, 0x04, path);
        literal(&mut block, 0x01, "localhost");
        block.push(0x00);
        string(&mut block, "sec-websocket-version");
        string(&mut block, "13");
        self.send(HEADERS, END_HEADERS, stream, &block);
    }

    /// Increases the window of a stream.
    pub fn open_window(&mut self, stream: u32, bytes: u32) {
        self.send(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
    }

    /// Sends a request whose body follows, and window updates of its stream that exceed the maximum, in one TLS
    /// record.
    pub fn overflow_window(&mut self, stream: u32) {
        let mut block = vec![0x83, 0x87];
        literal(&mut block, 0x04, "/");
        literal(&mut block, 0x01, "localhost");
        let most = 0x7fff_ffff_u32.to_be_bytes();
        let mut frames = frame(HEADERS, END_HEADERS, stream, &block);
        frames.extend(frame(WINDOW_UPDATE, 0, stream, &most));
        frames.extend(frame(WINDOW_UPDATE, 0, stream, &most));
        self.tls.write_all(&frames).expect("sending frames");
    }

    /// Returns the next frame; settings are acknowledged meanwhile.
    ///
    /// # Errors
    /// If the connection has ended, or nothing arrives.
    pub fn next(&mut self) -> io::Result<Frame> {
        loop {
            let mut head = [0; 9];
            self.tls.read_exact(&mut head)?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.tls.read_exact(&mut payload)?;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            match (head[3], head[4]) {
                // A peer that has closed the connection needs no acknowledgement; earlier frames can still be read.
                (SETTINGS, 0) => drop(self.tls.write_all(&frame(SETTINGS, ACK, 0, &[]))),
                (SETTINGS, _) => {}
                (kind, _) => return Ok(Frame { kind, stream, payload }),
            }
        }
    }

    /// Returns the next frame of this type.
    pub fn expect(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.next().expect("a frame");
            if frame.kind == kind {
                return frame;
            }
        }
    }
}

/// Encodes a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Encodes a field without indexing, whose name is in the static table (RFC 7541 section 6.2.2).
fn literal(block: &mut Vec<u8>, name: u8, value: &str) {
    block.push(name);
    string(block, value);
}

/// Encodes a string without Huffman coding, with a 7-bit prefix integer as its length (RFC 7541 sections 5.1 and
/// 5.2).
fn string(block: &mut Vec<u8>, text: &str) {
    let mut length = text.len();
    if length < 127 {
        block.push(u8::try_from(length).expect("seven bits"));
    } else {
        block.push(127);
        length -= 127;
        while length >= 128 {
            block.push(u8::try_from(length % 128).expect("seven bits") | 128);
            length /= 128;
        }
        block.push(u8::try_from(length).expect("seven bits"));
    }
    block.extend_from_slice(text.as_bytes());
}

/// The byte stream of one WebSocket.
pub struct Tunnel<'a> {
    pub frames: &'a mut Frames,
    pub stream: u32,
    pub received: Vec<u8>,
}

impl Read for Tunnel<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.received.is_empty() {
            let frame = self.frames.next()?;
            if frame.kind == DATA && frame.stream == self.stream {
                self.received = frame.payload;
                if self.received.is_empty() {
                    return Ok(0);
                }
                let count = u32::try_from(self.received.len()).expect("a short frame");
                self.frames.open_window(self.stream, count);
                self.frames.open_window(0, count);
            }
        }
        let count = out.len().min(self.received.len());
        out[..count].copy_from_slice(&self.received[..count]);
        self.received.drain(..count);
        Ok(count)
    }
}

impl Write for Tunnel<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(16 * 1024);
        self.frames.send(DATA, 0, self.stream, &bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
