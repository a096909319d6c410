//! HTTP Basic authentication. The hashes are made by `htpasswd`, as users make them.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Http3Client, Pair, Response, curl_status, document,
    echo_server, eventually, http3::Sending, listener, succeed,
};
use std::process::Command;

struct Site {
    certificates: Certificates,
    gateway: Gateway,
    file: Configuration,
    pair: Pair,
}

/// Returns the line of a user, hashed with bcrypt.
fn user(name: &str, password: &str) -> String {
    succeed(Command::new("htpasswd").args(["-nbB", "-C", "5", name, password])).trim().to_owned() + "\n"
}

/// Returns a client's `Authorization` header line.
fn says(name: &str, password: &str) -> String {
    let pair = boring::base64::encode_block(format!("{name}:{password}").as_bytes());
    format!("Authorization: Basic {pair}\r\n")
}

impl Site {
    /// Starts a site with user `ada`, password "lovelace", and servers that echo the request.
    fn new(keys: &str) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        std::fs::write(certificates.path("users"), user("ada", "lovelace")).expect("a file");
        std::fs::write(certificates.path("admins"), user("root", "toor")).expect("a file");
        let file = Configuration::new(&text(&certificates, &pair, keys));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, file, pair }
    }

    fn get(&self, path: &str, headers: &str) -> Response {
        Connector::new(&self.certificates).get(self.gateway.address(0), path, headers)
    }

    fn curl(&self, arguments: &[&str]) -> String {
        curl_status(&self.gateway, &self.certificates, arguments, "/")
    }
}

fn text(certificates: &Certificates, pair: &Pair, keys: &str) -> String {
    let [users, admins] = ["users", "admins"].map(|name| certificates.path(name).display().to_string());
    let keys = keys.replace("USERS", &users).replace("ADMINS", &admins);
    document(&[listener(pair, &keys)], &format!("web: {{servers: [\"{}\"]}}", echo_server()))
}

#[test]
fn a_client_with_the_password_is_accepted() {
    let site = Site::new("http3: on, upstream: web, basic_auth: USERS");
    let refused = site.get("/", "Accept: text/html\r\n");
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("www-authenticate"), Some("Basic realm=\"Restricted\", charset=\"UTF-8\""));
    assert!(refused.text().contains("<h1>401 Unauthorized</h1>"), "{}", refused.text());
    for version in ["--http1.1", "--http2"] {
        assert_eq!(site.curl(&[version]), "401");
        assert_eq!(site.curl(&[version, "--user", "ada:lovelace"]), "200");
        assert_eq!(site.curl(&[version, "--user", "ada:byron"]), "401");
        assert_eq!(site.curl(&[version, "--user", "bob:lovelace"]), "401");
    }
    let mut http3 = Http3Client::new(&site.certificates).connect(site.gateway.address(0));
    assert_eq!(http3.get("/").status, 401);
    let said = says("ada", "lovelace");
    let value = said.trim_end().trim_start_matches("Authorization: ");
    let headers = [("authorization", value)];
    let sending = Sending { method: "GET", path: "/", headers: &headers, body: b"" };
    assert_eq!(http3.exchange(&sending).status, 200);
    assert_eq!(site.gateway.metric("quadrille_access_denied_total", &["what=\"password\""]), 8.0);
}

#[test]
fn servers_get_the_name_and_not_the_password() {
    let site = Site::new("upstream: web, basic_auth: {users: USERS, user_header: X-Remote-User}");
    let forged = "X-Remote-User: root\r\n";
    let answer = site.get("/", &(says("ada", "lovelace") + forged));
    let server_saw = answer.text().to_ascii_lowercase();
    assert!(server_saw.contains("x-remote-user: ada\r\n"), "{server_saw}");
    assert!(!server_saw.contains("root") && !server_saw.contains("authorization"), "{server_saw}");
    let named = "Connection: X-Remote-User\r\n";
    let server_saw = site.get("/", &(says("ada", "lovelace") + named)).text().to_ascii_lowercase();
    assert!(server_saw.contains("x-remote-user: ada\r\n"), "no client has it removed: {server_saw}");
    let site = Site::new("upstream: web, basic_auth: {users: USERS, authorization: forward}");
    let server_saw = site.get("/", &says("ada", "lovelace")).text();
    assert!(server_saw.contains(says("ada", "lovelace").trim_end().split_once(' ').expect("a value").1));
}

