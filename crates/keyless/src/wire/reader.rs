//! Parser of a byte stream into messages.

use super::{Incoming, Mode, Violation, batched, compatible, writer::wiped_growth};
use zeroize::Zeroize;

/// Accepts bytes in arbitrary portions and returns messages. Its buffer is bounded by the longest frame, and wiped if
/// it may be secret.
#[derive(Debug)]
pub struct Reader {
    mode: Mode,
    buffer: Vec<u8>,
    /// Index of the first unprocessed byte in the buffer.
    at: usize,
    /// Rest of a frame of the batched mode.
    frame: Option<Frame>,
    padded: bool,
    secret: bool,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    left: u16,
    /// End of the frame in the buffer.
    end: usize,
}

impl Reader {
    /// Creates a reader for one direction of a connection.
    pub fn new(mode: Mode) -> Self {
        Self { mode, buffer: Vec::new(), at: 0, frame: None, padded: false, secret: false }
    }

    /// Marks later input as secret (decrypted premaster secrets); its memory is wiped after use.
    pub fn wipe(&mut self) {
        self.secret = true;
    }

    /// Passes received bytes. Call [`next_message`](Self::next_message) until there are no more before the next
    /// bytes.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.compact();
        if self.secret {
            wiped_growth(&mut self.buffer, bytes.len());
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete message.
    ///
    /// # Errors
    /// Protocol violations; nothing can be read afterwards.
    pub fn next_message(&mut self) -> Result<Option<Incoming<'_>>, Violation> {
        match self.mode {
            Mode::Compatible => self.next_packet(),
            Mode::Batched => self.next_entry(),
        }
    }

    /// Returns whether the last frame was padded, in which case replies should be too.
    pub fn padded(&self) -> bool {
        self.padded
    }

    /// Returns whether a message has been received in part.
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

    /// Makes room by discarding processed bytes.
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
