//! The content codings, each written by its library into memory.

use crate::memory::{Held, Purpose};
use brotli::{CompressorWriter, enc::BrotliEncoderParams};
use bytes::Bytes;
use flate2::write::GzEncoder;
use quadrille_config::model::ContentCoding;
use std::{
    io::{self, Write},
    sync::atomic::{AtomicUsize, Ordering},
};

/// A body that is being compressed. The output is taken from it piece by piece.
pub(crate) struct Encoder {
    library: Library,
    coding: ContentCoding,
    _one: One,
    _held: Held,
}

enum Library {
    Gzip(GzEncoder<Vec<u8>>),
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

/// Window size as a power of two, which determines the memory per response.
const WINDOW: u32 = 18;
/// Levels of about equal CPU cost: some 50 to 100 MB/s on one core.
const GZIP_LEVEL: u32 = 5;
const BROTLI_LEVEL: i32 = 4;
const ZSTD_LEVEL: i32 = 3;
/// Size of the buffer between the library and its output.
const BUFFER: usize = 4096;

/// Maximum number of responses that are compressed concurrently, over all clients. Without it, a client that starts
/// many responses and reads none could exhaust the memory.
const AT_ONCE: usize = 1024;

static BEGUN: AtomicUsize = AtomicUsize::new(0);

/// A slot for one of these responses, until it is dropped.
struct One(&'static AtomicUsize);

impl One {
    fn of(begun: &'static AtomicUsize) -> Option<Self> {
        let more = |begun| (begun < AT_ONCE).then_some(begun + 1);
        begun.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Self(begun))
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the approximate size of an encoder's state in bytes.
fn state(coding: ContentCoding) -> usize {
    const KIB: usize = 1024;
    match coding {
        ContentCoding::Gzip => 320 * KIB,
        ContentCoding::Brotli => 1024 * KIB,
        ContentCoding::Zstd => 1536 * KIB,
    }
}

impl Encoder {
    /// Returns `None` if all slots are taken or if the library has no memory.
    pub(super) fn new(coding: ContentCoding) -> Option<Self> {
        let one = One::of(&BEGUN)?;
        let library = match coding {
            ContentCoding::Gzip => {
                Library::Gzip(GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL)))
            }
            ContentCoding::Brotli => {
                let parameters = BrotliEncoderParams {
                    quality: BROTLI_LEVEL,
                    lgwin: WINDOW as i32,
                    ..BrotliEncoderParams::default()
                };
                Library::Brotli(Box::new(CompressorWriter::with_params(Vec::new(), BUFFER, &parameters)))
            }
            ContentCoding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL).ok()?;
                encoder.window_log(WINDOW).ok()?;
                Library::Zstd(encoder)
            }
        };
        let held = Held::bytes(Purpose::Compression, state(coding));
        Some(Self { library, coding, _one: one, _held: held })
    }

    pub(super) fn coding(&self) -> ContentCoding {
        self.coding
    }

    /// Adds data to the body. Most of it may stay in the encoder for now.
    pub(super) fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        match &mut self.library {
            Library::Gzip(encoder) => encoder.write_all(piece),
            Library::Brotli(encoder) => encoder.write_all(piece),
            Library::Zstd(encoder) => encoder.write_all(piece),
        }
    }

    /// Writes out all data that was added, so that the client can read it.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match &mut self.library {
            Library::Gzip(encoder) => encoder.flush(),
            Library::Brotli(encoder) => encoder.flush(),
            Library::Zstd(encoder) => encoder.flush(),
        }
    }

    /// Takes the output since the last call.
    pub(super) fn take(&mut self) -> Bytes {
        let out = match &mut self.library {
            Library::Gzip(encoder) => encoder.get_mut(),
            Library::Brotli(encoder) => encoder.get_mut(),
            Library::Zstd(encoder) => encoder.get_mut(),
        };
        std::mem::take(out).into()
    }

    /// Ends the body and returns the rest of the output.
    pub(super) fn finish(self) -> io::Result<Bytes> {
        match self.library {
            Library::Gzip(encoder) => encoder.finish(),
            Library::Brotli(encoder) => Ok(encoder.into_inner()),
            Library::Zstd(encoder) => encoder.finish(),
        }
        .map(Bytes::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn decoded(coding: ContentCoding, bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        match coding {
            ContentCoding::Gzip => _ = flate2::read::GzDecoder::new(bytes).read_to_end(&mut text),
            ContentCoding::Brotli => _ = brotli::Decompressor::new(bytes, BUFFER).read_to_end(&mut text),
            ContentCoding::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::new(bytes).expect("a decoder");
                let _ = decoder.read_to_end(&mut text);
            }
        }
        text
    }

    #[test]
    fn what_is_flushed_can_be_read_and_what_is_finished_is_whole() {
        for coding in [ContentCoding::Gzip, ContentCoding::Brotli, ContentCoding::Zstd] {
            let mut encoder = Encoder::new(coding).expect("an encoder");
            let mut out = Vec::new();
            let mut text = Vec::new();
            for line in 0..2000 {
                let line = format!("data: {line} and what is in every line\n\n");
                encoder.write(line.as_bytes()).expect("it writes");
                text.extend_from_slice(line.as_bytes());
                if text.len().is_multiple_of(7) {
                    encoder.flush().expect("it flushes");
                    out.extend_from_slice(&encoder.take());
                    assert_eq!(decoded(coding, &out), text, "{coding:?}");
                }
            }
            out.extend_from_slice(&encoder.take());
            out.extend_from_slice(&encoder.finish().expect("it ends"));
            assert_eq!(decoded(coding, &out), text, "{coding:?}");
            assert!(out.len() < text.len() / 2, "{coding:?}: {} of {}", out.len(), text.len());
        }
    }

    #[test]
    fn there_are_only_so_many_at_once() {
        static OWN: AtomicUsize = AtomicUsize::new(0);
        let mut all: Vec<_> = std::iter::from_fn(|| One::of(&OWN)).take(AT_ONCE + 1).collect();
        assert_eq!(all.len(), AT_ONCE);
        all.pop();
        assert!(One::of(&OWN).is_some());
    }

    #[test]
    fn nothing_is_a_body_too() {
        for coding in [ContentCoding::Gzip, ContentCoding::Brotli, ContentCoding::Zstd] {
            let mut encoder = Encoder::new(coding).expect("an encoder");
            let mut out = encoder.take().to_vec();
            out.extend_from_slice(&encoder.finish().expect("it ends"));
            assert!(!out.is_empty() && decoded(coding, &out).is_empty(), "{coding:?}");
        }
    }
}