#[test]
fn routes_have_other_users_or_none() {
    let site = Site::new(
        "basic_auth: {users: USERS, user_header: X-Remote-User}, upstream: web, routes: [
            {path: /admin, upstream: web, basic_auth: {users: ADMINS, realm: 'The \"inner\" circle'}},
            {path: /open, upstream: web, basic_auth: off}]",
    );
    let status = |path: &str, headers: &str| site.get(path, headers).status;
    let [ada, root] = [says("ada", "lovelace"), says("root", "toor")];
    assert_eq!([status("/", &ada), status("/", &root), status("/", "")], [200, 401, 401]);
    assert_eq!([status("/admin", &ada), status("/admin", &root), status("/admin", "")], [401, 200, 401]);
    assert_eq!([status("/open", ""), status("/open", &ada)], [200, 200]);
    assert_eq!(status("/%61dmin/", &ada), 401, "the normalized path is authoritative, as for routes");
    let refused = site.get("/admin", "");
    let realm = "Basic realm=\"The \\\"inner\\\" circle\", charset=\"UTF-8\"";
    assert_eq!(refused.header("www-authenticate"), Some(realm));
    let server_saw = site.get("/open", "X-Remote-User: root\r\nX_Remote-User: root\r\n").text();
    assert!(!server_saw.contains("root"), "the header is removed on every route: {server_saw}");
}

#[test]
fn a_route_alone_can_ask() {
    let site = Site::new("upstream: web, routes: [{path: /admin, upstream: web, basic_auth: ADMINS}]");
    assert_eq!(site.get("/", "").status, 200);
    assert_eq!(site.get("/admin", "").status, 401);
    assert_eq!(site.get("/admin", &says("root", "toor")).status, 200);
}

/// Clients that guess passwords receive 429, and clients that have logged in before are still accepted.
#[test]
fn guesses_are_limited() {
    let site = Site::new("respond: ok, basic_auth: {users: USERS, guesses: 3/240h}");
    assert_eq!(site.get("/", &says("ada", "lovelace")).status, 200);
    for guess in ["a", "b", "c"] {
        assert_eq!(site.get("/", &says("ada", guess)).status, 401);
    }
    let refused = site.get("/", &says("ada", "d"));
    assert_eq!(refused.status, 429);
    let seconds = refused.header("retry-after").and_then(|value| value.parse().ok());
    assert!(seconds.is_some_and(|seconds: u64| (284_000..=288_000).contains(&seconds)), "{refused:?}");
    assert_eq!(site.get("/", &says("ada", "lovelace")).status, 200, "a known password is still accepted");
    assert_eq!(site.get("/", "").status, 401, "a request without credentials is not a guess");
    assert_eq!(
        site.curl(&["--interface", "127.0.9.1", "--user", "ada:x"]),
        "401",
        "another network has its own limit"
    );
}

/// A changed file is reloaded; a damaged file changes nothing, and its error is logged.
#[test]
fn the_file_is_watched() {
    let mut site = Site::new("respond: ok, basic_auth: USERS");
    let users = site.certificates.path("users");
    assert_eq!(site.get("/", &says("bob", "x")).status, 401);
    std::fs::write(&users, user("bob", "x")).expect("a file");
    eventually("the file is not read again", || site.get("/", &says("bob", "x")).status == 200);
    assert_eq!(site.get("/", &says("ada", "lovelace")).status, 401, "the removed user is rejected");
    std::fs::write(&users, "bob:in plain text\n").expect("a file");
    site.gateway.wait_for_log("the text after `bob:` is not a bcrypt, SHA-crypt or Argon2 hash");
    assert!(!site.gateway.log().contains("in plain text"), "it may be a password");
    assert_eq!(site.get("/", &says("bob", "x")).status, 200);
}

