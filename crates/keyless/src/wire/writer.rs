//! Serialisation of messages into bytes to send.

use super::{MAX_PAYLOAD, Message, Mode, batched, compatible};
use zeroize::Zeroize;

/// A frame of this length is closed, and the next one is opened.
const LONG_FRAME: usize = 64 * 1024;

/// Upper bound of headers, names and padding added to a payload.
const OVERHEAD: usize = 4096;

/// Number of sent bytes from which they are discarded, if they are as many as the unsent ones.
const MUCH_SENT: usize = 64 * 1024;

/// Accepts messages and returns bytes. Messages added before the bytes are taken share frames.
#[derive(Debug)]
pub struct Writer {
    mode: Mode,
    buffer: Vec<u8>,
    /// Number of sent bytes in the buffer.
    sent: usize,
    /// Start of the open frame, and its number of messages.
    frame: Option<(usize, u16)>,
    padded: bool,
    secret: bool,
}

impl Writer {
    /// Creates a writer for one direction of a connection.
    pub fn new(mode: Mode) -> Self {
        Self { mode, buffer: Vec::new(), sent: 0, frame: None, padded: false, secret: false }
    }

    /// Sets whether frames of the batched mode are padded; packets of the compatible mode always are.
    pub fn set_padded(&mut self, padded: bool) {
        self.padded = padded;
    }

    /// Marks later output as secret (decrypted premaster secrets); its memory is wiped after use.
    pub fn wipe(&mut self) {
        self.secret = true;
    }

    /// Adds a message. Returns false, and adds nothing, if its payload is longer than [`MAX_PAYLOAD`].
    pub fn put(&mut self, message: &Message<'_>) -> bool {
        if payload_length(message) > MAX_PAYLOAD {
            return false;
        }
        if self.secret {
            wiped_growth(&mut self.buffer, payload_length(message) + OVERHEAD);
        }
        if self.mode == Mode::Compatible {
            compatible::write(message, &mut self.buffer);
            return true;
        }
        let (start, count) = self.frame.take().unwrap_or_else(|| {
            let start = self.buffer.len();
            batched::open(&mut self.buffer);
            (start, 0)
        });
        batched::write(message, &mut self.buffer);
        self.frame = Some((start, count + 1));
        if self.buffer.len() - start > LONG_FRAME || count + 1 == u16::MAX {
            self.close();
        }
        true
    }

    /// Returns the bytes to send, with the open frame closed.
    pub fn unsent(&mut self) -> &[u8] {
        self.close();
        &self.buffer[self.sent..]
    }

    /// Number of bytes to send.
    pub fn len(&self) -> usize {
        self.buffer.len() - self.sent
    }

    /// Returns whether there are no bytes to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Marks bytes as sent.
    pub fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.sent >= self.buffer.len() && self.frame.is_none() {
            if self.secret {
                self.buffer.as_mut_slice().zeroize();
            }
            self.buffer.clear();
            self.sent = 0;
        } else if self.sent >= MUCH_SENT && self.sent >= self.len() {
            self.forget_sent();
        }
    }

    /// Moves the unsent bytes to the front: on a connection that always has bytes to send, the sent ones would remain
    /// until it ends.
    fn forget_sent(&mut self) {
        let left = self.len();
        self.buffer.copy_within(self.sent.., 0);
        if self.secret {
            self.buffer[left..].zeroize();
        }
        self.buffer.truncate(left);
        if let Some((start, _)) = &mut self.frame {
            *start -= self.sent;
        }
        self.sent = 0;
    }

    fn close(&mut self) {
        if let Some((start, count)) = self.frame.take() {
            batched::close(&mut self.buffer, start, count, self.padded);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.secret {
            self.buffer.zeroize();
        }
    }
}

/// Grows the buffer without leaving a copy behind.
pub(super) fn wiped_growth(buffer: &mut Vec<u8>, additional: usize) {
    if buffer.capacity() - buffer.len() < additional {
        let mut larger = Vec::with_capacity(2 * (buffer.len() + additional));
        larger.extend_from_slice(buffer);
        buffer.zeroize();
        *buffer = larger;
    }
}

fn payload_length(message: &Message<'_>) -> usize {
    match message {
        Message::Request(request) => request.payload.len(),
        Message::Reply { result: Ok(payload), .. } => payload.len(),
        Message::Ping { data, .. } | Message::Pong { data, .. } => data.len(),
        Message::Reply { result: Err(_), .. } | Message::Withdraw { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Incoming, Reader};

    /// A connection that always has bytes to send keeps only the unsent ones.
    #[test]
    fn what_was_sent_is_forgotten() {
        for mode in [Mode::Compatible, Mode::Batched] {
            let (mut writer, mut reader) = (Writer::new(mode), Reader::new(mode));
            writer.wipe();
            let (mut put, mut received) = (0_u32, 0_u32);
            for _ in 0..2000 {
                for _ in 0..4 {
                    put += 1;
                    assert!(writer.put(&Message::Ping { id: put, data: &[put as u8; 1000] }));
                }
                let unsent = writer.unsent();
                let some = unsent.len().min(if unsent.len() > 100_000 { 4500 } else { 1000 });
                reader.receive(&unsent[..some]);
                // Another message arrives before the rest is sent.
                put += 1;
                assert!(writer.put(&Message::Ping { id: put, data: b"" }));
                writer.advance(some);
                while let Some(incoming) = reader.next_message().expect("whole messages") {
                    received += 1;
                    let Incoming::Message(Message::Ping { id, data }) = incoming else { panic!("a ping") };
                    assert_eq!(id, received);
                    assert!(data.iter().all(|byte| *byte == id as u8));
                }
                assert!(writer.buffer.len() <= 2 * writer.len() + MUCH_SENT, "{}", writer.buffer.len());
            }
            assert!(received > 1000);
        }
    }
}
