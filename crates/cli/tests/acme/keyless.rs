//! Certificate keys that are generated on a key server and never leave it.

use crate::{
    authority::{Behaviour, PATIENCE, Pebble, leaf, shown, wait_for_certificate},
    fleet::Fleet,
    support::{Gateway, KeyServer, Site, eventually, succeed},
};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

const NAME: &str = "k.example.com";
/// Name of the gateway that the policy allows all required operations.
const ALLOWED: &str = "[sign, generate]";

/// A key server whose policy allows the gateway these operations with keys of that name.
struct Keys {
    site: Site,
    server: KeyServer,
}

impl Keys {
    fn start(operations: &str, more: &str) -> Self {
        let site = Site::new();
        let this = policy(&site, NAME, operations, more);
        let server = KeyServer::start(&site, &["--policy", &this]);
        Self { site, server }
    }

    fn restart(&mut self) {
        let policy = self.site.certificates.path("policy.yaml").display().to_string();
        self.server.process.signal("KILL");
        self.server.process.wait(PATIENCE).expect("its end");
        self.server = KeyServer::start_at(&self.site, self.server.port, &["--policy", &policy]);
    }

    /// Returns an order whose key is generated there.
    fn order(&self, rest: &str) -> String {
        format!("{{ names: [{NAME}]{rest}, {} }}", keyless(&self.site, &[self.server.name()]))
    }

    /// Returns the files in its key directory.
    fn files(&self) -> Vec<PathBuf> {
        files(&self.site.keys())
    }
}

/// Writes the policy.
fn policy(site: &Site, name: &str, operations: &str, more: &str) -> String {
    let file = site.certificates.path("policy.yaml");
    let text = format!(
        "clients: [{{client: gateway.example, keys: ['{name}.*'], operations: {operations}{more}}}]\n"
    );
    fs::write(&file, text).expect("writing");
    file.display().to_string()
}