/// A reload that changes something else keeps verified passwords: hashing this one would take more than a second.
#[test]
fn a_reload_keeps_verified_passwords() {
    let site = Site::new("respond: ok, basic_auth: {users: USERS, guesses: 1/240h}");
    assert_eq!(site.get("/", &says("ada", "lovelace")).status, 200);
    assert_eq!(site.get("/", &says("ada", "x")).status, 401);
    let keys = "respond: new, basic_auth: {users: USERS, guesses: 1/240h}";
    site.file.replace(&text(&site.certificates, &site.pair, keys));
    site.gateway.signal("HUP");
    eventually("it is not reloaded", || site.get("/", &says("ada", "lovelace")).text() == "new");
    assert_eq!(site.get("/", &says("ada", "x")).status, 429, "the guesses are remembered too");
}

#[test]
fn the_access_log_contains_the_user() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let log = certificates.path("access.log");
    let inline = format!("|\n      {}", user("ada", "lovelace"));
    let yaml = format!(
        "listeners:\n  - address: 127.0.0.1:0\n    certificates: [{{chain: '{}', key: '{}'}}]\n    respond: ok\n    \
         basic_auth: {inline}admin: off\naccess_log: {}\n",
        pair.chain.display(),
        pair.key.display(),
        log.display()
    );
    let file = Configuration::new(&yaml);
    let gateway = Gateway::with_config(&file.path(), 1);
    assert_eq!(curl_status(&gateway, &certificates, &["--user", "ada:lovelace"], "/"), "200");
    assert_eq!(curl_status(&gateway, &certificates, &["--user", "ada:secret"], "/"), "401");
    let lines = || std::fs::read_to_string(&log).unwrap_or_default();
    eventually("the requests are not in the log", || lines().lines().count() == 2);
    let text = lines();
    let (first, second) = text.trim_end().split_once('\n').expect("two lines");
    assert!(first.contains("user=\"ada\"") && first.contains("status=200"), "{first}");
    // A request's identifier may contain the name by chance.
    assert!(
        !second.contains("user=") && !second.contains("\"ada\"") && second.contains("status=401"),
        "{second}"
    );
}

/// Concurrent guesses with a slow hash do not delay other requests.
#[test]
fn event_loops_hash_nothing() {
    // Each takes more than a second of CPU: an event loop that hashed would hash them before it served anything else.
    const GUESSES: usize = 100;
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let slow = succeed(Command::new("htpasswd").args(["-nbB", "-C", "14", "ada", "lovelace"]));
    std::fs::write(certificates.path("users"), slow).expect("a file");
    let keys = "respond: ok, basic_auth: {users: USERS, guesses: off}, routes: [{path: /open, respond: open, basic_auth: off}]";
    let file = Configuration::new(&text(&certificates, &pair, keys));
    let gateway = Gateway::with_config(&file.path(), 1);
    let connector = Connector::new(&certificates);
    let mut guessing: Vec<_> = (0..GUESSES)
        .map(|guess| {
            let mut client = connector.http(gateway.address(0)).expect("a connection");
            let said = says("ada", &guess.to_string());
            client
                .send(format!("GET / HTTP/1.1\r\nHost: localhost\r\n{said}\r\n").as_bytes())
                .expect("a request");
            client
        })
        .collect();
    let mut client = connector.http(gateway.address(0)).expect("a connection");
    for _ in 0..20 {
        assert_eq!(client.get("/open").expect("a response").status, 200);
    }
    let hashed = gateway.metric("quadrille_access_denied_total", &["what=\"password\""]) as usize;
    assert!(hashed < GUESSES / 2, "{hashed} of {GUESSES} were hashed before others were served");
    // On a busy machine, no guess may have been hashed yet.
    let first = guessing[0].response().expect("a response");
    assert!(matches!(first.status, 401 | 503), "{}", first.status);
}
