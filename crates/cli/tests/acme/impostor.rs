//! A test authority that accepts every name, issues with `openssl`, and sends malformed responses on request.

use crate::{
    front::https_before,
    support::{Certificates, succeed},
};
use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    thread,
};

/// The step of an order that a response belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Directory,
    Nonce,
    Account,
    Order,
    Authorization,
    Finalize,
    Poll,
    Certificate,
}

/// A malformed response.
#[derive(Clone, Debug)]
pub enum Nonsense {
    /// This body, with the regular status and header fields.
    Body(Vec<u8>),
    /// The regular body followed by these bytes.
    Behind(Vec<u8>),
    /// Only the status, without ACME's header fields.
    Bare(u16),
    /// The response is truncated.
    Half,
    /// No response; the connection stays open.
    Silence,
    /// Rejects the nonce this many more times (RFC 8555 section 6.5).
    RefusedNonces(Arc<AtomicU32>),
}

/// The authority.
pub struct Impostor {
    pub certificates: Certificates,
    directory: tempfile::TempDir,
    port: u16,
    nonsense: Arc<Mutex<Option<(Step, Nonsense)>>>,
    held: Held,
}

/// Connections of clients that wait for a response that is never sent.
type Held = Arc<Mutex<Vec<TcpStream>>>;

struct Answer {
    status: u16,
    fields: String,
    body: Vec<u8>,
}

impl Impostor {
    pub fn start() -> Self {
        let certificates = Certificates::new();
        let directory = tempfile::tempdir().expect("a directory");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = https_before(&certificates, listener.local_addr().expect("an address"));
        let nonsense: Arc<Mutex<Option<(Step, Nonsense)>>> = Arc::default();
        let held = Held::default();
        let (shared, waiting) = (Arc::clone(&nonsense), Arc::clone(&held));
        let (ca, files) = (certificates.ca(), directory.path().to_owned());
        thread::spawn(move || {
            let authority = Authority { base: format!("https://localhost:{port}"), ca, files, held: waiting };
            for client in listener.incoming().map_while(Result::ok) {
                let nonsense = shared.lock().expect("nonsense").clone();
                authority.attend(client, nonsense);
            }
        });
        Self { certificates, directory, port, nonsense, held }
    }

    /// Sets the malformed response and its step; `None` restores regular responses.
    pub fn says(&self, nonsense: Option<(Step, Nonsense)>) {
        *self.nonsense.lock().expect("nonsense") = nonsense;
    }

    /// Returns the number of clients that wait for a response that is never sent.
    pub fn waiting(&self) -> usize {
        self.held.lock().expect("connections").len()
    }

    pub fn configuration(&self, names: &str) -> PathBuf {
        self.member(names, 0, "")
    }

    /// Writes the configuration of one of several gateways, each with its own state directory.
    pub fn member(&self, names: &str, index: usize, more: &str) -> PathBuf {
        let file = self.directory.path().join(format!("quadrille-{index}.yaml"));
        let text = format!(
            "admin: 127.0.0.1:0\n{more}acme: {{ directory: \"https://localhost:{}/directory\", ca_file: {}, state: {} }}\n\
             listeners:\n  - address: 127.0.0.1:0\n    certificates: [ {{ acme: {{ names: [{names}] }} }} ]\n    respond: \
             hello\n",
            self.port,
            self.certificates.ca().display(),
            self.directory.path().join(format!("state-{index}")).display(),
        );
        fs::write(&file, text).expect("writing");
        file
    }
}

/// Request handler of the authority.
struct Authority {
    base: String,
    ca: PathBuf,
    files: PathBuf,
    held: Held,
}

