//! Clients without access, with limited access, and clients that flood.

use super::operations::{ask, block_on, client, client_as, remote};
use crate::support::{Configuration, KeyServer, Pair, Site, eventually, output, quadrille};
use quadrille_engine::{Operation, SignatureScheme};
use quadrille_keyless::client::{Origin, Protocol};
use std::{
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Instant,
};

struct Setting {
    site: Site,
    server: KeyServer,
    key: PathBuf,
}

impl Setting {
    fn new(flags: &[&str]) -> Self {
        let site = Site::new();
        let pair = site.certificates.rsa(2048, &["localhost"]);
        let key = site.give_away(&pair, "site");
        Self { server: KeyServer::start(&site, flags), site, key }
    }

    /// Runs `ping` with this certificate.
    fn ping(&self, pair: &Pair) -> (bool, String) {
        let mut command = quadrille("keyserver");
        command.args(["ping", "--server", &self.server.name(), "--ca"]).arg(self.site.certificates.ca());
        output(command.arg("--cert").arg(&pair.chain).arg("--key").arg(&pair.key))
    }
}

#[test]
fn expired_and_unknown_certificates_are_refused_and_logged() {
    let mut all = Setting::new(&[]);
    let made = &all.site.certificates;
    let expired = Pair { chain: made.path("expired.pem"), key: all.site.gateway.key.clone() };
    made.sign(&expired.key, &expired.chain, &["late.example"], -1);
    let stranger = crate::support::Certificates::new().ecdsa("P-256", &["stranger.example"]);
    let unknown = Pair { chain: made.path("unknown.pem"), key: made.path("unknown.key") };
    // The other CA's directory is removed with it, so the pair is made here again, by another CA.
    drop(stranger);
    let other = Site::new();
    std::fs::copy(&other.gateway.chain, &unknown.chain).expect("copying");
    std::fs::copy(&other.gateway.key, &unknown.key).expect("copying");

    assert!(all.ping(&all.site.gateway).0, "the right certificate is accepted");
    for (pair, reason) in [(&expired, "certificate has expired"), (&unknown, "unable to get local issuer")] {
        let (ok, said) = all.ping(pair);
        assert!(!ok, "{said}");
        all.server.process.wait_for_log(reason);
    }
    all.server.process.wait_for_log("late.example");
    let refused = "quadrille_keyserver_refused_connections_total";
    all.server.process.wait_for_metric(refused, &["handshake"], |count| count >= 2.0);
    // Without any certificate.
    let address = format!("127.0.0.1:{}", all.server.port);
    let script = format!("timeout 300 openssl s_client -connect {address} </dev/null 2>&1; true");
    output(std::process::Command::new("sh").args(["-c", &script]));
    all.server.process.wait_for_log("PEER_DID_NOT_RETURN_A_CERTIFICATE");
    assert!(all.ping(&all.site.gateway).0, "the right certificate is still accepted");
}

#[test]
fn clients_outside_the_policy_are_rejected_at_once_and_after_a_change() {
    let policy = Configuration::new("clients: [{client: gateway.example}]");
    let mut all = Setting::new(&["--policy", &policy.path().display().to_string()]);
    let other = all.site.certificates.ecdsa("P-256", &["other.example"]);
    assert!(all.ping(&all.site.gateway).0);
    assert!(!all.ping(&other).0);
    all.server.process.wait_for_log("the policy does not name the client");
    policy.replace("clients: [{client: gateway.example, keys: [another]}, {client: other.example}]");
    crate::support::eventually("the policy is not read", || all.ping(&other).0);
    let key = remote(&all.key);
    let sign = || Operation::sign(SignatureScheme::RsaPssSha256, b"m").expect("an operation");
    let refused = block_on(ask(&client(&all.site, &all.server, Protocol::Auto, false), &key, sign()));
    assert!(refused.is_err(), "the key is not for this client");
    let served = client_as(&all.site, &all.server, &other, Protocol::Auto, false);
    assert!(block_on(ask(&served, &key, sign())).is_ok());
    // An invalid policy keeps the previous one in use.
    policy.replace("clients: [{clint: a.example}]");
    all.server.process.wait_for_log("did you mean `client`?");
    assert!(block_on(ask(&client(&all.site, &all.server, Protocol::Auto, false), &key, sign())).is_err());
}

