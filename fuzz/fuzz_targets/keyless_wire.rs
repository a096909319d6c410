//! The wire protocol of the key server, at both ends. The first byte selects the mode and the length of input pieces.

#![no_main]
#![allow(dead_code, unused_imports, reason = "the gateway uses the rest")]

// The parts of BoringSSL, the engine and the kernels in use are replaced below: they are not linked.
extern crate self as boring;
extern crate self as quadrille_engine;
extern crate self as quadrille_kernels;

pub use key_type::KeyType;
use libfuzzer_sys::fuzz_target;
use session::{ClientSession, KeepAlive, RemoteOperation, ServerEvent, ServerSession};
use std::time::{Duration, Instant};
use wire::{Hints, Incoming, KeyName, Message, Mode, Reader, Request, Writer};

#[path = "../../crates/engine/src/key_type.rs"]
mod key_type;
#[path = "../../crates/keyless/src/session/mod.rs"]
mod session;
#[path = "../../crates/keyless/src/wire/mod.rs"]
mod wire;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let mode = if choice & 1 == 0 { Mode::Compatible } else { Mode::Batched };
    let piece = usize::from(choice >> 1) + 1;
    assert_eq!(serve(mode, bytes, piece), serve(mode, bytes, usize::MAX), "a server sees other requests in pieces");
    assert_eq!(ask(mode, bytes, piece), ask(mode, bytes, usize::MAX), "a client sees other responses in pieces");
    write_again(mode, bytes);
});

/// Runs a server's end on the bytes, with a response to each request.
fn serve(mode: Mode, bytes: &[u8], piece: usize) -> (Vec<ServerEvent>, String) {
    let mut session = ServerSession::new(mode);
    let (mut events, mut end) = (Vec::new(), String::new());
    'all: for bytes in bytes.chunks(piece) {
        session.receive(bytes);
        loop {
            match session.next_event() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(violation) => {
                    end = format!("{violation:?}");
                    break 'all;
                }
            }
        }
    }
    let requests: Vec<u32> = events.iter().filter_map(request_id).collect();
    assert_eq!(session.unanswered(), requests.len(), "a request has been lost, or counts twice");
    requests.iter().for_each(|id| session.reply(*id, Ok(b"result")));
    assert_eq!(session.unanswered(), 0);
    let sent = session.writer().unsent().to_vec();
    let mut reader = Reader::new(mode);
    reader.receive(&sent);
    while reader.next_message().expect("a server sends valid messages").is_some() {}
    assert!(!reader.has_partial_message(), "a partial message was sent");
    (events, end)
}

fn request_id(event: &ServerEvent) -> Option<u32> {
    match event {
        ServerEvent::Request(request) => Some(request.id),
        ServerEvent::Answered | ServerEvent::Withdraw(_) => None,
    }
}

/// Runs a client's end on the bytes, with some responses outstanding.
fn ask(mode: Mode, bytes: &[u8], piece: usize) -> (Vec<String>, String) {
    let now = Instant::now();
    let keep_alive = KeepAlive::Pings { idle: Duration::from_secs(1), stall: Duration::from_secs(1) };
    let mut session = ClientSession::new(now, mode, false, keep_alive);
    for operation in 0..ASKED {
        session.submit(now, Asked(operation), Some(now + Duration::from_secs(5))).expect("room");
    }
    let mut completed = Vec::new();
    for bytes in bytes.chunks(piece) {
        session.receive(now, bytes);
        loop {
            match session.next_event(now) {
                Ok(Some(event)) => completed.push(format!("{event:?}")),
                Ok(None) => break,
                Err(error) => {
                    let left = session.into_operations().len();
                    assert!(left <= usize::from(ASKED), "more operations are outstanding than requested");
                    return (completed, format!("{error:?}"));
                }
            }
        }
    }
    // The first ping's response is an event too.
    assert!(completed.len() <= usize::from(ASKED) + 1, "an operation was completed twice");
    (completed, String::new())
}

const ASKED: u8 = 3;

#[derive(Debug)]
struct Asked(u8);

impl RemoteOperation for Asked {
    fn request(&self, id: u32) -> Request<'_> {
        Request { id, key: KeyName::default(), opcode: 0x15, payload: &[7; 32], hints: Hints::default() }
    }

    fn is_secret(&self) -> bool {
        self.0 == 1
    }

    fn accepts(&self, result: &[u8]) -> bool {
        !result.is_empty()
    }
}

/// Checks that a message keeps its meaning when written and read again.
fn write_again(mode: Mode, bytes: &[u8]) {
    let mut reader = Reader::new(mode);
    reader.receive(bytes);
    while let Ok(Some(incoming)) = reader.next_message() {
        let Incoming::Message(message) = incoming else { continue };
        let mut writer = Writer::new(mode);
        if !writer.put(&message) {
            continue;
        }
        let mut again = Reader::new(mode);
        again.receive(writer.unsent());
        let read = again.next_message().expect("a written message is valid");
        assert_eq!(read, Some(Incoming::Message(message)));
    }
}

mod error {
    #[derive(Debug)]
    pub struct ErrorStack;
}

mod pkey {
    use super::error::ErrorStack;
    use std::marker::PhantomData;

    pub trait HasPublic {}

    #[derive(PartialEq)]
    pub struct Id(u8);

    impl Id {
        pub const RSA: Self = Self(0);
    }

    pub struct PKeyRef<T>(PhantomData<T>);

    impl<T> PKeyRef<T> {
        pub fn public_key_to_der(&self) -> Result<Vec<u8>, ErrorStack> {
            Err(ErrorStack)
        }

        pub fn id(&self) -> Id {
            Id(1)
        }

        pub fn rsa(&self) -> Result<Rsa, ErrorStack> {
            Err(ErrorStack)
        }
    }

    pub struct Rsa;

    impl Rsa {
        pub fn n(&self) -> &Self {
            self
        }

        pub fn to_hex_str(&self) -> Result<String, ErrorStack> {
            Err(ErrorStack)
        }
    }
}

mod sha {
    pub struct Digest<const N: usize>;
    pub type Sha1 = Digest<20>;
    pub type Sha256 = Digest<32>;

    impl<const N: usize> Digest<N> {
        pub fn new() -> Self {
            Self
        }

        pub fn update(&mut self, _: &[u8]) {}

        pub fn finish(self) -> [u8; N] {
            [0; N]
        }
    }
}

pub enum Operation {
    Decrypt { ciphertext: Box<[u8]> },
    Sign { scheme: SignatureScheme, digest: Box<[u8]> },
}

#[derive(Clone, Copy, PartialEq)]
pub enum SignatureScheme {
    RsaPkcs1Md5Sha1,
    RsaPkcs1Sha1,
    RsaPkcs1Sha256,
    RsaPkcs1Sha384,
    RsaPkcs1Sha512,
    RsaPssSha256,
    RsaPssSha384,
    RsaPssSha512,
    EcdsaSha1,
    EcdsaSha256,
    EcdsaSha384,
    EcdsaSha512,
    Ed25519,
    MlDsa(MlDsa),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MlDsa {
    MlDsa44,
    MlDsa65,
    MlDsa87,
}
