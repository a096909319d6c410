//! PKCS#11 tokens that hang, are removed and reset, refuse the PIN, and return wrong results.

use super::{
    PATIENT,
    operations::{ask, block_on, client, remote},
    progress,
    tokens::{start, store},
    under_load,
};
use crate::support::{KeyServer, Pair, Site, SoftHsm, eventually, ports, refused};
use quadrille_engine::{Operation, SignatureScheme as S};
use quadrille_keyless::client::{Answer, Client, Failure, Origin, Protocol};

/// A token with one key, behind a key server.
struct Behind {
    site: Site,
    token: SoftHsm,
    pair: Pair,
    server: KeyServer,
}

impl Behind {
    fn start(settings: &str) -> Self {
        let site = Site::new();
        let token = SoftHsm::new(&site.certificates, "token");
        let pair = site.certificates.ecdsa("P-256", &["localhost"]);
        store(&site, &token, &pair, "site", "01", settings);
        let server = start(&site, &token, &[]);
        Self { site, token, pair, server }
    }

    fn client(&self) -> Client {
        client(&self.site, &self.server, Protocol::Batched, false)
    }

    /// Returns the failure of one signature, if there is one.
    fn sign(&self) -> Result<(), Failure> {
        block_on(async { sign(&self.client(), &self.pair).await })
    }

    fn failures(&self, reason: &str) -> f64 {
        let reason = format!("reason=\"{reason}\"");
        self.server.process.metric("quadrille_pkcs11_failures_total", &["token=\"keys\"", &reason])
    }
}

/// Submits this many signatures at once.
fn submit(client: &Client, pair: &Pair, count: usize) -> Vec<Answer> {
    let key = remote(&pair.key);
    let one = |_| {
        let operation = Operation::sign(S::EcdsaSha256, b"a message").expect("an operation");
        client.submit(&key, operation, Origin::default(), false).expect("room")
    };
    (0..count).map(one).collect()
}

async fn succeeded(submitted: Vec<Answer>) -> usize {
    let mut count = 0;
    for one in submitted {
        count += usize::from(one.await.is_ok());
    }
    count
}

async fn sign(client: &Client, pair: &Pair) -> Result<(), Failure> {
    let operation = Operation::sign(S::EcdsaSha256, b"a message").expect("an operation");
    ask(client, &remote(&pair.key), operation).await.map(drop)
}

#[test]
fn a_hanging_token_costs_only_its_own_operations() {
    let mut behind = Behind::start("&x-timeout=300ms&x-sessions=2");
    let file = behind.site.certificates.ecdsa("P-256", &["in-a-file"]);
    std::fs::copy(&file.key, behind.site.keys().join("file.pem")).expect("copying");
    eventually("the key was not added", || {
        behind.server.process.metric("quadrille_keyserver_keys", &[]) == 2.0
    });
    behind.sign().expect("a signature");
    behind.token.begin("hang");
    // Each thread hangs; afterwards operations fail without waiting for their deadline.
    while behind.failures("hanging") == 0.0 {
        behind.sign().expect_err("the token hangs");
    }
    assert!(behind.failures("timeout") > 0.0 && behind.token.hanging() <= 2);
    // More operations than the connection may have in the engine, and others on the same connection.
    block_on(async {
        let client = behind.client();
        let hanging = submit(&client, &behind.pair, 500);
        assert_eq!(succeeded(submit(&client, &file, 50)).await, 50);
        assert_eq!(succeeded(hanging).await, 0);
    });
    behind.token.end("hang");
    behind.server.process.wait_for_log("responds again");
    eventually("the token is not used again", || behind.sign().is_ok());
}

#[test]
fn another_key_server_replaces_a_hanging_token() {
    let behind = Behind::start("&x-timeout=300ms");
    let backup = behind.site.certificates.path("backup");
    std::fs::create_dir(&backup).expect("a directory");
    std::fs::copy(&behind.pair.key, backup.join("site.pem")).expect("copying");
    let second = KeyServer::run(behind.site.command_of(&backup), ports::free(), &[]);
    let key = behind.site.keyless(&[behind.server.name(), second.name()], "timeout: 160s");
    let (gateway, _file) = behind.site.serve(&[behind.site.listener(&behind.pair.chain, &key, PATIENT)]);
    under_load(&behind.site, &gateway, |load| {
        behind.token.begin("hang");
        eventually("the token is not used", || {
            progress(load, 1);
            behind.token.hanging() > 0
        });
        progress(load, 60);
        behind.token.end("hang");
        progress(load, 40);
    });
    let failed = gateway.metric("quadrille_handshake_failures_total", &["reason=\"key_server\""]);
    assert_eq!(failed, 0.0, "{}", gateway.log());
}