/// A CA is trusted only for its configured type of name: it cannot identify hosts by mail addresses or URIs, nor
/// users of this machine.
#[test]
fn a_policy_means_names_of_one_kind() {
    let policy = Configuration::new("clients: []");
    let socket = format!("unix:{}", policy.path().with_file_name("keys.sock").display());
    let user = std::fs::metadata(policy.path()).expect("a file").uid();
    let unrestricted = Setting::new(&["--policy", &policy.path().display().to_string(), "--listen", &socket]);
    let with_names = |file: &str, common: &str, names: &str| {
        let pair = unrestricted.site.certificates.ecdsa("P-256", &[&format!("{file}.invalid")]);
        let extensions = if names.is_empty() { String::new() } else { format!("subjectAltName={names}\n") };
        unrestricted.site.certificates.sign_as(&pair.key, &pair.chain, common, 30, &extensions);
        pair
    };
    let uid = format!("uid:{user}");
    let certificates = [
        ("dns", with_names("dns", "x", "DNS:a.edge.example")),
        ("email", with_names("email", "x", "email:root@a.edge.example")),
        ("uri", with_names("uri", "x", "URI:https://a.edge.example")),
        ("uid as a URI", with_names("uid", &uid, &format!("URI:{uid}"))),
        ("uid as a common name", with_names("common", &uid, "")),
    ];
    let on_socket = || output(quadrille("keyserver").args(["ping", "--server", &socket])).0;
    for (client, served, user_is_served) in [
        ("'*.edge.example'", &["dns"][..], false),
        ("'dns:*'", &["dns"], false),
        ("'email:*'", &["email"], false),
        ("'uri:https://*'", &["uri"], false),
        (uid.as_str(), &[], true),
        ("'uid:*'", &[], true),
        ("'*'", &["dns", "email", "uri", "uid as a URI", "uid as a common name"], false),
    ] {
        let marker = with_names("marker", "x", "DNS:marker.example");
        policy.replace("clients: [{client: marker.example}]");
        crate::support::eventually("the policy is not read", || unrestricted.ping(&marker).0);
        policy.replace(&format!("clients: [{{client: {client}}}]"));
        let all = client == "'*'" || client == "'dns:*'";
        crate::support::eventually("the policy is not read", || all || !unrestricted.ping(&marker).0);
        for (name, pair) in &certificates {
            let expected = served.contains(name);
            match all {
                // The served clients show whether this policy has been loaded.
                true if expected => crate::support::eventually(name, || unrestricted.ping(pair).0),
                _ => assert_eq!(unrestricted.ping(pair).0, expected, "{client}: {name}"),
            }
        }
        assert_eq!(on_socket(), user_is_served, "{client}");
    }
}

#[test]
fn a_rate_is_kept_and_what_is_beyond_is_refused_and_logged() {
    let policy = Configuration::new("clients: [{client: '*', rate: 2}]");
    let mut all = Setting::new(&["--policy", &policy.path().display().to_string()]);
    let key = remote(&all.key);
    let began = Instant::now();
    let served = block_on(async {
        let client = client(&all.site, &all.server, Protocol::Auto, false);
        let mut served = 0;
        for _ in 0..200 {
            let operation = Operation::sign(SignatureScheme::RsaPssSha256, b"m").expect("fits");
            served += usize::from(ask(&client, &key, operation).await.is_ok());
        }
        served
    });
    let most = 2 + 2 * (began.elapsed().as_secs() as usize + 1);
    assert!((2..=most).contains(&served), "{served} of at most {most}");
    all.server.process.wait_for_log("reason=\"rate\"");
    let refused = "quadrille_keyserver_refused_total";
    all.server.process.wait_for_metric(refused, &["reason=\"rate\""], |count| count as usize == 200 - served);
}

/// One client has a thousand operations in flight; another sends one at a time, and few of the first client's
/// operations are computed before each of them.
#[test]
fn a_flood_stands_in_no_clients_way() {
    const IN_FLIGHT: usize = 1000;
    let unrestricted = Setting::new(&["--compute-threads", "1", "--backend", "scalar"]);
    let other = unrestricted.site.certificates.ecdsa("P-256", &["other.example"]);
    let key = remote(&unrestricted.key);
    let sign = || Operation::sign(SignatureScheme::RsaPssSha256, b"m").expect("an operation");
    let (answered, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let flooded = || answered.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let _flood_ends = SetWhenDropped(&over);
        scope.spawn(|| {
            block_on(async {
                let client =
                    client_as(&unrestricted.site, &unrestricted.server, &other, Protocol::Batched, false);
                let mut answers = std::collections::VecDeque::new();
                while !over.load(Ordering::Relaxed) {
                    while answers.len() < IN_FLIGHT {
                        answers
                            .push_back(client.submit(&key, sign(), Origin::default(), false).expect("room"));
                    }
                    let answer = answers.pop_front().expect("one").await;
                    answered.fetch_add(usize::from(answer.is_ok()), Ordering::Relaxed);
                }
            });
        });
        eventually("the flood does not begin", || flooded() > 300);
        let client = client(&unrestricted.site, &unrestricted.server, Protocol::Batched, false);
        // Without fairness, each operation would wait for the thousand before it. On a busy machine, the flood's
        // thread may count some operations late.
        eventually("the flood comes first", || {
            let mut before: Vec<_> = (0..20)
                .map(|_| {
                    let began = flooded();
                    block_on(ask(&client, &key, sign())).expect("a signature");
                    flooded() - began
                })
                .collect();
            before.sort_unstable();
            println!("{} operations of the flood were computed meanwhile (median)", before[10]);
            before[10] < IN_FLIGHT / 2
        });
    });
}

/// Ends the flood even if the test panics.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