impl Authority {
    fn attend(&self, mut client: TcpStream, nonsense: Option<(Step, Nonsense)>) {
        let Some((path, body)) = read(&client) else { return };
        let (step, mut answer) = self.answer(&path, &body);
        let mut whole = true;
        match nonsense.filter(|(at, _)| *at == step) {
            Some((_, Nonsense::Body(body))) => answer.body = body,
            Some((_, Nonsense::Behind(more))) => answer.body.extend(more),
            Some((_, Nonsense::Bare(status))) => {
                answer = Answer { status, fields: String::new(), body: Vec::new() };
            }
            Some((_, Nonsense::Half)) => whole = false,
            Some((_, Nonsense::RefusedNonces(left)))
                if left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() =>
            {
                answer.status = 400;
                answer.body = br#"{"type":"urn:ietf:params:acme:error:badNonce"}"#.to_vec();
            }
            Some((_, Nonsense::Silence)) => return self.held.lock().expect("connections").push(client),
            Some((_, Nonsense::RefusedNonces(_))) | None => {}
        }
        let Answer { status, fields, body } = answer;
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} Said\r\n{fields}Content-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        let sent = if whole { &body[..] } else { &body[..length / 2] };
        let _ = client.write_all(head.as_bytes()).and_then(|()| client.write_all(sent));
    }

    fn answer(&self, path: &str, body: &[u8]) -> (Step, Answer) {
        let base = &self.base;
        let json = |status, location: &str, body: serde_json::Value| {
            let location =
                if location.is_empty() { String::new() } else { format!("Location: {base}{location}\r\n") };
            let fields = format!("Replay-Nonce: bm9uY2U\r\nContent-Type: application/json\r\n{location}");
            Answer { status, fields, body: body.to_string().into_bytes() }
        };
        let names = || serde_json::json!([{ "type": "dns", "value": "a.example.com" }]);
        let order = |status: &str| {
            serde_json::json!({ "status": status, "identifiers": names(), "authorizations": [format!("{base}/authz")],
                                "finalize": format!("{base}/finalize"), "certificate": format!("{base}/certificate") })
        };
        match path {
            "/directory" => {
                let of = |path: &str| format!("{base}{path}");
                let body = serde_json::json!({ "newNonce": of("/nonce"), "newAccount": of("/account"),
                                               "newOrder": of("/order") });
                (Step::Directory, json(200, "", body))
            }
            "/nonce" => (Step::Nonce, json(200, "", serde_json::json!({}))),
            "/account" => (Step::Account, json(201, "/account/1", serde_json::json!({ "status": "valid" }))),
            "/order" => (Step::Order, json(201, "/order/1", order("ready"))),
            "/order/1" => (Step::Poll, json(200, "", order("valid"))),
            "/authz" => {
                let challenge = serde_json::json!({ "type": "tls-alpn-01", "url": format!("{base}/challenge"),
                                                    "token": "dG9rZW4", "status": "valid" });
                let body = serde_json::json!({ "status": "valid", "identifier": names()[0], "challenges": [challenge] });
                (Step::Authorization, json(200, "", body))
            }
            "/finalize" => {
                self.issue(body);
                (Step::Finalize, json(200, "/order/1", order("valid")))
            }
            "/certificate" => {
                let chain = fs::read(self.files.join("issued.pem")).unwrap_or_default();
                let mut answer = json(200, "", serde_json::json!({}));
                answer.body = chain;
                (Step::Certificate, answer)
            }
            other => panic!("unexpected path {other}"),
        }
    }

    /// Returns the certificate for a finalize request.
    fn issue(&self, body: &[u8]) {
        let jws: serde_json::Value = serde_json::from_slice(body).expect("a JWS");
        let payload = base64_url(jws["payload"].as_str().expect("a payload"));
        let payload: serde_json::Value = serde_json::from_slice(&payload).expect("JSON");
        let request = self.files.join("request.der");
        fs::write(&request, base64_url(payload["csr"].as_str().expect("a request"))).expect("writing");
        let mut issue = Command::new("openssl");
        issue.args([
            "x509",
            "-req",
            "-inform",
            "DER",
            "-copy_extensions",
            "copy",
            "-days",
            "30",
            "-CAcreateserial",
        ]);
        issue
            .arg("-in")
            .arg(&request)
            .arg("-CA")
            .arg(&self.ca)
            .arg("-CAkey")
            .arg(self.ca.with_file_name("ca.key"));
        succeed(issue.arg("-out").arg(self.files.join("issued.pem")));
    }
}

fn base64_url(text: &str) -> Vec<u8> {
    let padding = "=".repeat((4 - text.len() % 4) % 4);
    let text = text.replace('-', "+").replace('_', "/") + &padding;
    boring::base64::decode_block(&text).expect("base64url")
}

/// Reads the path and body of a request.
fn read(client: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(client);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok()?;
        if let Some(value) = field.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if field.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, body))
}