#[test]
fn a_token_that_was_removed_is_used_again() {
    let mut behind = Behind::start("&x-timeout=100s");
    behind.sign().expect("a signature");
    let logins = behind.token.logins();
    behind.token.begin("removed");
    behind.sign().expect_err("the token is removed");
    behind.server.process.wait_for_log("PKCS#11 token is not available");
    behind.token.end("removed");
    eventually("the token is not used again", || behind.sign().is_ok());
    behind.server.process.wait_for_log("PKCS#11 token is available again");
    assert!(behind.token.logins() > logins, "it was logged in again");
}

#[test]
fn a_token_that_lost_its_login_costs_no_operation() {
    let behind = Behind::start("&x-timeout=100s");
    behind.sign().expect("a signature");
    for _ in 0..3 {
        let logins = behind.token.logins();
        behind.token.begin("reset");
        behind.sign().expect("a signature after another login");
        assert_eq!(behind.token.logins(), logins + 1);
    }
}

#[test]
fn a_key_that_was_imported_again_is_found() {
    let behind = Behind::start("&x-timeout=100s");
    behind.sign().expect("a signature");
    behind.token.delete_keys();
    behind.token.import(&behind.pair, "site", "01");
    eventually("the key is not used again", || behind.sign().is_ok());
}

#[test]
fn a_wrong_pin_is_tried_once() {
    let mut behind = Behind::start("&x-timeout=100s&x-sessions=1");
    behind.sign().expect("a signature");
    behind.token.set_pin("9999");
    // The session is lost, and the next one needs the PIN.
    behind.token.begin("removed");
    behind.sign().expect_err("the token is removed");
    behind.token.end("removed");
    behind.server.process.wait_for_log("PKCS#11 token is not available");
    let before = behind.token.logins();
    let rejected = "it is not tried again, so that the token is not locked";
    eventually("the PIN was not tried", || {
        behind.sign().expect_err("the PIN is wrong");
        behind.server.process.log().contains(rejected)
    });
    for _ in 0..20 {
        behind.sign().expect_err("the PIN is wrong");
    }
    assert_eq!(behind.token.logins(), before + 1);
    behind.token.correct_pin();
    eventually("the corrected PIN is not used", || behind.sign().is_ok());
    behind.server.process.wait_for_log("PKCS#11 token is available again");
}

#[test]
fn a_key_server_does_not_start_with_a_wrong_pin() {
    let site = Site::new();
    let token = SoftHsm::new(&site.certificates, "token");
    for name in ["a", "b"] {
        let pair = site.certificates.ecdsa("P-256", &[name]);
        let file = store(&site, &token, &pair, name, if name == "a" { "01" } else { "02" }, "");
        // With the public key known, an absent token would be a warning; a rejected PIN is not.
        let uri = std::fs::read_to_string(&file).expect("reading");
        let chain = std::fs::read_to_string(&pair.chain).expect("reading");
        std::fs::write(&file, uri + &chain).expect("writing");
    }
    token.set_pin("9999");
    let mut command = site.command();
    token.provide(&mut command);
    let said = refused(command.args(["--listen", "127.0.0.1:0", "--admin", "off"]));
    assert!(said.contains("rejected the PIN") && said.contains("correct the PIN in its source"), "{said}");
    assert_eq!(token.logins(), 1, "two keys, one attempt");
    assert!(!said.contains("9999"));
}

#[test]
fn wrong_results_do_not_leave_the_key_server() {
    let behind = Behind::start("&x-timeout=100s");
    behind.sign().expect("a signature");
    behind.token.begin("wrong");
    behind.sign().expect_err("the signature is wrong");
    assert!(behind.failures("wrong") > 0.0);
    behind.token.end("wrong");
    behind.sign().expect("a signature");
}

#[test]
fn sixteen_clients_at_once() {
    const CLIENTS: usize = 16;
    const EACH: usize = 50;
    let behind = Behind::start("&x-timeout=100s&x-sessions=4");
    let done = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    block_on(async { succeeded(submit(&behind.client(), &behind.pair, EACH)).await })
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("a client")).sum::<usize>()
    });
    assert_eq!(done, CLIENTS * EACH);
    assert!(behind.token.logins() <= 4, "{}", behind.token.logins());
}
