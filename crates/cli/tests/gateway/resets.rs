//! Rapid reset: streams that clients reset immediately, each of which costs an upstream connection.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, document, eventually,
    frames::{DATA, Frames, GOAWAY, RST_STREAM},
    listener,
};
use std::{net::TcpListener, sync::mpsc, thread};

/// HTTP/2 error codes (RFC 9113 section 7).
const CANCEL: [u8; 4] = 8_u32.to_be_bytes();
const ENHANCE_YOUR_CALM: &[u8] = &11_u32.to_be_bytes();

/// The gateway resets uploads that it does not read, and the client has sent more of them by then.
#[test]
fn data_for_many_reset_uploads_does_not_end_the_connection() {
    const UPLOADS: u32 = 200;
    const LATE: usize = 8;
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let file = Configuration::new(&document(&[listener(&pair, "respond: ok")], ""));
    let gateway = Gateway::with_config(&file.path(), 1);
    let mut frames = Frames::connect(&Connector::new(&certificates), gateway.address(0), 1 << 20);
    let streams = || (0..UPLOADS).map(|index| 2 * index + 1);
    streams().for_each(|stream| frames.post(stream, "/"));
    for _ in streams() {
        frames.expect(RST_STREAM);
    }
    for stream in streams() {
        (0..LATE).for_each(|_| frames.send(DATA, 0, stream, b"late"));
    }
    frames.get(2 * UPLOADS + 1, "/");
    loop {
        let frame = frames.next().expect("a frame");
        assert_ne!(frame.kind, GOAWAY, "{frame:?}");
        if (frame.kind, frame.stream) == (DATA, 2 * UPLOADS + 1) {
            break assert_eq!(frame.payload, b"ok");
        }
    }
}

/// A flood of frames for streams that are closed, none of which the gateway remembers.
#[test]
fn a_client_that_floods_closed_streams_is_cut_off() {
    const MOST: u32 = 20_000;
    const PING: u8 = 6;
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let file = Configuration::new(&document(&[listener(&pair, "respond: ok")], ""));
    let gateway = Gateway::with_config(&file.path(), 1);
    let mut frames = Frames::connect(&Connector::new(&certificates), gateway.address(0), 1 << 20);
    // Streams with lower numbers count as closed (RFC 9113 section 5.1.1).
    frames.get(2 * MOST + 1, "/");
    let mut streams = (0..MOST).map(|index| 2 * index + 1);
    let mut is_open = true;
    while is_open && streams.len() > 0 {
        let sent = streams.by_ref().take(200).all(|stream| frames.try_send(DATA, 0, stream, b"x").is_ok());
        is_open = sent && frames.try_send(PING, 0, 0, &[0; 8]).is_ok();
        while is_open {
            match frames.next() {
                Ok(frame) if frame.kind == PING => break,
                Ok(frame) => is_open = frame.kind != GOAWAY,
                Err(_) => is_open = false,
            }
        }
    }
    assert!(!is_open, "the connection is still open");
}

#[test]
fn a_client_that_resets_its_streams_one_by_one_is_cut_off() {
    const MOST: usize = 500;
    let (arrived, arrivals) = mpsc::channel();
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = upstream.local_addr().expect("an address");
    // A server that accepts and does not respond.
    thread::spawn(move || {
        let accepted = upstream.incoming().map_while(Result::ok);
        accepted.map_while(|stream| arrived.send(stream).ok()).for_each(drop);
    });
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let web = format!("web: {{servers: [\"{address}\"], retries: 0}}");
    let file = Configuration::new(&document(&[listener(&pair, "upstream: web")], &web));
    let gateway = Gateway::with_config(&file.path(), 1);
    let mut frames = Frames::connect(&Connector::new(&certificates), gateway.address(0), 1 << 20);
    let mut streams = 0;
    while frames.try_get(2 * streams as u32 + 1, "/").is_ok() && streams < MOST {
        // The request has been forwarded, unless the client was disconnected.
        let mut arrival = None;
        eventually("the request reaches no server", || {
            arrival = arrivals.try_recv().ok();
            arrival.is_some() || gateway.metric("quadrille_connections", &[]) == 0.0
        });
        if arrival.is_none() {
            break;
        }
        frames.send(RST_STREAM, 0, 2 * streams as u32 + 1, &CANCEL);
        streams += 1;
    }
    assert!((100..MOST).contains(&streams), "{streams} streams");
    let goaway = frames.expect(GOAWAY);
    assert_eq!(&goaway.payload[4..8], ENHANCE_YOUR_CALM);
    assert!(frames.next().is_err(), "the connection is closed");
}
