//! An OCSP responder: `openssl ocsp` behind a loopback socket, or a faulty one.

use crate::support::{Certificates, Pair, succeed};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

/// The responder's reaction to the next request.
#[derive(Clone, Debug)]
pub enum Does {
    /// Sends a response valid for this many minutes, signed by this certificate.
    Answers { minutes: u32, signer: Signer },
    /// Sends these bytes for every request.
    Says(&'static [u8]),
    /// Sends the response in this file.
    Repeats(PathBuf),
    /// Closes the connection.
    Leaves,
    /// Does not respond.
    Sleeps,
}

/// A certificate with its key.
#[derive(Clone, Debug)]
pub struct Signer {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// A CA with a responder, and the state of its certificates.
pub struct Responder {
    pub certificates: Arc<Certificates>,
    pub address: SocketAddr,
    does: Arc<Mutex<Does>>,
    /// The first lines of requests.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Responder {
    /// Starts a responder whose responses are valid for a week and signed by this CA.
    pub fn start() -> Self {
        let certificates = Arc::new(Certificates::new());
        let signer = Signer { certificate: certificates.ca(), key: certificates.path("ca.key") };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let this = Self {
            address: listener.local_addr().expect("an address"),
            does: Arc::new(Mutex::new(Does::Answers { minutes: 7 * 24 * 60, signer })),
            asked: Arc::default(),
            certificates,
        };
        fs::write(this.certificates.path("index.txt"), "").expect("writing");
        let (does, asked) = (Arc::clone(&this.does), Arc::clone(&this.asked));
        let certificates = Arc::clone(&this.certificates);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let does = does.lock().expect("what it does").clone();
                let (asked, certificates) = (Arc::clone(&asked), Arc::clone(&certificates));
                thread::spawn(move || attend(client, &does, &asked, &certificates));
            }
        });
        this
    }

    /// Sets the reaction from now on.
    pub fn does(&self, does: Does) {
        *self.does.lock().expect("what it does") = does;
    }

    /// Sets the validity of responses in minutes.
    pub fn answers(&self, minutes: u32) {
        let ca = &self.certificates;
        self.does(Does::Answers { minutes, signer: Signer { certificate: ca.ca(), key: ca.path("ca.key") } });
    }

    /// Returns the first lines of requests so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("requests").clone()
    }

    /// Returns a certificate that names the responder, with its CA, with status good.
    pub fn issue(&self, name: &str, more: &str) -> Pair {
        let address = self.address;
        let access = format!("authorityInfoAccess=OCSP;URI:http://{address}/ocsp\n{more}");
        self.issue_with(name, &access)
    }

    /// Returns a certificate with its CA, with status good.
    pub fn issue_with(&self, name: &str, extensions: &str) -> Pair {
        let certificates = &self.certificates;
        let pair = Pair {
            chain: certificates.path(&format!("{name}.pem")),
            key: certificates.path(&format!("{name}.key")),
        };
        let curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
        succeed(Command::new("openssl").arg("genpkey").args(curve).arg("-out").arg(&pair.key));
        let text = format!("subjectAltName=DNS:{name}\n{extensions}");
        certificates.sign_as(&pair.key, &pair.chain, name, 30, &text);
        let chain = fs::read_to_string(&pair.chain).expect("the leaf");
        let ca = fs::read_to_string(certificates.ca()).expect("the CA");
        fs::write(&pair.chain, chain + &ca).expect("writing");
        self.knows(&pair, "V");
        pair
    }

    /// Sets the status of a certificate: `V` for good, `R` for revoked, none for unknown.
    pub fn knows(&self, pair: &Pair, status: &str) {
        let serial =
            succeed(Command::new("openssl").args(["x509", "-noout", "-serial", "-in"]).arg(&pair.chain));
        let serial = serial.trim().trim_start_matches("serial=").to_owned();
        let index = self.certificates.path("index.txt");
        let others = fs::read_to_string(&index).expect("the index");
        let others: Vec<_> = others.lines().filter(|line| !line.contains(&serial)).collect();
        // The database of `openssl ca`: status, expiry, revocation, serial number, file, subject.
        let revoked = if status == "R" { "250101000000Z" } else { "" };
        let line = format!("{status}\t491231235959Z\t{revoked}\t{serial}\tunknown\t/CN={serial}");
        let line = if status.is_empty() { Vec::new() } else { vec![line.as_str()] };
        fs::write(&index, [others, line].concat().iter().map(|line| format!("{line}\n")).collect::<String>())
            .expect("writing");
    }

    /// Returns a signer certificate issued by this CA or another one, with these extensions.
    pub fn signer(&self, ca: &Certificates, name: &str, extensions: &str) -> Signer {
        let [certificate, key] = ["pem", "key"].map(|ending| ca.path(&format!("{name}.{ending}")));
        let curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
        succeed(Command::new("openssl").arg("genpkey").args(curve).arg("-out").arg(&key));
        ca.sign_as(&key, &certificate, name, 30, extensions);
        Signer { certificate, key }
    }

    /// Writes a response for a certificate to a file.
    pub fn answer_about(&self, pair: &Pair) -> PathBuf {
        let request = self.certificates.path("other.req");
        let mut ask = Command::new("openssl");
        ask.args(["ocsp", "-no_nonce", "-issuer"]).arg(self.certificates.ca());
        succeed(ask.arg("-cert").arg(&pair.chain).arg("-reqout").arg(&request));
        let does = self.does.lock().expect("what it does").clone();
        let Does::Answers { minutes, signer } = does else { panic!("it does not respond") };
        let response = request.with_extension("resp");
        answer(&self.certificates, &request, &response, minutes, &signer);
        response
    }
}

