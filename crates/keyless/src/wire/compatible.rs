//! Compatible mode of existing keyless clients and servers: one packet for each message.

use super::{ErrorCode, Hints, Incoming, KeyName, Message, Request, Ski, Violation, opcode};
use std::net::IpAddr;

pub(super) const MAJOR: u8 = 1;
const MINOR: u8 = 0;
pub(super) const HEADER: usize = 8;
/// Shorter packets are padded to this length, so that their lengths reveal nothing.
const PADDED: usize = 1024;

mod tag {
    pub(super) const MODULUS_DIGEST: u8 = 0x01;
    pub(super) const SNI: u8 = 0x02;
    pub(super) const CLIENT_IP: u8 = 0x03;
    pub(super) const SKI: u8 = 0x04;
    pub(super) const SERVER_IP: u8 = 0x05;
    pub(super) const OPCODE: u8 = 0x11;
    pub(super) const PAYLOAD: u8 = 0x12;
    pub(super) const PADDING: u8 = 0x20;
    /// All known tags; others are ignored.
    pub(super) const KNOWN: [u8; 14] =
        [0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x20];
}

/// Returns the length of the packet that begins here, when its header is complete.
pub(super) fn packet_length(bytes: &[u8]) -> Result<Option<usize>, Violation> {
    match bytes.first() {
        Some(&version) if version != MAJOR => return Err(Violation::Version(version)),
        _ => {}
    }
    Ok(bytes.get(..HEADER).map(|header| HEADER + usize::from(u16::from_be_bytes([header[2], header[3]]))))
}

/// Parses a whole packet. An error inside it costs only this message, because its length is known.
pub(super) fn parse(packet: &[u8]) -> Incoming<'_> {
    let id = packet.get(4..HEADER).map_or(0, |id| u32::from_be_bytes([id[0], id[1], id[2], id[3]]));
    let body = packet.get(HEADER..).unwrap_or_default();
    match Items::read(body).and_then(|items| items.message(id)) {
        Ok(message) => Incoming::Message(message),
        Err(error) => Incoming::Malformed { id, error },
    }
}

#[derive(Default)]
struct Items<'a> {
    key: KeyName,
    hints: Hints<'a>,
    opcode: Option<u8>,
    payload: &'a [u8],
}

impl<'a> Items<'a> {
    fn read(mut body: &'a [u8]) -> Result<Self, ErrorCode> {
        let mut items = Self::default();
        let mut seen = [false; 256];
        while let [tag, high, low, rest @ ..] = body {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let (data, rest) = rest.split_at_checked(length).ok_or(ErrorCode::Format)?;
            let twice = std::mem::replace(&mut seen[usize::from(*tag)], true);
            if twice && tag::KNOWN.contains(tag) {
                return Err(ErrorCode::Format);
            }
            items.take(*tag, data)?;
            body = rest;
        }
        if body.is_empty() { Ok(items) } else { Err(ErrorCode::Format) }
    }

    fn take(&mut self, tag: u8, data: &'a [u8]) -> Result<(), ErrorCode> {
        match tag {
            tag::MODULUS_DIGEST => self.key.modulus = Some(digest(data)?),
            tag::SKI => self.key.ski = Some(Ski(data.try_into().map_err(|_| ErrorCode::Format)?)),
            tag::SNI => self.hints.sni = Some(std::str::from_utf8(data).map_err(|_| ErrorCode::Format)?),
            tag::CLIENT_IP => self.hints.client = Some(ip(data)?),
            tag::SERVER_IP => self.hints.server = Some(ip(data)?),
            tag::OPCODE => match data {
                [opcode] => self.opcode = Some(*opcode),
                _ => return Err(ErrorCode::Format),
            },
            tag::PAYLOAD => self.payload = data,
            _ => {}
        }
        Ok(())
    }

    fn message(self, id: u32) -> Result<Message<'a>, ErrorCode> {
        let Self { key, hints, opcode, payload } = self;
        Ok(match opcode.ok_or(ErrorCode::Format)? {
            opcode::PING => Message::Ping { id, data: payload },
            opcode::PONG => Message::Pong { id, data: payload },
            opcode::RESPONSE => Message::Reply { id, result: Ok(payload) },
            opcode::ERROR => match payload {
                // These codes of ours have another meaning in foreign software.
                [code] => Message::Reply { id, result: Err(ErrorCode::from_byte(*code).compatible()) },
                _ => return Err(ErrorCode::Format),
            },
            opcode => Message::Request(Request { id, key, opcode, payload, hints }),
        })
    }
}

