//! Bytes as they come, taken apart into messages.

use super::{Incoming, Mode, Violation, batched, compatible, writer::wiped_growth};
use zeroize::Zeroize;

/// Takes bytes in any portions and gives messages. What it holds is bounded by the longest frame, and wiped if it may
/// be secret.
#[derive(Debug)]
pub struct Reader {
    mode: Mode,
    buffer: Vec<u8>,
    /// Where the first byte that is not used up stands in the buffer.
    at: usize,
    /// What is left of a frame of our own mode.
    frame: Option<Frame>,
    padded: bool,
    secret: bool,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    left: u16,
    /// Where it ends in the buffer.
    end: usize,
}

impl Reader {
    /// A reader of one direction of a connection.
    pub fn new(mode: Mode) -> Self {
        Self { mode, buffer: Vec::new(), at: 0, frame: None, padded: false, secret: false }
    }

    /// From now on what is read may be secret: decrypted premaster secrets. The memory is wiped behind it.
    pub fn wipe(&mut self) {
        self.secret = true;
    }

    /// Takes what has come. Call [`next_message`](Self::next_message) until there is nothing more before the next
    /// portion.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.compact();
        if self.secret {
            wiped_growth(&mut self.buffer, bytes.len());
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message that is there as a whole.
    ///
    /// # Errors
    /// What no correct end sends; nothing can be read after that.
    pub fn next_message(&mut self) -> Result<Option<Incoming<'_>>, Violation> {
        match self.mode {
            Mode::Compatible => self.next_packet(),
            Mode::Batched => self.next_entry(),
        }
    }

    /// Whether the last frame was padded, so that replies should be.
    pub fn padded(&self) -> bool {
        self.padded
    }

    /// Whether a message has begun and not ended.
    pub fn has_partial_message(&self) -> bool {
        self.at < self.buffer.len()
    }

    fn next_packet(&mut self) -> Result<Option<Incoming<'_>>, Violation> {
        let bytes = &self.buffer[self.at..];
        let Some(length) = compatible::packet_length(bytes)? else { return Ok(None) };
        let Some(packet) = bytes.get(..length) else { return Ok(None) };
        self.at += length;
        Ok(Some(compatible::parse(packet)))
    }

    fn next_entry(&mut self) -> Result<Option<Incoming<'_>>, Violation> {
        loop {
            match self.frame {
                Some(Frame { left: 0, end }) => {
                    self.at = end;
                    self.frame = None;
                }
                Some(Frame { left, end }) => {
                    let (incoming, length) = batched::parse(&self.buffer[self.at..end])?;
                    self.at += length;
                    self.frame = Some(Frame { left: left - 1, end });
                    return Ok(Some(incoming));
                }
                None => {
                    let bytes = &self.buffer[self.at..];
                    let Some(header) = batched::Header::read(bytes)? else { return Ok(None) };
                    if bytes.len() < header.length {
                        return Ok(None);
                    }
                    let end = self.at + header.length;
                    self.padded = header.padded;
                    self.at += batched::HEADER;
                    self.frame = Some(Frame { left: header.count, end });
                }
            }
        }
    }

    /// Makes room by forgetting what is used up.
    fn compact(&mut self) {
        if self.secret {
            self.buffer[..self.at].zeroize();
        }
        if self.at == self.buffer.len() {
            self.buffer.clear();
        } else {
            let left = self.buffer.len() - self.at;
            self.buffer.copy_within(self.at.., 0);
            if self.secret {
                self.buffer[left..].zeroize();
            }
            self.buffer.truncate(left);
        }
        self.frame = self.frame.map(|frame| Frame { end: frame.end - self.at, ..frame });
        self.at = 0;
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.secret {
            self.buffer.zeroize();
        }
    }
}
