//! BoringSSL's handling of hints: its own client and server, in one thread, over memory.

use boring::{
    pkey::PKey,
    ssl::{
        ExtensionType, HandshakeError, MidHandshakeSslStream, Ssl, SslContext, SslContextBuilder, SslMethod,
        SslOptions, SslStream, SslVerifyMode, SslVersion,
    },
    x509::X509,
};
use quadrille_engine::{Ceiling, Engine, Group, Policy, ServerShare, Settings, Unobserved, fastest_up_to};
use quadrille_key_share::{hand_over, predict};
use std::{
    cell::RefCell,
    collections::VecDeque,
    io::{self, Read, Write},
    num::NonZeroUsize,
    rc::Rc,
};

const X25519: u16 = 0x001d;
const HYBRID: u16 = 0x11ec;
const P256: u16 = 0x0017;

/// Modification of the engine's response before it is passed on.
type Change = fn(&mut ServerShare);

/// Server that predicts by `groups`.
fn server(groups: &'static [u16], change: Change) -> SslContext {
    let key = rcgen::KeyPair::generate().expect("a key");
    let parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let certificate = parameters.self_signed(&key).expect("a certificate").pem();
    let mut context = SslContext::builder(SslMethod::tls()).expect("a context");
    context.set_certificate(&X509::from_pem(certificate.as_bytes()).expect("PEM")).expect("a certificate");
    let key = PKey::private_key_from_pem(key.serialize_pem().as_bytes()).expect("PEM");
    context.set_private_key(&key).expect("a key");
    context.set_options(SslOptions::CIPHER_SERVER_PREFERENCE);
    context.set_curves_list("X25519MLKEM768:X25519:P-256").expect("groups");
    let engine = engine();
    context.set_select_certificate_callback(move |mut hello| {
        let extension = |code| hello.get_extension(ExtensionType::from(code));
        if let Some(share) = predict(extension, groups, |group| engine.exchanges(group)) {
            // Enough shares for lanes to compute them.
            let mut answer = engine.answer(vec![share; 8]).swap_remove(0).expect("a response");
            change(&mut answer);
            hand_over(hello.ssl_mut(), &answer).expect("memory");
        }
        Ok(())
    });
    context.build()
}

fn engine() -> Engine {
    let (policy, one) = (Policy::default(), NonZeroUsize::MIN);
    let settings = Settings { policy, threads: one, yields: 0, capacity: one, key_exchange: true };
    Engine::start(settings, fastest_up_to(Ceiling::default()), Unobserved).expect("a thread")
}

fn client(configure: impl FnOnce(&mut SslContextBuilder)) -> SslContext {
    let mut context = SslContext::builder(SslMethod::tls()).expect("a context");
    context.set_verify(SslVerifyMode::NONE);
    configure(&mut context);
    context.build()
}

fn with_groups(groups: &str) -> SslContext {
    client(|context| context.set_curves_list(groups).expect("groups"))
}

/// Returns the group, if both ends complete the handshake.
fn shake_hands(server: &SslContext, client: &SslContext) -> Option<u16> {
    let (near, far) = pipe();
    let mut client = begun(Ssl::new(client).expect("a client").setup_connect(near).handshake())?;
    let mut server = begun(Ssl::new(server).expect("a server").setup_accept(far).handshake())?;
    for _ in 0..4 {
        client = client.go_on()?;
        server = server.go_on()?;
    }
    match (client, server) {
        (End::Done(client), End::Done(_)) => client.ssl().curve(),
        _ => None,
    }
}

enum End {
    Going(MidHandshakeSslStream<Pipe>),
    Done(SslStream<Pipe>),
}

impl End {
    fn go_on(self) -> Option<Self> {
        match self {
            Self::Going(going) => begun(going.handshake()),
            done => Some(done),
        }
    }
}

fn begun(result: Result<SslStream<Pipe>, HandshakeError<Pipe>>) -> Option<End> {
    match result {
        Ok(done) => Some(End::Done(done)),
        Err(HandshakeError::WouldBlock(going)) => Some(End::Going(going)),
        Err(_) => None,
    }
}

#[test]
fn both_ends_agree() {
    let server = server(&[HYBRID, X25519, P256], |_| ());
    assert_eq!(shake_hands(&server, &with_groups("P-256")), Some(P256));
    assert_eq!(shake_hands(&server, &with_groups("X25519")), Some(X25519));
    assert_eq!(shake_hands(&server, &with_groups("X25519MLKEM768")), Some(HYBRID));
    assert_eq!(shake_hands(&server, &with_groups("X25519MLKEM768:X25519")), Some(HYBRID));
}

#[test]
fn boringssl_uses_the_response() {
    // With a secret that differs from the client's, the handshake cannot be completed.
    let server = server(&[HYBRID, X25519], |answer| answer.secret[0] ^= 1);
    assert_eq!(shake_hands(&server, &with_groups("X25519")), None);
    assert_eq!(shake_hands(&server, &with_groups("X25519MLKEM768")), None);
    assert_eq!(shake_hands(&server, &with_groups("P-256")), Some(P256), "no hint was passed");
}

#[test]
fn on_p256_the_answer_is_taken_if_there_are_lanes() {
    let lanes = engine().exchanges(Group::P256);
    if !lanes {
        println!("P-256 not tested: this CPU has no lanes for it");
    }
    let changes: [Change; 2] = [|answer| answer.secret[0] ^= 1, |answer| answer.public[40] ^= 1];
    for change in changes {
        let server = server(&[HYBRID, X25519, P256], change);
        let expected = if lanes { None } else { Some(P256) };
        assert_eq!(shake_hands(&server, &with_groups("P-256")), expected);
        assert_eq!(shake_hands(&server, &with_groups("P-256:P-384")), expected);
        // The client sends a share of a group that the server does not support, and gets a HelloRetryRequest for
        // P-256.
        assert_eq!(shake_hands(&server, &with_groups("P-384:P-256")), Some(P256));
    }
    // X25519 comes first: the hint for P-256 is not used.
    let wrong = server(&[P256], |answer| answer.secret[0] ^= 1);
    assert_eq!(shake_hands(&wrong, &with_groups("P-256:X25519")), Some(X25519));
}

#[test]
fn a_response_for_another_group_or_version_is_not_used() {
    // A wrong prediction: the server prefers X25519MLKEM768.
    let wrong: Change = |answer| answer.secret[0] ^= 1;
    let other = server(&[X25519], wrong);
    assert_eq!(shake_hands(&other, &with_groups("X25519MLKEM768:X25519")), Some(HYBRID));
    let tls12 = client(|context| {
        context.set_max_proto_version(Some(SslVersion::TLS1_2)).expect("a version");
    });
    assert_eq!(shake_hands(&server(&[HYBRID, X25519], wrong), &tls12), Some(X25519));
}

#[test]
fn boringssl_computes_after_a_hello_retry_request() {
    // Its share is of a group that the server does not support.
    let server = server(&[HYBRID, X25519], |answer| answer.secret[0] ^= 1);
    assert_eq!(shake_hands(&server, &with_groups("P-384:X25519")), Some(X25519));
}

type Bytes = Rc<RefCell<VecDeque<u8>>>;

/// One of two ends that communicate through memory; never blocks.
#[derive(Debug)]
struct Pipe {
    from: Bytes,
    to: Bytes,
}

fn pipe() -> (Pipe, Pipe) {
    let (one, other) = (Bytes::default(), Bytes::default());
    (Pipe { from: Rc::clone(&one), to: Rc::clone(&other) }, Pipe { from: other, to: one })
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.from.borrow_mut().read(buffer)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
