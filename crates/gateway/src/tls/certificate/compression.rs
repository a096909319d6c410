//! Certificate compression (RFC 8879): the Certificate message of TLS 1.3 by zstd, Brotli or zlib.
//!
//! BoringSSL takes the first algorithm of the context that the client offers; the RFC gives the client's list no
//! order. A message cannot be declined once an algorithm is negotiated, so a context has the algorithms only if the
//! chain becomes clearly shorter. Each format stores what it cannot compress with a few bytes of overhead, so an OCSP
//! response in the message does not make it longer than the original.
//!
//! A message depends on the chain and on what the client requests, such as an OCSP response. Each is compressed once,
//! on the event loop that needs it first, and kept with the certificate for all its contexts.

use crate::tls::contained;
use boring::{
    error::ErrorStack,
    ex_data::Index,
    ssl::{SslContext, SslContextBuilder, SslRef},
    x509::X509,
};
use boring_sys as ffi;
use brotli::enc::BrotliEncoderParams;
use flate2::{Compression, write::ZlibEncoder};
use foreign_types::ForeignTypeRef;
use metrics::{Counter, counter};
use std::{
    collections::VecDeque,
    ffi::c_int,
    io::{self, Write},
    slice,
    sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError},
};

/// Code points of the algorithms (RFC 8879 section 7.3).
const ZLIB: u16 = 1;
const BROTLI: u16 = 2;
const ZSTD: u16 = 3;

/// Levels with the shortest output below half a millisecond for a chain of two certificates, as a message is compressed
/// on an event loop. Higher levels of Brotli save 2 % more, and take 5 to 7 ms.
const ZLIB_LEVEL: u32 = 9;
const BROTLI_LEVEL: i32 = 5;
const ZSTD_LEVEL: i32 = 19;
/// Window of Brotli as a power of two. With smaller ones, the library takes milliseconds.
const BROTLI_WINDOW: i32 = 18;

/// Bytes of a CompressedCertificate message beside the compressed data: the algorithm and two lengths.
const HEADER: usize = 8;
/// Minimum number of bytes that zlib must save for a chain to be compressed. It exceeds the header, and the overhead
/// of stored data.
const LEAST_SAVED: usize = 64;
/// Number of messages that are kept for a certificate: with and without an OCSP response, and with its successor.
const MOST_KEPT: usize = 4;

/// A compression algorithm.
#[derive(Clone, Copy)]
struct Algorithm {
    name: &'static str,
    code_point: u16,
    callback: ffi::ssl_cert_compression_func_t,
    compress: fn(&[u8]) -> io::Result<Vec<u8>>,
}

/// All algorithms, most preferred first: zstd has the shortest output.
const ALGORITHMS: [Algorithm; 3] = [
    Algorithm { name: "zstd", code_point: ZSTD, callback: Some(on_message::<0>), compress: zstd },
    Algorithm { name: "brotli", code_point: BROTLI, callback: Some(on_message::<1>), compress: brotli },
    Algorithm { name: "zlib", code_point: ZLIB, callback: Some(on_message::<2>), compress: zlib },
];

/// The compressed messages of a certificate.
#[derive(Debug, Default)]
pub(crate) struct CompressedMessages {
    /// Whether the chain becomes clearly shorter, once that is known.
    is_worthwhile: OnceLock<bool>,
    kept: Mutex<VecDeque<Message>>,
}

#[derive(Debug)]
struct Message {
    plain: Box<[u8]>,
    /// The message by each of [`ALGORITHMS`] that was used.
    compressed: [Option<Arc<[u8]>>; ALGORITHMS.len()],
}

static MESSAGES: LazyLock<Option<Index<SslContext, Arc<CompressedMessages>>>> =
    LazyLock::new(|| SslContext::new_ex_index().ok());

/// Adds the algorithms to the context of a certificate with this chain, unless the chain hardly becomes shorter.
pub(crate) fn install(
    builder: &mut SslContextBuilder,
    chain: &[X509],
    messages: &Arc<CompressedMessages>,
) -> Result<(), ErrorStack> {
    if !messages.is_worthwhile(chain) {
        return Ok(());
    }
    let index = (*MESSAGES).ok_or_else(ErrorStack::get)?;
    builder.set_ex_data(index, Arc::clone(messages));
    for Algorithm { code_point, callback, .. } in ALGORITHMS {
        // SAFETY: the context is live, and the callback is a function of the required type that does not panic.
        let ok =
            unsafe { ffi::SSL_CTX_add_cert_compression_alg(builder.as_ptr(), code_point, callback, None) };
        if ok != 1 {
            return Err(ErrorStack::get());
        }
    }
    Ok(())
}

/// Writes the compressed message; the handshake fails if that is impossible.
unsafe extern "C" fn on_message<const ALGORITHM: usize>(
    ssl: *mut ffi::SSL,
    out: *mut ffi::CBB,
    message: *const u8,
    length: usize,
) -> c_int {
    contained(0, || {
        // SAFETY: BoringSSL passes the connection and a message of this length, which live during the call.
        let (ssl, message) = unsafe { (SslRef::from_ptr(ssl), slice::from_raw_parts(message, length)) };
        let messages = (*MESSAGES).and_then(|index| ssl.ssl_context().ex_data(index));
        let Some(compressed) = messages.and_then(|messages| messages.compressed(ALGORITHM, message)) else {
            return 0;
        };
        count(ALGORITHM, length, compressed.len() + HEADER);
        // SAFETY: the buffer is live and has no child, and the bytes are copied.
        unsafe { ffi::CBB_add_bytes(out, compressed.as_ptr(), compressed.len()) }
    })
}

