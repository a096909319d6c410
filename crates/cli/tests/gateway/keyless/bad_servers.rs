//! Faulty key servers (wrong results, delays, malformed frames) beside a good one: no handshake fails, and the faults
//! are reported.

use super::{PATIENT, progress, under_load};
use crate::support::{KeyServer, Site};
use quadrille_keyless::wire::{Hints, Incoming, Message, Mode, Reader, Request, Ski, Writer};
use std::{
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

/// The bytes that a bad server sends in response to a request.
type Answer = fn(mode: Mode, id: u32) -> Vec<u8>;

/// A server that responds correctly to pings, and arbitrarily to requests. Its threads end with the test's process.
fn bad_server(path: &Path, answer: Answer) -> Arc<AtomicUsize> {
    let listener = UnixListener::bind(path).expect("a socket");
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let count = Arc::clone(&count);
            thread::spawn(move || drop(misbehave(stream, answer, &count)));
        }
    });
    asked
}

fn misbehave(mut stream: UnixStream, answer: Answer, asked: &AtomicUsize) -> std::io::Result<()> {
    let mut buffer = [0; 4096];
    let mut count = stream.read(&mut buffer)?;
    let Some(mode) = Mode::from_first_byte(buffer[0]) else { return Ok(()) };
    let mut reader = Reader::new(mode);
    while count > 0 {
        reader.receive(&buffer[..count]);
        while let Ok(Some(incoming)) = reader.next_message() {
            match incoming {
                Incoming::Message(Message::Ping { id, data }) => {
                    stream.write_all(&bytes(mode, &[Message::Pong { id, data }]))?;
                }
                Incoming::Message(Message::Request(Request { id, .. })) => {
                    asked.fetch_add(1, Ordering::Relaxed);
                    stream.write_all(&answer(mode, id))?;
                }
                _ => {}
            }
        }
        count = stream.read(&mut buffer)?;
    }
    Ok(())
}

fn bytes(mode: Mode, messages: &[Message<'_>]) -> Vec<u8> {
    let mut writer = Writer::new(mode);
    messages.iter().for_each(|message| assert!(writer.put(message)));
    writer.unsent().to_vec()
}

fn reply(mode: Mode, id: u32) -> Vec<u8> {
    bytes(mode, &[Message::Reply { id, result: Ok(&[7; 256]) }])
}

/// Runs load on a gateway with a bad server and a good one; returns the gateway's log.
fn beside_a_good_one(answer: Answer, protocol: &str) -> String {
    let site = Site::new();
    let pair = site.certificates.rsa(2048, &["localhost"]);
    site.give_away(&pair, "site");
    let good = KeyServer::start(&site, &[]);
    let socket = site.certificates.path("bad.sock");
    let asked = bad_server(&socket, answer);
    let servers = [format!("unix:{}", socket.display()), good.name()];
    let key = site.keyless(&servers, &format!("protocol: {protocol}, timeout: 160s"));
    let (gateway, _file) = site.serve(&[site.listener(&pair.chain, &key, PATIENT)]);
    under_load(&site, &gateway, |load| progress(load, 60));
    assert!(asked.load(Ordering::Relaxed) > 0, "the bad server received no request");
    assert_eq!(gateway.metric("quadrille_handshake_failures_total", &["reason=\"key_server\""]), 0.0);
    [gateway.log(), gateway.metrics()].concat()
}

#[test]
fn a_wrong_result_is_seen_reported_and_not_asked_for_again() {
    for protocol in ["auto", "compatible"] {
        let said = beside_a_good_one(reply, protocol);
        assert!(said.contains("WRONG RESULT"), "{said}");
        let counted = said.lines().find(|line| {
            line.starts_with("quadrille_keyless_operations_total") && line.contains("result=\"wrong\"")
        });
        assert!(counted.is_some_and(|line| line.ends_with(" 1")), "{counted:?}");
    }
}

#[test]
fn slow_answers() {
    beside_a_good_one(
        |mode, id| {
            thread::sleep(Duration::from_millis(300));
            bytes(mode, &[Message::Reply { id, result: Err(quadrille_keyless::wire::ErrorCode::Internal) }])
        },
        "auto",
    );
}

#[test]
fn no_answers_at_all() {
    beside_a_good_one(|_, _| Vec::new(), "auto");
}

#[test]
fn truncated_frames() {
    // The server seems to be silent; its later bytes are read as the rest of the frame, and are invalid.
    let said = beside_a_good_one(|mode, id| reply(mode, id)[..60].to_vec(), "auto");
    let noticed = ["violated the protocol", "WRONG RESULT", "quadrille_keyless_hedges_total"];
    assert!(noticed.iter().any(|sign| said.contains(sign)), "{said}");
}

#[test]
fn oversized_frames() {
    let said = beside_a_good_one(|_, _| vec![2, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff, 0xf0], "auto");
    assert!(said.contains("exceeds the maximum length"), "{said}");
}

#[test]
fn duplicated_replies() {
    for protocol in ["auto", "compatible"] {
        let refusal = |mode, id| {
            let error = Err(quadrille_keyless::wire::ErrorCode::KeyNotFound);
            [bytes(mode, &[Message::Reply { id, result: error }]), reply(mode, id)].concat()
        };
        let said = beside_a_good_one(refusal, protocol);
        assert!(said.contains("which is not open"), "{said}");
    }
}

#[test]
fn frames_that_no_server_sends() {
    let said = beside_a_good_one(
        |mode, id| {
            let request = Request {
                id,
                key: Ski([0; 20]).into(),
                opcode: 0x77,
                payload: b"what?",
                hints: Hints::default(),
            };
            bytes(mode, &[Message::Request(request)])
        },
        "auto",
    );
    assert!(said.contains("is not allowed from this end"), "{said}");
    let said = beside_a_good_one(|_, _| b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "compatible");
    assert!(said.contains("unsupported protocol version 72"), "{said}");
}