fn attend(mut client: TcpStream, does: &Does, asked: &Mutex<Vec<String>>, certificates: &Certificates) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let (line, question) = read(&client);
    asked.lock().expect("requests").push(line);
    let body = match does {
        Does::Answers { minutes, signer } => {
            let request = certificates.path(&format!("{}.req", NEXT.fetch_add(1, Ordering::Relaxed)));
            fs::write(&request, question).expect("writing");
            let response = request.with_extension("resp");
            answer(certificates, &request, &response, *minutes, signer);
            fs::read(&response).expect("a response")
        }
        Does::Repeats(file) => fs::read(file).expect("a response"),
        Does::Says(bytes) => {
            let _ = client.write_all(bytes);
            return;
        }
        Does::Leaves => return,
        Does::Sleeps => return thread::sleep(Duration::from_secs(600)),
    };
    let head = format!(
        "HTTP/1.0 200 OK\r\nContent-Type: application/ocsp-response\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let _ = client.write_all(head.as_bytes()).and_then(|()| client.write_all(&body));
}

fn answer(certificates: &Certificates, request: &Path, response: &Path, minutes: u32, signer: &Signer) {
    let mut openssl = Command::new("openssl");
    openssl.args(["ocsp", "-nmin", &minutes.to_string(), "-index"]).arg(certificates.path("index.txt"));
    openssl.arg("-CA").arg(certificates.ca());
    openssl.arg("-rsigner").arg(&signer.certificate).arg("-rkey").arg(&signer.key);
    succeed(openssl.arg("-reqin").arg(request).arg("-respout").arg(response));
}

/// Reads the first line of a request and the OCSP request in it.
fn read(client: &TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(client);
    let mut line = String::new();
    reader.read_line(&mut line).expect("a request");
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).expect("a header");
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
        if header.trim().is_empty() {
            break;
        }
    }
    let line = line.trim().to_owned();
    if let Some(path) = line.strip_prefix("GET ").and_then(|rest| rest.split(' ').next()) {
        let encoded = path.strip_prefix("/ocsp/").expect("the responder's address");
        return (line.clone(), decoded(encoded));
    }
    assert!(line.starts_with("POST /ocsp "), "{line}");
    let mut question = vec![0; length];
    reader.read_exact(&mut question).expect("a question");
    (line, question)
}

fn decoded(encoded: &str) -> Vec<u8> {
    let text = ["%2B", "%2F", "%3D"].iter().zip(["+", "/", "="]);
    let text = text.fold(encoded.to_owned(), |text, (from, to)| text.replace(from, to));
    boring::base64::decode_block(&text).expect("base64")
}
