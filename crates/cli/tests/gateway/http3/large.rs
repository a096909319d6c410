//! Bodies larger than any window, in both directions, verified by checksum.

use super::Served;
use crate::support::{Nginx, http3::Http3};
use boring::hash::{Hasher, MessageDigest};
use std::{
    fs::File,
    io,
    time::{Duration, Instant},
};

const MIB: u64 = 1 << 20;
/// Default size in MiB; `make soak-http3` sends a GiB.
const SIZE: u64 = 64;

#[test]
fn large_bodies_pass_whole_in_both_directions() {
    let size =
        std::env::var("QUADRILLE_HTTP3_MIB").map_or(SIZE, |size| size.parse().expect("a number of MiB"));
    let nginx = Nginx::new("client_max_body_size 0; dav_methods PUT;");
    let mut served = Served::new(
        "upstream: web, timeouts: {handshake_deadline: off}",
        &format!("web: {{servers: [\"{}\"]}}", nginx.address()),
    );
    let mut client = served.connect();
    let began = Instant::now();
    let sent = upload(&mut client, size);
    let uploaded = began.elapsed();
    assert_eq!(digest(File::open(nginx.file("large")).expect("nginx's file")), sent, "nginx's file");
    let began = Instant::now();
    assert_eq!(download(&mut client, size), sent, "the downloaded body");
    println!("{size} MiB up in {uploaded:?}, and down in {:?}", began.elapsed());
}

/// Sends the file, and returns its digest.
fn upload(client: &mut Http3, size: u64) -> Vec<u8> {
    let (mut hasher, end) = (hasher(), deadline(size));
    let id = client.start("PUT", "/large", &[("content-length", &(size * MIB).to_string())], false);
    for number in 0..size {
        let piece = piece(number);
        hasher.update(&piece).expect("SHA-256");
        let mut left = &piece[..];
        while !left.is_empty() {
            assert!(Instant::now() < end, "no end; at MiB {number}");
            assert_eq!(client.answer(id).ended, None, "at MiB {number}: {:?}", client.answer(id));
            let sent = client.write(id, left, number + 1 == size);
            left = &left[sent..];
            client.turn();
        }
    }
    let answer = client.finish(id);
    assert_eq!((answer.status, answer.ended), (201, Some(Ok(()))), "created");
    hasher.finish().expect("SHA-256").to_vec()
}

/// Receives the file, and returns the digest.
fn download(client: &mut Http3, size: u64) -> Vec<u8> {
    let (mut hasher, end) = (hasher(), deadline(size));
    let id = client.start("GET", "/large", &[], true);
    let mut received = 0;
    while client.answer(id).ended.is_none() {
        assert!(Instant::now() < end && !client.quic().is_closed(), "no end after {received} bytes");
        client.turn();
        let body = client.take_body(id);
        received += body.len() as u64;
        hasher.update(&body).expect("SHA-256");
    }
    hasher.update(&client.take_body(id)).expect("SHA-256");
    assert_eq!((client.answer(id).status, client.answer(id).ended), (200, Some(Ok(()))));
    hasher.finish().expect("SHA-256").to_vec()
}

/// Returns a unique MiB.
fn piece(number: u64) -> Vec<u8> {
    let words = (number * MIB / 8..(number + 1) * MIB / 8).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    words.flat_map(u64::to_be_bytes).collect()
}

fn digest(mut file: File) -> Vec<u8> {
    let mut hasher = hasher();
    io::copy(&mut file, &mut hasher).expect("reading");
    hasher.finish().expect("SHA-256").to_vec()
}

fn hasher() -> Hasher {
    Hasher::new(MessageDigest::sha256()).expect("SHA-256")
}

/// Time limit: ten seconds per MiB, for a busy machine.
fn deadline(size: u64) -> Instant {
    Instant::now() + Duration::from_secs(180 + 10 * size)
}
