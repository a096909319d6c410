//! Certificate compression (RFC 8879), with BoringSSL's client and the decoders of other libraries.

use crate::support::{Certificates, Configuration, Gateway, Http3Client, PATIENCE, Pair, document, listener};
use boring::ssl::{
    SslConnector, SslContextBuilder, SslMethod, SslSession, SslSessionCacheMode, SslSignatureAlgorithm,
    SslStream, SslVersion,
};
use boring_sys as ffi;
use std::{
    cell::RefCell,
    ffi::c_int,
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    ptr, slice,
    sync::{Arc, Mutex},
};

const ZLIB: u16 = 1;
const BROTLI: u16 = 2;
const ZSTD: u16 = 3;

const METRIC: &str = "quadrille_certificate_compression_bytes_total";

/// A message that was decompressed: its algorithm, and its length before and after compression.
type Decompressed = (u16, usize, usize);

thread_local! {
    static DECOMPRESSED: RefCell<Vec<Decompressed>> = const { RefCell::new(Vec::new()) };
}

/// Returns the messages that were decompressed since the last call.
fn decompressed() -> Vec<Decompressed> {
    DECOMPRESSED.take()
}

unsafe extern "C" fn decompress<const ALGORITHM: u16>(
    _: *mut ffi::SSL,
    out: *mut *mut ffi::CRYPTO_BUFFER,
    expected: usize,
    data: *const u8,
    length: usize,
) -> c_int {
    // SAFETY: BoringSSL passes this number of bytes.
    let compressed = unsafe { slice::from_raw_parts(data, length) };
    let mut plain = Vec::new();
    let read = match ALGORITHM {
        ZLIB => flate2::read::ZlibDecoder::new(compressed).read_to_end(&mut plain),
        BROTLI => brotli::Decompressor::new(compressed, 4096).read_to_end(&mut plain),
        _ => zstd::stream::read::Decoder::new(compressed).and_then(|mut zstd| zstd.read_to_end(&mut plain)),
    };
    if read.is_err() || plain.len() != expected {
        return 0;
    }
    DECOMPRESSED.with_borrow_mut(|all| all.push((ALGORITHM, plain.len(), length)));
    // SAFETY: the bytes are copied, and BoringSSL frees the buffer.
    unsafe { *out = ffi::CRYPTO_BUFFER_new(plain.as_ptr(), plain.len(), ptr::null_mut()) };
    1
}

/// Makes the context's clients offer these algorithms in this order.
fn offer(builder: &mut SslContextBuilder, algorithms: &[u16]) {
    for &algorithm in algorithms {
        let callback: ffi::ssl_cert_decompression_func_t = match algorithm {
            ZLIB => Some(decompress::<ZLIB>),
            BROTLI => Some(decompress::<BROTLI>),
            ZSTD => Some(decompress::<ZSTD>),
            unknown => panic!("{unknown}"),
        };
        // SAFETY: the context is live, and the callback lives forever.
        let ok =
            unsafe { ffi::SSL_CTX_add_cert_compression_alg(builder.as_ptr(), algorithm, None, callback) };
        assert_eq!(ok, 1);
    }
}

/// Makes the context's clients offer all algorithms.
pub fn offer_all(builder: &mut SslContextBuilder) {
    offer(builder, &[ZSTD, BROTLI, ZLIB]);
}

/// A client that verifies the certificate, and stores sessions.
struct Client {
    connector: SslConnector,
    session: Arc<Mutex<Option<SslSession>>>,
}

impl Client {
    fn new(certificates: &Certificates, algorithms: &[u16]) -> Self {
        Self::with(certificates, algorithms, |_| {})
    }

    fn with(
        certificates: &Certificates,
        algorithms: &[u16],
        change: impl FnOnce(&mut SslContextBuilder),
    ) -> Self {
        let mut builder = SslConnector::builder(SslMethod::tls()).expect("a TLS client");
        builder.set_ca_file(certificates.ca()).expect("the CA");
        builder.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
        let session = Arc::<Mutex<Option<SslSession>>>::default();
        let slot = Arc::clone(&session);
        builder.set_new_session_callback(move |_, session| *slot.lock().expect("a slot") = Some(session));
        offer(&mut builder, algorithms);
        change(&mut builder);
        Self { connector: builder.build(), session }
    }

