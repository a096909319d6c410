//! Every operation with every key type, in both modes, with the client as a library. The client verifies each result;
//! raw decryption is verified here.

use crate::support::{Configuration, KeyServer, Site};
use boring::{
    pkey::PKey,
    rsa::{Padding, Rsa},
    x509::X509,
};
use quadrille_engine::{Key, MlDsa, Operation, PublicKey, SignatureScheme};
use quadrille_keyless::{
    Address, Credentials, Trust,
    client::{Client, Failure, Origin, Protocol, RemoteKey, Settings},
    wire::ErrorCode,
};
use std::path::Path;

/// Returns a client with the gateway's certificate.
pub(super) fn client(site: &Site, server: &KeyServer, protocol: Protocol, padding: bool) -> Client {
    client_as(site, server, &site.gateway, protocol, padding)
}

pub(super) fn client_as(
    site: &Site,
    server: &KeyServer,
    pair: &crate::support::Pair,
    protocol: Protocol,
    padding: bool,
) -> Client {
    let read = |path: &Path| std::fs::read(path).expect("reading");
    let chain = X509::stack_from_pem(&read(&pair.chain)).expect("a certificate");
    let key = PKey::private_key_from_pem(&read(&pair.key)).expect("a key");
    let ca = X509::stack_from_pem(&read(&site.certificates.ca())).expect("the CA");
    let servers = vec![server.name().parse::<Address>().expect("an address")];
    let tls = Some((Credentials { chain, key }, Trust(ca)));
    Client::new(Settings { protocol, padding, ..Settings::new(servers, tls) }).expect("a client")
}

pub(super) fn remote(file: &Path) -> RemoteKey {
    let key = Key::from_pem(&std::fs::read(file).expect("reading")).expect("a key");
    RemoteKey::new(key.public().clone()).expect("a public key")
}

pub(super) fn block_on<T>(task: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(task)
}

pub(super) async fn ask(client: &Client, key: &RemoteKey, operation: Operation) -> Result<Vec<u8>, Failure> {
    client.submit(key, operation, Origin::default(), false)?.await.map(|bytes| bytes.to_vec())
}

use SignatureScheme as S;

pub(super) const RSA: [SignatureScheme; 8] = [
    S::RsaPkcs1Md5Sha1,
    S::RsaPkcs1Sha1,
    S::RsaPkcs1Sha256,
    S::RsaPkcs1Sha384,
    S::RsaPkcs1Sha512,
    S::RsaPssSha256,
    S::RsaPssSha384,
    S::RsaPssSha512,
];
pub(super) const ECDSA: [SignatureScheme; 4] = [S::EcdsaSha1, S::EcdsaSha256, S::EcdsaSha384, S::EcdsaSha512];

#[test]
fn every_signature_and_raw_decryption() {
    let site = Site::new();
    let made = &site.certificates;
    let keys: [(&str, crate::support::Pair, &[SignatureScheme]); 9] = [
        ("rsa2048", made.rsa(2048, &["a"]), &RSA),
        ("rsa4096", made.rsa(4096, &["a"]), &RSA),
        ("p256", made.ecdsa("P-256", &["a"]), &ECDSA),
        ("p384", made.ecdsa("P-384", &["a"]), &ECDSA),
        ("p521", made.ecdsa("P-521", &["a"]), &ECDSA),
        ("ed25519", made.ed25519(&["a"]), &[S::Ed25519]),
        ("mldsa44", made.ml_dsa(MlDsa::MlDsa44, &["a"]), &[S::MlDsa(MlDsa::MlDsa44)]),
        ("mldsa65", made.ml_dsa(MlDsa::MlDsa65, &["a"]), &[S::MlDsa(MlDsa::MlDsa65)]),
        ("mldsa87", made.ml_dsa(MlDsa::MlDsa87, &["a"]), &[S::MlDsa(MlDsa::MlDsa87)]),
    ];
    let keys = keys.map(|(name, pair, schemes)| (site.give_away(&pair, name), schemes));
    let policy = Configuration::new("clients: [{client: gateway.example, operations: [sign, decrypt]}]");
    let server = KeyServer::start(&site, &["--policy", &policy.path().display().to_string()]);
    for (protocol, padding) in
        [(Protocol::Batched, false), (Protocol::Batched, true), (Protocol::Compatible, false)]
    {
        block_on(async {
            let client = client(&site, &server, protocol, padding);
            for (file, schemes) in &keys {
                let key = remote(file);
                for scheme in *schemes {
                    let operation = Operation::sign(*scheme, b"a message").expect("an operation");
                    let signed = ask(&client, &key, operation).await;
                    assert!(signed.is_ok(), "{protocol:?} {scheme:?} with {}: {signed:?}", key.key_type());
                }
            }
            decrypt(&client, &keys[0].0).await;
            let key = remote(&keys[0].0);
            let wrong = Operation::Sign { scheme: S::EcdsaSha256, digest: [0; 32].into() };
            let refused = Failure::Refused(ErrorCode::UnexpectedOpcode);
            assert_eq!(ask(&client, &key, wrong).await, Err(refused), "ECDSA with an RSA key");
            let short = Operation::Sign { scheme: S::RsaPssSha256, digest: [0; 31].into() };
            assert_eq!(ask(&client, &key, short).await, Err(Failure::Refused(ErrorCode::Format)));
        });
    }
}