fn keyless(site: &Site, servers: &[String]) -> String {
    let key = site.keyless(servers, "");
    key[1..key.len() - 1].to_owned()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

/// Returns the text of all files in a directory except the account's, whose key is the gateway's.
fn all_text(directory: &Path) -> String {
    let text = |file: PathBuf| match (file.is_dir(), file.file_name().and_then(|name| name.to_str())) {
        (true, _) => all_text(&file),
        (_, Some(name)) if name.starts_with("account-") => String::new(),
        _ => String::from_utf8_lossy(&fs::read(&file).expect("a file")).into_owned(),
    };
    files(directory).into_iter().map(text).collect()
}

/// Returns a line of each private key in PEM files, to search for elsewhere.
fn lines_of_keys(files: &[PathBuf]) -> Vec<String> {
    let text = |file: &PathBuf| fs::read_to_string(file).expect("a key");
    let line = |pem: String| {
        let mut lines = pem.lines().skip_while(|line| !line.contains("BEGIN PRIVATE KEY")).skip(1);
        lines.next().expect("a line").to_owned()
    };
    files.iter().map(text).map(line).collect()
}

fn public_key(arguments: &[&str], input: &Path) -> String {
    succeed(Command::new("openssl").args(arguments).arg("-in").arg(input))
}

const ECDSA: &[&str] = &["-sigalgs", "ECDSA+SHA256"];
const RSA: &[&str] = &["-sigalgs", "RSA-PSS+SHA256"];

#[test]
fn keys_are_made_used_and_replaced_on_the_key_server_and_never_leave_it() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let mut keys = Keys::start(ALLOWED, "");
    let mut gateway = pebble.gateway(&keys.order(", key_types: [ecdsa-p256, rsa-2048]"));
    let root = pebble.root();
    let ecdsa = wait_for_certificate(&gateway, &root, NAME, ECDSA);
    let rsa = wait_for_certificate(&gateway, &root, NAME, RSA);
    assert!(ecdsa.contains("signature type: ECDSA") && rsa.contains("signature type: RSA-PSS"));
    gateway.wait_for_log("a certificate authority has validated a name");

    // The key server has the keys of these certificates, in files with mode 0600.
    let made = keys.files();
    assert_eq!(made.len(), 2, "{made:?}");
    for (file, served) in made.iter().zip([&ecdsa, &rsa]) {
        assert_eq!(fs::metadata(file).expect("a file").permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(file).expect("a key");
        assert!(text.starts_with("Generated-For: gateway.example\nReference: k.example.com."), "{text:.80}");
        let shown = pebble.path("shown.pem");
        fs::write(&shown, format!("{}-----END CERTIFICATE-----\n", leaf(served))).expect("writing");
        let certified = public_key(&["x509", "-noout", "-pubkey"], &shown);
        assert_eq!(public_key(&["pkey", "-pubout"], file), certified);
    }
    // These operations: the CSR, the challenge certificates, and the validation handshakes.
    let signed = keys.server.process.metric(
        "quadrille_keyserver_operations_total",
        &["gateway.example", "(generated)", "\"sign\"", "ok"],
    );
    assert!(signed >= 6.0, "{signed}\n{}", keys.server.process.metrics());
    // The gateway has only certificates.
    assert!(!all_text(&pebble.state()).contains("PRIVATE"), "a private key is in the state directory");
    let url = format!("https://{NAME}:{}/", gateway.port());
    let resolve = format!("{NAME}:{}:127.0.0.1", gateway.port());
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--fail", "--max-time", "300", "--resolve", &resolve, "--cacert"]).arg(&root);
    assert_eq!(succeed(curl.arg(&url)), "hello");

    keys.restart();
    eventually("the key server's keys outlive it", || shown(gateway.address(0), &root, NAME, ECDSA).is_ok());

    // The first renewal keeps the old keys for handshakes in progress, and the second removes them.
    let mut before = [leaf(&ecdsa).to_owned(), leaf(&rsa).to_owned()];
    for renewal in 1..=2 {
        pebble.cert(&["renew", NAME]);
        for (algorithm, before) in [ECDSA, RSA].into_iter().zip(&mut before) {
            eventually("another certificate", || match shown(gateway.address(0), &root, NAME, algorithm) {
                Ok(text) if leaf(&text) != *before => {
                    *before = leaf(&text).to_owned();
                    true
                }
                _ => false,
            });
        }
        eventually("the keys of these certificates and of those before", || keys.files().len() == 4);
        assert_eq!(made.iter().all(|file| file.exists()), renewal == 1);
        for algorithm in [ECDSA, RSA] {
            shown(gateway.address(0), &root, NAME, algorithm).expect("it serves");
        }
    }

    let secrets = lines_of_keys(&keys.files());
    let pages = |process: &Gateway| {
        let pages = ["/metrics", "/status", "/config"].map(|page| process.admin_page(page));
        [pages.concat(), process.log()].concat()
    };
    let seen =
        [pages(&gateway), pages(&keys.server.process), pebble.cert(&["list"]), all_text(&pebble.state())];
    assert!(!secrets.iter().any(|secret| seen.concat().contains(secret)));
}

#[test]
fn a_policy_that_does_not_say_so_has_no_key_made_and_no_order_placed() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let keys = Keys::start("[sign]", "");
    let mut gateway = pebble.gateway(&keys.order(""));
    gateway.wait_for_log("no certificate could be ordered");
    let log = gateway.log();
    assert!(
        log.contains("does not allow this gateway to generate keys")
            && log.contains("operations: [sign, generate]")
            && log.contains("k.example.com.ecdsa-p256"),
        "{log}"
    );
    eventually("the refusal is not logged", || keys.server.process.log().contains("operation refused"));
    assert!(keys.files().is_empty() && !pebble.log().contains("/order-plz"), "{}", pebble.log());
    // An order for another name is denied too.
    policy(&keys.site, "other.example.com", ALLOWED, "");
    let denied = |gateway: &Gateway| gateway.log().matches("does not allow this gateway to").count();
    let before = denied(&gateway);
    eventually("the policy is read", || {
        keys.server.process.log().contains("keys, policy and certificates read again")
    });
    pebble.cert(&["renew", NAME]);
    eventually("it is refused again", || denied(&gateway) > before);
    assert!(keys.files().is_empty());
    // Once the policy allows it, the order succeeds.
    policy(&keys.site, NAME, ALLOWED, "");
    wait_for_certificate(&gateway, &pebble.root(), NAME, &[]);
}

#[test]
fn without_a_policy_no_key_is_made() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let site = Site::new();
    let server = KeyServer::start(&site, &[]);
    let order = format!("{{ names: [{NAME}], {} }}", keyless(&site, &[server.name()]));
    let mut gateway = pebble.gateway(&order);
    gateway.wait_for_log("does not allow this gateway to generate keys");
    assert!(files(&site.keys()).is_empty() && pebble.issued() == 0);
}

#[test]
fn another_client_has_no_key_made() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let keys = Keys::start(ALLOWED, "");
    let stranger = keys.site.certificates.ecdsa("P-256", &["stranger.example"]);
    let own = &keys.site.gateway;
    let order = keys
        .order("")
        .replace(&own.chain.display().to_string(), &stranger.chain.display().to_string())
        .replace(&own.key.display().to_string(), &stranger.key.display().to_string());
    let mut gateway = pebble.gateway(&order);
    gateway.wait_for_log("no certificate could be ordered");
    assert!(gateway.log().contains("check that its policy names this client"), "{}", gateway.log());
    eventually("the key server does not log the rejected client", || {
        let log = keys.server.process.log();
        log.contains("stranger.example") && log.contains("the policy does not name the client")
    });
    assert!(keys.files().is_empty() && pebble.issued() == 0);
}