    /// Sends a request; returns the connection, and the messages that were decompressed.
    fn visit(&self, address: SocketAddr) -> (SslStream<TcpStream>, Vec<Decompressed>) {
        let tcp = TcpStream::connect(address).expect("a connection");
        tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut configuration = self.connector.configure().expect("a connection");
        if let Some(session) = self.session.lock().expect("a slot").take() {
            // SAFETY: the session is from a connection of this connector.
            unsafe { configuration.set_session(&session).expect("a session") };
        }
        let mut tls = configuration.connect("localhost", tcp).expect("a handshake");
        tls.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("a request");
        let mut response = String::new();
        tls.read_to_string(&mut response).expect("a response");
        assert!(response.ends_with("\r\n\r\nok"), "{response}");
        (tls, decompressed())
    }
}

/// Returns a certificate whose chain includes the CA's.
fn chain(certificates: &Certificates) -> Pair {
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let ca = fs::read_to_string(certificates.ca()).expect("the CA");
    let leaf = fs::read_to_string(&pair.chain).expect("the certificate");
    fs::write(&pair.chain, leaf + &ca).expect("writing");
    pair
}

fn gateway(pair: &Pair, keys: &str) -> (Gateway, Configuration) {
    let file = Configuration::new(&document(&[listener(pair, &format!("respond: ok{keys}"))], ""));
    (Gateway::with_config(&file.path(), 1), file)
}

#[test]
fn the_first_of_the_gateways_algorithms_that_a_client_offers_is_used() {
    let certificates = Certificates::new();
    let (gateway, _file) = gateway(&chain(&certificates), "");
    let mut sums = [(BROTLI, "brotli", 0, 0), (ZSTD, "zstd", 0, 0), (ZLIB, "zlib", 0, 0)];
    for (offered, expected) in [
        (&[BROTLI][..], BROTLI),
        (&[ZSTD], ZSTD),
        (&[ZLIB], ZLIB),
        (&[ZLIB, ZSTD], ZSTD),
        (&[ZLIB, BROTLI], BROTLI),
        (&[ZLIB, BROTLI, ZSTD], ZSTD),
        (&[ZLIB], ZLIB),
    ] {
        let (_, seen) = Client::new(&certificates, offered).visit(gateway.address(0));
        let [(algorithm, plain, compressed)] = seen[..] else { panic!("{offered:?}: {seen:?}") };
        assert_eq!(algorithm, expected, "{offered:?}");
        assert!(compressed + 8 + 64 <= plain, "{offered:?}: {plain} became {compressed}");
        let sum = sums.iter_mut().find(|sum| sum.0 == algorithm).expect("a sum");
        (sum.2, sum.3) = (sum.2 + plain, sum.3 + compressed + 8);
    }
    for (_, name, before, after) in sums {
        let counted = |side: &str| gateway.metric(METRIC, &[name, side]);
        assert_eq!((counted("before"), counted("after")), (before as f64, after as f64), "{name}");
    }
}

#[test]
fn nothing_is_compressed_for_other_clients_in_tls_1_2_or_if_it_is_off() {
    let certificates = Certificates::new();
    let pair = chain(&certificates);
    let all = [ZLIB, BROTLI, ZSTD];
    let (on, _file) = gateway(&pair, "");
    assert_eq!(Client::new(&certificates, &[]).visit(on.address(0)).1, []);
    let old = Client::with(&certificates, &all, |builder| {
        builder.set_max_proto_version(Some(SslVersion::TLS1_2)).expect("a version");
    });
    assert_eq!(old.visit(on.address(0)).1, []);
    let (off, _file) = gateway(&pair, ", tls: {certificate_compression: off}");
    assert_eq!(Client::new(&certificates, &all).visit(off.address(0)).1, []);
    for gateway in [on, off] {
        assert!(!gateway.metrics().contains(&format!("{METRIC}{{")), "{}", gateway.metrics());
    }
}

