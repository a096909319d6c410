//! Key servers that do not respond, or violate the protocol: another one takes over, and the error is reported.

use crate::{
    key_servers::{serve, site},
    servers::{Start, haproxy, nginx},
    support::{Site, fail, handshake, set_mode},
};
use quadrille_keyless::wire::{Incoming, Message, Mode, Reader, Request, Writer};
use std::{
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Bytes that a bad server sends for a request of this id.
type Answer = fn(id: u32) -> Vec<u8>;

fn nothing(_id: u32) -> Vec<u8> {
    Vec::new()
}

fn a_reply_to_another_request(id: u32) -> Vec<u8> {
    let mut writer = Writer::new(Mode::Batched);
    writer.put(&Message::Reply { id: id + 1000, result: Ok(&[7; 256]) });
    writer.unsent().to_vec()
}

fn a_wrong_result(id: u32) -> Vec<u8> {
    let mut writer = Writer::new(Mode::Batched);
    writer.put(&Message::Reply { id, result: Ok(&[7; 256]) });
    writer.unsent().to_vec()
}

/// Starts a key server NAME that sends these responses. Returns the number of requests read; its threads end with the
/// test's process.
fn bad_key_server(site: &Site, name: &str, answer: Answer) -> Arc<AtomicUsize> {
    let path = site.path(&format!("{name}.sock"));
    let listener = UnixListener::bind(&path).expect("a socket");
    set_mode(&path, 0o666);
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let count = Arc::clone(&count);
            thread::spawn(move || drop(misbehave(stream, answer, &count)));
        }
    });
    requests
}

fn misbehave(mut stream: UnixStream, answer: Answer, requests: &AtomicUsize) -> std::io::Result<()> {
    let (mut reader, mut buffer) = (Reader::new(Mode::Batched), [0; 4096]);
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        reader.receive(&buffer[..count]);
        while let Ok(Some(incoming)) = reader.next_message() {
            if let Incoming::Message(Message::Request(Request { id, .. })) = incoming {
                requests.fetch_add(1, Ordering::Relaxed);
                stream.write_all(&answer(id))?;
            }
        }
    }
}

/// Tests handshakes of a server that prefers a bad key server and has a good one.
fn beside_a_good_one(answer: Answer) {
    for start in [nginx, haproxy] as [Start; 2] {
        let site = site();
        let requests = bad_key_server(&site, "bad", answer);
        let _good = site.key_server("good", &["rsa"]);
        site.stand_in("remote.key", &["bad", "good"], "rsa", &[]);
        let (running, port) = serve(&site, start, "remote.key");
        for _ in 0..3 {
            assert!(handshake(&site, port, "").is_some(), "{}", running.log());
        }
        assert!(requests.load(Ordering::Relaxed) > 0, "the bad key server received no request");
    }
}

#[test]
fn a_silent_key_server_is_left_for_another() {
    beside_a_good_one(nothing);
}

#[test]
fn a_wrong_result_is_not_believed_and_its_server_named() {
    beside_a_good_one(a_wrong_result);
    let site = site();
    site.write("message", "x");
    bad_key_server(&site, "bad", a_wrong_result);
    let uri = site.uri(&["bad"], "rsa");
    let said = fail(site.with_provider("openssl").args(["dgst", "-sha256", "-sign", &uri, "message"]));
    assert!(said.contains("bad.sock") && said.contains("wrong result"), "{said}");
}

#[test]
fn a_key_server_that_breaks_the_protocol_is_left_for_another_and_named() {
    beside_a_good_one(a_reply_to_another_request);
    let site = site();
    site.write("message", "x");
    bad_key_server(&site, "bad", a_reply_to_another_request);
    let uri = site.uri(&["bad"], "rsa");
    let said = fail(site.with_provider("openssl").args(["dgst", "-sha256", "-sign", &uri, "message"]));
    assert!(said.contains("bad.sock") && said.contains("which is not open"), "{said}");
}