/// Parses thirty-two bytes, raw or in hexadecimal.
fn digest(data: &[u8]) -> Result<[u8; 32], ErrorCode> {
    if let Ok(digest) = data.try_into() {
        return Ok(digest);
    }
    let pairs = data.as_chunks::<2>();
    let digits = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.0.iter().map(digits).collect();
    bytes.filter(|_| pairs.1.is_empty()).and_then(|bytes| bytes.try_into().ok()).ok_or(ErrorCode::Format)
}

fn ip(data: &[u8]) -> Result<IpAddr, ErrorCode> {
    let v4 = || <[u8; 4]>::try_from(data).ok().map(IpAddr::from);
    let v6 = || <[u8; 16]>::try_from(data).ok().map(IpAddr::from);
    v4().or_else(v6).ok_or(ErrorCode::Format)
}

/// Appends a message as one packet. This mode has no withdrawal, which is omitted.
pub(super) fn write(message: &Message<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    let (id, opcode) = match message {
        Message::Withdraw { .. } => return,
        Message::Request(request) => (request.id, request.opcode),
        Message::Reply { id, result: Ok(_) } => (*id, opcode::RESPONSE),
        Message::Reply { id, result: Err(_) } => (*id, opcode::ERROR),
        Message::Ping { id, .. } => (*id, opcode::PING),
        Message::Pong { id, .. } => (*id, opcode::PONG),
    };
    out.extend([MAJOR, MINOR, 0, 0]);
    out.extend(id.to_be_bytes());
    item(out, tag::OPCODE, &[opcode]);
    match message {
        Message::Request(request) => write_request(out, request),
        Message::Reply { result: Ok(payload), .. } => item(out, tag::PAYLOAD, payload),
        Message::Reply { result: Err(error), .. } => item(out, tag::PAYLOAD, &[error.compatible().byte()]),
        Message::Ping { data, .. } | Message::Pong { data, .. } => item(out, tag::PAYLOAD, data),
        Message::Withdraw { .. } => {}
    }
    pad(out, start);
    let body = u16::try_from(out.len() - start - HEADER).unwrap_or(u16::MAX);
    out[start + 2..start + 4].copy_from_slice(&body.to_be_bytes());
}

fn write_request(out: &mut Vec<u8>, request: &Request<'_>) {
    if let Some(digest) = &request.key.modulus {
        item(out, tag::MODULUS_DIGEST, digest);
    }
    if let Some(ski) = &request.key.ski {
        item(out, tag::SKI, &ski.0);
    }
    if let Some(sni) = request.hints.sni {
        item(out, tag::SNI, sni.as_bytes());
    }
    for (tag, address) in [(tag::CLIENT_IP, request.hints.client), (tag::SERVER_IP, request.hints.server)] {
        match address {
            Some(IpAddr::V4(address)) => item(out, tag, &address.octets()),
            Some(IpAddr::V6(address)) => item(out, tag, &address.octets()),
            None => {}
        }
    }
    item(out, tag::PAYLOAD, request.payload);
}

/// Callers keep payloads below [`MAX_PAYLOAD`](super::MAX_PAYLOAD), so that lengths fit.
fn item(out: &mut Vec<u8>, tag: u8, data: &[u8]) {
    let length = u16::try_from(data.len()).unwrap_or(u16::MAX);
    out.push(tag);
    out.extend(length.to_be_bytes());
    out.extend(&data[..usize::from(length)]);
}

/// The header of the padding may exceed the length by up to three bytes.
fn pad(out: &mut Vec<u8>, start: usize) {
    const ITEM_HEADER: usize = 3;
    let length = out.len() - start;
    if length < PADDED {
        let zeros = PADDED.saturating_sub(length + ITEM_HEADER);
        out.push(tag::PADDING);
        out.extend(u16::try_from(zeros).unwrap_or(0).to_be_bytes());
        out.resize(out.len() + zeros, 0);
    }
}
