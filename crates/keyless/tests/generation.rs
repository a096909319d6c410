//! Generation and removal of keys over a connection, as a policy allows.

use quadrille_engine::{Engine, Key, KeyType, MlDsa, Operation, Scalar, SignatureScheme, Unobserved};
use quadrille_keyless::{
    Address,
    client::{Client, KeyChangeError, Origin, Refusal, RemoteKey, Settings},
    server::{ClientPattern, Limits, Pattern, Policy, Rule, Server, Threads},
    wire::ErrorCode,
};
use std::{fs, num::NonZeroUsize, os::unix::net::UnixListener, path::Path, sync::Arc};
use tempfile::TempDir;

const KIND: KeyType = KeyType::EcdsaP256;

/// Key server with its own directory, on a Unix socket.
struct KeyServer {
    directory: TempDir,
    server: Server,
}

impl KeyServer {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("keys")).expect("a directory");
        let (policy, threads) = (quadrille_engine::Policy::default(), NonZeroUsize::MIN);
        let capacity = NonZeroUsize::MIN.saturating_add(63);
        let settings =
            quadrille_engine::Settings { policy, threads, yields: 0, capacity, key_exchange: false };
        let engine = Engine::start(settings, Scalar, Unobserved).expect("a thread");
        let server = Server::new(engine, NonZeroUsize::MIN);
        let threads = Arc::new(Threads::start(&server, NonZeroUsize::MIN).expect("a thread"));
        let listener = UnixListener::bind(directory.path().join("socket")).expect("a socket");
        tokio::spawn(threads.accept_unix(listener));
        Self { directory, server }
    }

    fn keys(&self) -> std::path::PathBuf {
        self.directory.path().join("keys")
    }

    /// Allows this process operations on keys of this name.
    fn allow(&self, keys: &str, generate: bool, most: usize) {
        let limits = Limits { generated_keys: NonZeroUsize::new(most).expect("one"), ..Limits::default() };
        let (client, keys) = (ClientPattern::new("uid:*").expect("a name"), Pattern::new(keys));
        let keys = vec![keys.expect("a name")];
        let rule = Rule { client, keys, sign: true, decrypt: false, generate, limits };
        self.server.set_policy(Policy { rules: Some(vec![rule]) });
    }

    fn client(&self) -> Client {
        let servers = vec![Address::Unix(self.directory.path().join("socket"))];
        Client::new(Settings::new(servers, None)).expect("a client")
    }
}

async fn signs(client: &Client, key: &RemoteKey) -> bool {
    let operation = Operation::sign(SignatureScheme::EcdsaSha256, b"anything").expect("an operation");
    client.submit(key, operation, Origin::default(), false).expect("a place").await.is_ok()
}

fn refusal<T>(result: Result<T, KeyChangeError>) -> Option<ErrorCode> {
    let error = result.err()?;
    let mut refusals = error.refusals();
    match refusals.next()?.1 {
        Refusal::Refused(code) => Some(*code),
        other => panic!("{other}"),
    }
}

fn put(directory: &Path, name: &str) -> RemoteKey {
    let key = Key::generate(KIND).expect("a key");
    let pem = key.pkey().private_key_to_pem_pkcs8().expect("PEM");
    fs::write(directory.join(format!("{name}.pem")), pem).expect("writing");
    RemoteKey::new(key.public().clone()).expect("a key")
}

#[tokio::test]
async fn keys_are_made_and_removed_as_far_as_the_policy_says() {
    let all = KeyServer::start();
    let client = all.client();
    let own = put(&all.keys(), "a.own");
    all.server.load_keys(&all.keys()).expect("keys");
    assert_eq!(refusal(client.generate(KIND, "a").await), Some(ErrorCode::Denied), "without a policy");
    all.allow("a*", false, 9);
    assert_eq!(refusal(client.generate(KIND, "a").await), Some(ErrorCode::Denied), "off by default");
    all.allow("a*", true, 2);
    assert_eq!(refusal(client.generate(KIND, "b").await), Some(ErrorCode::Denied), "another name");
    assert_eq!(refusal(client.generate(KIND, "a/../b").await), Some(ErrorCode::Format));
    let (one, two) =
        (client.generate(KIND, "a").await.expect("a"), client.generate(KIND, "a").await.expect("a"));
    assert_ne!(one.ski(), two.ski());
    assert!(signs(&client, &one).await && signs(&client, &two).await, "at once");
    assert_eq!(refusal(client.generate(KIND, "ab").await), Some(ErrorCode::TooManyKeys));

    // Keys installed by the operator stay, and so do keys that another rule covers.
    assert_eq!(refusal(client.remove(own.ski()).await), Some(ErrorCode::Denied));
    all.allow("other", true, 2);
    client.remove(one.ski()).await.expect("the key does not exist for this client");
    all.allow("a*", true, 2);
    assert!(signs(&client, &own).await && signs(&client, &one).await);
    client.remove(one.ski()).await.expect("the key belongs to this client");
    assert!(!signs(&client, &one).await && signs(&client, &two).await);
    assert_eq!(fs::read_dir(all.keys()).expect("a directory").count(), 2);
    client.remove(one.ski()).await.expect("removing a removed key succeeds");
    // There is room again; and a re-read key is the same.
    client.generate(KIND, "ab").await.expect("a key");
    all.server.load_keys(&all.keys()).expect("keys");
    assert!(signs(&client, &two).await && signs(&client, &own).await);
    assert_eq!(all.server.keys().iter().count(), 3);
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_to_is_an_error_and_no_key() {
    let all = KeyServer::start();
    all.server.load_keys(&all.keys()).expect("keys");
    all.allow("*", true, 9);
    fs::remove_dir(all.keys()).expect("removing");
    assert_eq!(refusal(all.client().generate(KIND, "a").await), Some(ErrorCode::Internal));
    assert_eq!(all.server.keys().iter().count(), 0);
}

#[tokio::test]
async fn a_reload_at_the_same_time_loses_no_key() {
    let all = KeyServer::start();
    all.server.load_keys(&all.keys()).expect("keys");
    all.allow("*", true, 99);
    let client = all.client();
    let (server, keys) = (all.server.clone(), all.keys());
    let reloading = std::thread::spawn(move || (0..200).for_each(|_| _ = server.load_keys(&keys)));
    for index in 0..20 {
        let key = client.generate(KIND, "a").await.expect("a key");
        assert!(signs(&client, &key).await, "key {index}");
    }
    reloading.join().expect("reloads");
    assert_eq!(all.server.keys().iter().count(), 20);
}

#[tokio::test]
async fn keys_of_ml_dsa_are_made() {
    let all = KeyServer::start();
    all.server.load_keys(&all.keys()).expect("keys");
    all.allow("a*", true, 8);
    let client = all.client();
    for set in MlDsa::ALL {
        let key = client.generate(KeyType::MlDsa(set), "a").await.expect("a key");
        for when in ["at once", "read again"] {
            let operation = Operation::sign(SignatureScheme::MlDsa(set), b"anything").expect("an operation");
            let signed = client.submit(&key, operation, Origin::default(), false).expect("a place").await;
            assert!(signed.is_ok(), "{set:?} {when}");
            all.server.load_keys(&all.keys()).expect("keys");
        }
    }
}