fn count(algorithm: usize, before: usize, after: usize) {
    static COUNTERS: LazyLock<[[Counter; 2]; ALGORITHMS.len()]> = LazyLock::new(|| {
        ALGORITHMS.map(|Algorithm { name, .. }| {
            ["before", "after"].map(|side| {
                counter!("quadrille_certificate_compression_bytes_total", "algorithm" => name, "side" => side)
            })
        })
    });
    let [counted_before, counted_after] = &COUNTERS[algorithm];
    counted_before.increment(before as u64);
    counted_after.increment(after as u64);
}

impl CompressedMessages {
    /// Returns whether zlib, the quickest of the algorithms, makes the chain clearly shorter.
    fn is_worthwhile(&self, chain: &[X509]) -> bool {
        *self.is_worthwhile.get_or_init(|| {
            let encoded: Vec<u8> = chain.iter().filter_map(|link| link.to_der().ok()).flatten().collect();
            saves_enough(&encoded)
        })
    }

    /// Returns the message by this one of [`ALGORITHMS`].
    fn compressed(&self, algorithm: usize, message: &[u8]) -> Option<Arc<[u8]>> {
        if let Some(known) = self.known(algorithm, message) {
            return Some(known);
        }
        // Not under the lock: another event loop may compress the message too, but does not wait.
        let compressed: Arc<[u8]> = (ALGORITHMS[algorithm].compress)(message).ok()?.into();
        self.keep(algorithm, message, &compressed);
        Some(compressed)
    }

    fn known(&self, algorithm: usize, message: &[u8]) -> Option<Arc<[u8]>> {
        let kept = self.lock();
        kept.iter().find(|known| *known.plain == *message)?.compressed[algorithm].clone()
    }

    fn keep(&self, algorithm: usize, message: &[u8], compressed: &Arc<[u8]>) {
        let mut kept = self.lock();
        if let Some(known) = kept.iter_mut().find(|known| *known.plain == *message) {
            known.compressed[algorithm] = Some(Arc::clone(compressed));
            return;
        }
        if kept.len() == MOST_KEPT {
            kept.pop_front();
        }
        let mut new = Message { plain: message.into(), compressed: Default::default() };
        new.compressed[algorithm] = Some(Arc::clone(compressed));
        kept.push_back(new);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Message>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn saves_enough(encoded: &[u8]) -> bool {
    zlib(encoded).is_ok_and(|compressed| compressed.len() + HEADER + LEAST_SAVED <= encoded.len())
}

fn brotli(message: &[u8]) -> io::Result<Vec<u8>> {
    let parameters = BrotliEncoderParams {
        quality: BROTLI_LEVEL,
        lgwin: BROTLI_WINDOW,
        size_hint: message.len(),
        ..BrotliEncoderParams::default()
    };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut &*message, &mut compressed, &parameters)?;
    Ok(compressed)
}

fn zstd(message: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(message, ZSTD_LEVEL)
}

fn zlib(message: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(ZLIB_LEVEL));
    encoder.write_all(message)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// Returns a text that compresses, different for each number.
    fn text(number: usize) -> Vec<u8> {
        format!("{number}: http://crl.example/ and http://ocsp.example/ and http://crl.example/ ")
            .repeat(9)
            .into()
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(8879);
        (0..length).map(|_| random.u8(..)).collect()
    }

    fn decompressed(algorithm: usize, bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        match ALGORITHMS[algorithm].code_point {
            ZLIB => flate2::read::ZlibDecoder::new(bytes).read_to_end(&mut plain),
            BROTLI => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut plain),
            _ => zstd::stream::read::Decoder::new(bytes).and_then(|mut zstd| zstd.read_to_end(&mut plain)),
        }
        .expect("valid data");
        plain
    }

    #[test]
    fn every_algorithm_shortens_text_and_adds_less_to_noise_than_must_be_saved() {
        for (algorithm, Algorithm { name, compress, .. }) in ALGORITHMS.iter().enumerate() {
            for (plain, most) in [(text(0), text(0).len() / 2), (noise(9_000), 9_000 + LEAST_SAVED)] {
                let compressed = compress(&plain).expect("compression");
                assert_eq!(decompressed(algorithm, &compressed), plain);
                assert!(compressed.len() <= most, "{name}: {}", compressed.len());
            }
        }
    }

    #[test]
    fn noise_is_not_worth_it() {
        assert!(saves_enough(&text(0)));
        assert!(!saves_enough(&noise(2_000)));
        assert!(!saves_enough(&[0; LEAST_SAVED]));
    }

    #[test]
    fn a_message_is_compressed_once_and_few_are_kept() {
        let messages = CompressedMessages::default();
        let first = messages.compressed(0, &text(0)).expect("compression");
        assert!(Arc::ptr_eq(&first, &messages.compressed(0, &text(0)).expect("the same")));
        assert_ne!(first, messages.compressed(1, &text(0)).expect("another algorithm"));
        assert!(Arc::ptr_eq(&first, &messages.compressed(0, &text(0)).expect("the same")));
        for number in 1..=MOST_KEPT {
            let compressed = messages.compressed(0, &text(number)).expect("compression");
            assert_eq!(decompressed(0, &compressed), text(number));
        }
        assert_eq!(messages.lock().len(), MOST_KEPT);
        assert!(!Arc::ptr_eq(&first, &messages.compressed(0, &text(0)).expect("compressed again")));
    }
}
