//! Clients that violate QUIC and HTTP/3: each receives the specified error code, and others are served.

use super::Served;
use crate::support::{
    Certificates, Configuration, Gateway, Http3Client, PATIENCE, Pair, document, eventually, http3::Http3,
    listener,
};
use std::time::Duration;

const STREAM_CREATION: u64 = 0x103;
const CLOSED_CRITICAL_STREAM: u64 = 0x104;
const FRAME_UNEXPECTED: u64 = 0x105;
const FRAME_ERROR: u64 = 0x106;
const EXCESSIVE_LOAD: u64 = 0x107;
const ID_ERROR: u64 = 0x108;
const SETTINGS_ERROR: u64 = 0x109;
const MISSING_SETTINGS: u64 = 0x10a;
const QPACK_DECOMPRESSION: u64 = 0x200;

/// Client stream ids: the first request, and the first two unidirectional streams.
const REQUEST: u64 = 0;
const CONTROL: u64 = 2;
const OTHER: u64 = 6;

/// RFC 9000 section 16.
fn varint(value: u64) -> Vec<u8> {
    match value {
        0..0x40 => vec![value as u8],
        0x40..0x4000 => (value as u16 | 0x4000).to_be_bytes().to_vec(),
        0x4000..0x4000_0000 => (value as u32 | 0x8000_0000).to_be_bytes().to_vec(),
        _ => (value | 0xc000_0000_0000_0000).to_be_bytes().to_vec(),
    }
}

/// RFC 9114 section 7.1.
fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    [varint(kind), varint(payload.len() as u64), payload.to_vec()].concat()
}

/// `GET https://localhost/`, by QPACK's static table.
fn headers() -> Vec<u8> {
    frame(1, &[&[0, 0, 0xd1, 0xd7, 0xc1, 0x50, 9][..], b"localhost"].concat())
}

/// Returns the type of the control stream, and settings.
fn control() -> Vec<u8> {
    [&[0][..], &frame(4, &[])].concat()
}

fn say(client: &mut Http3, stream: u64, bytes: &[u8], last: bool) {
    let mut left = bytes;
    while !left.is_empty() || last {
        match client.quic().stream_send(stream, left, last) {
            Ok(count) => left = &left[count..],
            Err(quiche::Error::Done) => {}
            // The error has been received already.
            Err(quiche::Error::StreamStopped(_)) => return,
            Err(error) => panic!("cannot send: {error}"),
        }
        if left.is_empty() {
            break;
        }
        client.turn();
        if client.quic().peer_error().is_some() {
            return;
        }
    }
    client.send();
}

#[test]
fn what_is_reserved_is_passed_over() {
    let mut served = Served::new("respond: hi", "");
    let mut client = served.client.connect_raw(served.gateway.address(0));
    // Settings, frames and streams of reserved types (RFC 9114 sections 7.2.4.1, 7.2.8 and 6.2.3).
    let reserved = 0x1f * 7 + 0x21;
    let settings = frame(4, &[varint(reserved), varint(99)].concat());
    say(&mut client, CONTROL, &[&[0][..], &settings, &frame(reserved, b"nothing")].concat(), false);
    say(&mut client, OTHER, &[varint(reserved), b"and nothing".to_vec()].concat(), true);
    // Nothing can be inserted into a dynamic table of zero bytes, and no state is kept for it.
    let insert = [&[0x4a][..], b"custom-key", &[0x0c], b"custom-value"].concat();
    let inserts: Vec<u8> = std::iter::repeat_n(insert, 10_000).flatten().collect();
    say(&mut client, OTHER + 4, &[&[2, 0x3f, 0xbd, 0x01][..], &inserts].concat(), false);
    let request = [frame(reserved, &[7; 1000]), headers(), frame(reserved, b""), frame(0, b"")].concat();
    say(&mut client, REQUEST, &request, true);
    let answer = client.read_raw(REQUEST);
    assert!(answer.ends_with(b"hi"), "{answer:?}");
}