#[test]
fn a_reload_switches_it_off_and_on() {
    let certificates = Certificates::new();
    let pair = chain(&certificates);
    let (gateway, file) = gateway(&pair, "");
    for (keys, messages) in [(", tls: {certificate_compression: off}", 0), ("", 1)] {
        file.replace(&document(&[listener(&pair, &format!("respond: ok{keys}"))], ""));
        gateway.signal("HUP");
        crate::support::eventually("the reload takes effect", || {
            Client::new(&certificates, &[ZSTD]).visit(gateway.address(0)).1.len() == messages
        });
    }
}

#[test]
fn a_resumed_session_has_no_certificate_to_compress() {
    let certificates = Certificates::new();
    let (gateway, _file) = gateway(&chain(&certificates), "");
    let client = Client::new(&certificates, &[BROTLI]);
    for (resumed, messages) in [(false, 1), (true, 0), (true, 0)] {
        let (tls, seen) = client.visit(gateway.address(0));
        assert_eq!((tls.ssl().session_reused(), seen.len()), (resumed, messages));
    }
}

#[test]
fn a_stapled_response_is_compressed_with_its_certificate() {
    let certificates = Certificates::new();
    let pair = chain(&certificates);
    let staple = certificates.path("staple.der");
    // The gateway staples it unread, and this client does not verify it.
    let response = [&[0x30, 0x82, 0x01, 0x00][..], &[7; 256]].concat();
    fs::write(&staple, &response).expect("writing");
    let (chain, key) = (pair.chain.display(), pair.key.display());
    let listener = format!(
        "{{address: '127.0.0.1:0', certificates: [{{chain: {chain}, key: {key}, ocsp: {}}}], respond: ok}}",
        staple.display()
    );
    let file = Configuration::new(&document(&[listener], ""));
    let gateway = Gateway::with_config(&file.path(), 1);
    let lengths: Vec<usize> = [false, true, false, true]
        .into_iter()
        .map(|stapled| {
            let client = Client::with(&certificates, &[ZLIB], |builder| {
                if stapled {
                    builder.enable_ocsp_stapling();
                }
            });
            let (tls, seen) = client.visit(gateway.address(0));
            assert_eq!(tls.ssl().ocsp_status(), stapled.then_some(&response[..]));
            let [(ZLIB, plain, _)] = seen[..] else { panic!("{seen:?}") };
            plain
        })
        .collect();
    assert!(lengths[1] >= lengths[0] + response.len(), "{lengths:?}");
    assert_eq!(lengths[..2], lengths[2..]);
}

#[test]
fn http3_compresses_too() {
    let certificates = Certificates::new();
    let (gateway, _file) = gateway(&chain(&certificates), ", http3: on");
    let mut received = Vec::new();
    for (offered, expected) in [(&[][..], None), (&[ZLIB, ZSTD][..], Some(ZSTD)), (&[BROTLI], Some(BROTLI))] {
        let mut client = Http3Client::configured(&certificates, |builder| offer(builder, offered));
        let _connection = client.connect(gateway.address(0));
        let seen = decompressed();
        assert_eq!(seen.first().map(|(algorithm, ..)| *algorithm), expected, "{seen:?}");
        received.push(seen);
    }
    let after = gateway.metric(METRIC, &["zstd", "after"]) + gateway.metric(METRIC, &["brotli", "after"]);
    let counted: usize = received.iter().flatten().map(|(_, _, compressed)| compressed + 8).sum();
    assert_eq!(after, counted as f64);
}

#[test]
fn a_chain_that_hardly_becomes_shorter_is_sent_as_it_is() {
    let certificates = Certificates::new();
    let (gateway, _file) = gateway(&certificates.ed25519(&["localhost"]), "");
    let client = Client::with(&certificates, &[ZLIB, BROTLI, ZSTD], |builder| {
        let algorithms = [SslSignatureAlgorithm::ECDSA_SECP256R1_SHA256, SslSignatureAlgorithm::ED25519];
        builder.set_verify_algorithm_prefs(&algorithms).expect("algorithms");
    });
    assert_eq!(client.visit(gateway.address(0)).1, []);
}