/// Decryption returns the padding, which is removed here.
pub(super) async fn decrypt(client: &Client, file: &Path) {
    let secret = b"a premaster secret, as if";
    let own = Rsa::private_key_from_pem(&std::fs::read(file).expect("reading")).expect("an RSA key");
    let mut ciphertext = vec![0; own.size() as usize];
    own.public_encrypt(secret, &mut ciphertext, Padding::PKCS1).expect("encrypting");
    let key = remote(file);
    let operation = Operation::decrypt(&ciphertext);
    let raw = ask(client, &key, operation).await.expect("a result");
    assert_eq!(raw.len(), 256);
    assert!(raw.starts_with(&[0, 2]) && raw.ends_with(secret));
    assert_eq!(raw[raw.len() - secret.len() - 1], 0);
}

#[test]
fn many_at_once_from_several_clients_share_batches() {
    const EACH: usize = 200;
    let site = Site::new();
    let pair = site.certificates.rsa(2048, &["a"]);
    let file = site.give_away(&pair, "site");
    let server = KeyServer::start(&site, &["--compute-threads", "1"]);
    let (site, server, file) = (&site, &server, &file);
    std::thread::scope(|scope| {
        for protocol in [Protocol::Batched, Protocol::Batched, Protocol::Compatible] {
            scope.spawn(move || {
                block_on(async {
                    let client = client(site, server, protocol, false);
                    let key = remote(file);
                    let answers: Vec<_> = (0..EACH)
                        .map(|_| {
                            let operation = Operation::sign(S::RsaPssSha256, b"message");
                            client
                                .submit(&key, operation.expect("fits"), Origin::default(), false)
                                .expect("room")
                        })
                        .collect();
                    for answer in answers {
                        answer.await.expect("a signature");
                    }
                });
            });
        }
    });
    let counted = |name: &str| server.process.metric(name, &["key_type=\"rsa2048\""]);
    let operations = counted("quadrille_key_operations_total");
    assert_eq!(operations, 3.0 * EACH as f64);
    let batches = counted("quadrille_key_batch_size_count");
    let width = counted("quadrille_key_batch_width").max(1.0);
    println!("{operations} operations in {batches} batches, lanes {width}");
    assert!(width == 1.0 || batches < operations / 2.0, "{batches} batches of {operations} operations");
}

#[test]
fn a_key_that_is_not_there_is_said_to_be_not_there() {
    let site = Site::new();
    let pair = site.certificates.ecdsa("P-256", &["a"]);
    let mut server = KeyServer::start(&site, &[]);
    let public: RemoteKey = {
        let key = Key::from_pem(&std::fs::read(&pair.key).expect("reading")).expect("a key");
        let public: &PublicKey = key.public();
        RemoteKey::new(public.clone()).expect("a public key")
    };
    for protocol in [Protocol::Batched, Protocol::Compatible] {
        let client = client(&site, &server, protocol, false);
        let operation = Operation::sign(S::EcdsaSha256, b"message").expect("an operation");
        let failure = block_on(ask(&client, &public, operation)).expect_err("no such key");
        assert_eq!(failure, Failure::Refused(ErrorCode::KeyNotFound));
    }
    server.process.wait_for_log("reason=\"no_key\"");
    server.process.wait_for_log(&public.ski().to_string());
}