#[test]
fn there_are_no_more_keys_than_the_policy_allows() {
    let Some(pebble) = Pebble::start(&Behaviour::default()) else { return };
    let keys = Keys::start(ALLOWED, ", generated_keys: 1");
    let mut gateway = pebble.gateway(&keys.order(", key_types: [ecdsa-p256, ecdsa-p384]"));
    gateway.wait_for_log("no certificate could be ordered");
    assert!(
        gateway.log().contains("holds as many keys of this gateway as its policy allows"),
        "{}",
        gateway.log()
    );
    assert_eq!((keys.files().len(), pebble.issued()), (1, 1), "{}", gateway.log());
}

/// The key of a failed order is used by the next one, even in another process.
#[test]
fn a_key_without_a_certificate_is_used_by_the_next_order() {
    let Some(mut pebble) = Pebble::prepare() else { return };
    let mut keys = Keys::start(ALLOWED, "");
    let file = pebble.configuration(&keys.order(""), "");
    let mut gateway = Gateway::with_config(&file, 1);
    gateway.wait_for_log("cannot reach the certificate authority");
    let made = keys.files();
    assert_eq!(made.len(), 1);
    drop(gateway);
    keys.restart();
    let gateway = Gateway::with_config(&file, 1);
    let failed = || gateway.metric("quadrille_acme_orders_total", &["failed"]);
    for _ in 0..2 {
        let before = failed();
        pebble.cert(&["renew", NAME]);
        eventually("it fails again", || failed() > before);
    }
    let behaviour = Behaviour::default();
    pebble.configure(&behaviour);
    pebble.run(&behaviour);
    pebble.cert(&["renew", NAME]);
    wait_for_certificate(&gateway, &pebble.root(), NAME, &[]);
    assert_eq!(keys.files(), made);

    // A key that has been removed is generated again.
    let first = leaf(&shown(gateway.address(0), &pebble.root(), NAME, &[]).expect("it serves")).to_owned();
    pebble.stop();
    let read = || keys.server.process.log().matches("read again").count();
    let before = read();
    pebble.cert(&["renew", NAME]);
    // A key that is added and removed between two scans of the key server is not a change.
    eventually("a key for the next one", || keys.files().len() == 2 && read() > before);
    let new: Vec<_> = keys.files().into_iter().filter(|file| !made.contains(file)).collect();
    fs::remove_file(&new[0]).expect("removing");
    eventually("the key server sees it", || {
        !keys.server.process.admin_page("/config").contains(&stem(&new[0]))
    });
    pebble.run(&behaviour);
    let root = pebble.root();
    // This authority has no account either. Each failure would increase the delay.
    for told in ["does not know the account", "the next attempt generates another"] {
        pebble.cert(&["renew", NAME]);
        eventually(told, || gateway.log().contains(told));
    }
    pebble.cert(&["renew", NAME]);
    eventually("another certificate", || {
        shown(gateway.address(0), &root, NAME, &[]).is_ok_and(|now| leaf(&now) != first)
    });
}

fn stem(file: &Path) -> String {
    file.file_stem().expect("a name").to_string_lossy().into_owned()
}

/// Two key servers share a directory, and the gateways of a fleet share certificates: no gateway has a key.
#[test]
fn a_fleet_with_two_key_servers_orders_once_and_has_no_key() {
    let Some(mut fleet) = Fleet::start(0, "tls-alpn-01", "") else { return };
    let site = Site::new();
    let policy = policy(&site, "all.example.com", ALLOWED, "");
    let servers = [(); 2].map(|()| KeyServer::start(&site, &["--policy", &policy]));
    let names: Vec<_> = servers.iter().map(KeyServer::name).collect();
    for index in 0..3 {
        let text = fs::read_to_string(fleet.file(index)).expect("the configuration");
        let order = format!("names: [all.example.com], {}", keyless(&site, &names));
        fs::write(fleet.file(index), text.replace("names: [all.example.com]", &order)).expect("writing");
    }
    (0..2).for_each(|_| fleet.join());
    let root = fleet.authority_begins();
    let (first, _) = fleet.all_serve(&root, "");
    assert_eq!((fleet.pebble.issued(), files(&site.keys()).len()), (1, 1), "{}", fleet.logs());
    // A gateway that joins receives the certificate from Redis.
    fleet.join();
    let newcomer = wait_for_certificate(&fleet.gateways[2], &root, "all.example.com", &[]);
    assert_eq!((leaf(&newcomer), fleet.pebble.issued()), (&first[..], 1));
    for index in 0..3 {
        let state = all_text(&fleet.state(index));
        assert!(state.contains("BEGIN CERTIFICATE") && !state.contains("PRIVATE"), "gateway {index}");
    }
    // One of the two key servers is sufficient.
    let [one, other] = servers;
    drop(one);
    for gateway in &fleet.gateways {
        shown(gateway.address(0), &root, "all.example.com", &[]).expect("the other one signs");
    }
    fleet.renew(1);
    fleet.all_serve(&root, &first);
    assert_eq!(files(&site.keys()).len(), 2);
    drop(other);
}
