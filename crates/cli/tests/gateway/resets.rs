//! Rapid reset: streams that clients reset immediately, each of which costs an upstream connection.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, document, eventually,
    frames::{Frames, GOAWAY, RST_STREAM},
    listener,
};
use std::{net::TcpListener, sync::mpsc, thread};

/// HTTP/2 error codes (RFC 9113 section 7).
const CANCEL: [u8; 4] = 8_u32.to_be_bytes();
const ENHANCE_YOUR_CALM: &[u8] = &11_u32.to_be_bytes();

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