#[test]
fn protocol_violations_close_the_connection_with_their_code() {
    let mut served = Served::new("respond: hi", "");
    let huge = [varint(1), varint((1 << 62) - 1), vec![0; 100]].concat();
    let goaway = |id| frame(7, &varint(id));
    let cases: &[(&str, u64, Vec<u8>, bool, u64)] = &[
        ("data before the header", REQUEST, [frame(0, b"x"), headers()].concat(), false, FRAME_UNEXPECTED),
        ("settings of a request", REQUEST, frame(4, &[]), false, FRAME_UNEXPECTED),
        ("GOAWAY on a request stream", REQUEST, [headers(), goaway(0)].concat(), false, FRAME_UNEXPECTED),
        (
            "a promise of a client",
            REQUEST,
            [headers(), frame(5, &[0, 0, 0])].concat(),
            false,
            FRAME_UNEXPECTED,
        ),
        ("an endless header", REQUEST, huge.clone(), false, EXCESSIVE_LOAD),
        (
            "an index beyond the table",
            REQUEST,
            frame(1, &[0, 0, 0xff, 0xff, 0x7f]),
            false,
            QPACK_DECOMPRESSION,
        ),
        ("an index into no table", REQUEST, frame(1, &[2, 0, 0x80]), false, QPACK_DECOMPRESSION),
        ("something before settings", CONTROL, [vec![0], goaway(0)].concat(), false, MISSING_SETTINGS),
        ("settings twice", CONTROL, [control(), frame(4, &[])].concat(), false, FRAME_UNEXPECTED),
        ("settings of HTTP/2", CONTROL, [vec![0], frame(4, &[2, 1])].concat(), false, SETTINGS_ERROR),
        ("endless settings", CONTROL, [vec![0], frame(4, &[0x21; 3000])].concat(), false, FRAME_ERROR),
        ("a header that controls", CONTROL, [control(), headers()].concat(), false, FRAME_UNEXPECTED),
        ("data that controls", CONTROL, [control(), frame(0, b"x")].concat(), false, FRAME_UNEXPECTED),
        ("GOAWAY with a larger id", CONTROL, [control(), goaway(4), goaway(8)].concat(), false, ID_ERROR),
        ("fewer pushes", CONTROL, [control(), frame(13, &[9]), frame(13, &[8])].concat(), false, ID_ERROR),
        ("no more control", CONTROL, control(), true, CLOSED_CRITICAL_STREAM),
        ("a push of a client", CONTROL, vec![1, 0], false, STREAM_CREATION),
    ];
    let mut wrong = Vec::new();
    for (what, stream, bytes, last, code) in cases {
        let mut client = served.client.connect_raw(served.gateway.address(0));
        say(&mut client, *stream, bytes, *last);
        let closed = client.closes_within(PATIENCE);
        if closed != Some(*code) {
            wrong.push(format!("{what}: {closed:x?} instead of {code:x}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let mut twice = served.client.connect_raw(served.gateway.address(0));
    say(&mut twice, CONTROL, &control(), false);
    say(&mut twice, OTHER, &control(), false);
    assert_eq!(twice.closed_with(), STREAM_CREATION);
    assert_eq!(served.connect().get("/").text(), "hi", "other clients are served");
    served.gateway.wait_for_metric("quadrille_connections", &[], |open| open <= 1.0);
}

/// Two bytes of QPACK that decode to a hundred: the decoded size is limited, not the encoded size.
#[test]
fn a_header_that_grows_when_it_is_decoded_is_refused() {
    let mut served = Served::new("respond: hi", "");
    let bomb = [vec![0, 0], [0xff, 85 - 63].repeat(100_000)].concat();
    let mut client = served.client.connect_raw(served.gateway.address(0));
    say(&mut client, REQUEST, &frame(1, &bomb), true);
    assert_eq!(client.closed_with(), EXCESSIVE_LOAD);
    assert_eq!(served.connect().get("/").text(), "hi");
}

/// RFC 9000 section 4.6.
#[test]
fn no_more_requests_are_under_way_than_allowed() {
    let mut served = Served::new("respond: hi", "");
    let mut client = served.client.connect_raw(served.gateway.address(0));
    assert_eq!(client.quic().peer_streams_left_bidi(), 250);
    for index in 0..250 {
        // Each request is started and remains incomplete.
        say(&mut client, 4 * index, &headers()[..3], false);
    }
    assert_eq!(client.quic().peer_streams_left_bidi(), 0);
    let more = client.quic().stream_send(4 * 250, b"x", false);
    assert_eq!(more, Err(quiche::Error::StreamLimit));
    for index in 0..250 {
        say(&mut client, 4 * index, &headers()[3..], true);
        assert!(client.read_raw(4 * index).ends_with(b"hi"));
    }
    client.run_until("no more streams", |_| true);
    while client.quic().peer_streams_left_bidi() == 0 {
        client.turn();
    }
}

/// RFC 9000 section 8.1: an unvalidated (possibly spoofed) address receives at most three times the bytes that it
/// sent, regardless of the certificates' size and the gateway's retransmissions.
#[test]
fn an_address_without_proof_is_sent_three_times_as_much_at_most() {
    let certificates = Certificates::new();
    let pair = long_chain(&certificates);
    let file = Configuration::new(&document(&[listener(&pair, "http3: on, respond: hi")], ""));
    let gateway = Gateway::with_config(&file.path(), 1);
    let mut client = Http3Client::new(&certificates);
    let mut silent = client.begin(gateway.address(0), None);
    let (sent, mut received) = (silent.sent_bytes, 0);
    eventually("the gateway has no more to send", || {
        received += silent.overhear(Duration::from_millis(20));
        received > 2 * sent
    });
    received += silent.overhear(Duration::from_secs(2));
    assert!(received <= 3 * sent, "{received} bytes for {sent}");
    assert_eq!(
        client.connect(gateway.address(0)).get("/").text(),
        "hi",
        "a validated address receives everything"
    );
}

/// Returns a certificate whose chain is larger than the amplification limit.
fn long_chain(certificates: &Certificates) -> Pair {
    let pair = certificates.rsa(2048, &["localhost"]);
    let mut chain = std::fs::read_to_string(&pair.chain).expect("a chain");
    for number in 0..6 {
        let other = certificates.rsa(2048, &[&format!("{number}.example")]);
        chain += &std::fs::read_to_string(other.chain).expect("a chain");
    }
    assert!(chain.len() > 5500, "{}", chain.len());
    std::fs::write(&pair.chain, chain).expect("a file");
    pair
}
