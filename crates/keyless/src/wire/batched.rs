//! Batched mode: a frame holds many messages, so one system call and one TLS record carry all messages of a turn.

use super::{ErrorCode, Hints, Incoming, KeyName, Message, Request, Ski, Violation, opcode};

pub(super) const VERSION: u8 = 2;
pub(super) const HEADER: usize = 8;
/// Length of opcode, id and length.
pub(super) const ENTRY_HEADER: usize = 7;
/// Flag: the frame ends with padding, and its replies are padded too.
pub(super) const PADDED: u8 = 1;
/// Padded frames are a multiple of this length.
const PADDING_STEP: usize = 1024;
/// Longest frame, header included.
pub(super) const MAX_FRAME: usize = 256 * 1024;
const SKI: usize = 20;

/// A frame's header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) padded: bool,
    pub(super) count: u16,
    /// Length of the whole frame.
    pub(super) length: usize,
}

impl Header {
    /// Reads the header when it is complete.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, Violation> {
        match bytes.first() {
            Some(&version) if version != VERSION => return Err(Violation::Version(version)),
            _ => {}
        }
        let Some([_, flags, c0, c1, l0, l1, l2, l3]) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
        let length = u32::from_be_bytes([*l0, *l1, *l2, *l3]) as usize;
        if length > MAX_FRAME - HEADER {
            return Err(Violation::TooLong(length));
        }
        let count = u16::from_be_bytes([*c0, *c1]);
        Ok(Some(Self { padded: flags & PADDED != 0, count, length: HEADER + length }))
    }
}

/// Parses the first entry of these bytes, and returns it with its length.
pub(super) fn parse(bytes: &[u8]) -> Result<(Incoming<'_>, usize), Violation> {
    let (head, rest) = bytes.split_first_chunk::<ENTRY_HEADER>().ok_or(Violation::Lengths)?;
    let [opcode, i0, i1, i2, i3, l0, l1] = *head;
    let (id, length) = (u32::from_be_bytes([i0, i1, i2, i3]), usize::from(u16::from_be_bytes([l0, l1])));
    let data = rest.get(..length).ok_or(Violation::Lengths)?;
    let incoming = match message(opcode, id, data) {
        Ok(message) => Incoming::Message(message),
        Err(error) => Incoming::Malformed { id, error },
    };
    Ok((incoming, ENTRY_HEADER + length))
}

fn message(opcode: u8, id: u32, data: &[u8]) -> Result<Message<'_>, ErrorCode> {
    Ok(match opcode {
        opcode::PING => Message::Ping { id, data },
        opcode::PONG => Message::Pong { id, data },
        opcode::RESPONSE => Message::Reply { id, result: Ok(data) },
        opcode::WITHDRAW => Message::Withdraw { id },
        opcode::ERROR => match data {
            [code] => Message::Reply { id, result: Err(ErrorCode::from_byte(*code)) },
            _ => return Err(ErrorCode::Format),
        },
        opcode => {
            let (ski, payload) = data.split_first_chunk::<SKI>().ok_or(ErrorCode::Format)?;
            Message::Request(Request {
                id,
                key: KeyName::from(Ski(*ski)),
                opcode,
                payload,
                hints: Hints::default(),
            })
        }
    })
}

/// Appends a message as one entry. This mode cannot express a request without a key identifier: it names the zero
/// key.
pub(super) fn write(message: &Message<'_>, out: &mut Vec<u8>) {
    match message {
        Message::Request(request) => {
            let ski = request.key.ski.map_or([0; SKI], |ski| ski.0);
            entry(out, request.opcode, request.id, &[&ski, request.payload]);
        }
        Message::Reply { id, result: Ok(payload) } => entry(out, opcode::RESPONSE, *id, &[payload]),
        Message::Reply { id, result: Err(error) } => entry(out, opcode::ERROR, *id, &[&[error.byte()]]),
        Message::Ping { id, data } => entry(out, opcode::PING, *id, &[data]),
        Message::Pong { id, data } => entry(out, opcode::PONG, *id, &[data]),
        Message::Withdraw { id } => entry(out, opcode::WITHDRAW, *id, &[]),
    }
}

/// Callers keep payloads below [`MAX_PAYLOAD`](super::MAX_PAYLOAD), so that lengths fit.
fn entry(out: &mut Vec<u8>, opcode: u8, id: u32, parts: &[&[u8]]) {
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    out.push(opcode);
    out.extend(id.to_be_bytes());
    out.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// Appends a header to be filled in by [`close`].
pub(super) fn open(out: &mut Vec<u8>) {
    out.extend([0; HEADER]);
}

/// Fills in the header of the frame that begins at `start`, and pads the frame on request.
pub(super) fn close(out: &mut Vec<u8>, start: usize, count: u16, padded: bool) {
    if padded {
        let length = (out.len() - start).next_multiple_of(PADDING_STEP);
        out.resize(start + length, 0);
    }
    let length = u32::try_from(out.len() - start - HEADER).unwrap_or(u32::MAX);
    let header = &mut out[start..start + HEADER];
    header[0] = VERSION;
    header[1] = if padded { PADDED } else { 0 };
    header[2..4].copy_from_slice(&count.to_be_bytes());
    header[4..].copy_from_slice(&length.to_be_bytes());
}
