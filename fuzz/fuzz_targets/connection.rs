//! Bytes read from a connection before TLS: the header of a load balancer, and the ClientHello. Input arrives in pieces
//! whose length is given by the first byte.

#![no_main]
#![allow(dead_code, reason = "the gateway uses the rest")]

use libfuzzer_sys::fuzz_target;
use quadrille_config::model::TrustedProxies;
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// Replacement for the gateway's module: a transport with all bytes available.
#[path = "../../crates/gateway/src/tls"]
mod tls {
    use std::io;

    #[derive(Clone)]
    pub(crate) struct Transport {
        bytes: Vec<u8>,
        begin: usize,
        end: usize,
        piece: usize,
    }

    impl Transport {
        pub(crate) fn new(bytes: &[u8], piece: usize) -> Self {
            Self { bytes: bytes.to_vec(), begin: 0, end: 0, piece }
        }

        pub(crate) fn waiting(&self) -> &[u8] {
            &self.bytes[self.begin..self.end]
        }

        pub(crate) async fn need_more(&mut self) -> io::Result<()> {
            let end = self.bytes.len().min(self.end + self.piece);
            if end == self.end {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.end = end;
            Ok(())
        }

        pub(crate) fn consume(&mut self, count: usize) {
            assert!(count <= self.end - self.begin, "more bytes are consumed than available");
            self.begin += count;
        }
    }

    pub(crate) mod client_hello;
    pub(crate) mod server_name;
}

#[path = "../../crates/gateway/src/listener/proxy_protocol.rs"]
mod proxy_protocol;

fuzz_target!(|input: &[u8]| {
    let Some((&piece, bytes)) = input.split_first() else { return };
    let address = ([127, 0, 0, 1], 1).into();
    let mut found = Vec::new();
    for piece in [usize::from(piece) + 1, usize::MAX / 2] {
        let mut transport = tls::Transport::new(bytes, piece);
        let read = now(proxy_protocol::read(&mut transport, address, address, &TrustedProxies::default()));
        let mut behind = tls::Transport::new(bytes, piece);
        let hello = now(tls::client_hello::peek(&mut behind)).ok();
        let ends = read.ok().map(|ends| (ends.client, ends.local));
        found.push((ends, hello));
    }
    assert_eq!(found[0], found[1], "the result depends on the pieces");
});

/// Polls a future that never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("all bytes are available"),
    }
}
