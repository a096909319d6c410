//! A small Kubernetes API server: lists in pages, watches with bookmarks, versions that are gone, tokens and TLS. It dies and
//! returns with its objects, as a restarted server does.

use super::store::{Change, Store, gone, status};
use crate::support::{Certificates, PATIENCE, Pair, Uninterrupted, ports};
use boring::ssl::{SslAcceptor, SslFiletype, SslMethod, SslStream};
use serde_json::{Value, json};
use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// A running server; the process of the test ends it.
pub(super) struct ApiServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    files: PathBuf,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    acceptor: SslAcceptor,
    is_up: AtomicBool,
}

#[derive(Default)]
struct State {
    store: Store,
    token: String,
    /// A resource whose lists are not responded to.
    held: Option<&'static str>,
    /// A resource that the token does not allow.
    forbidden: Option<&'static str>,
    /// Bodies of requests that write, with method and path.
    written: Vec<(String, Value)>,
    connections: Vec<TcpStream>,
}

/// The head of a request, and its body.
struct Request {
    method: String,
    path: String,
    query: Vec<(String, String)>,
    authorization: String,
    body: Vec<u8>,
}

type Connection = BufReader<SslStream<Uninterrupted>>;

impl ApiServer {
    pub(super) fn start(certificates: &Certificates) -> Self {
        let Pair { chain, key } = certificates.ecdsa("P-256", &["localhost"]);
        let mut acceptor = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls()).expect("a TLS server");
        acceptor.set_certificate_chain_file(&chain).expect("a certificate");
        acceptor.set_private_key_file(&key, SslFiletype::PEM).expect("a key");
        let shared = Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            acceptor: acceptor.build(),
            is_up: AtomicBool::new(false),
        };
        let address = SocketAddr::from(([127, 0, 0, 1], ports::free()));
        let server = Self { shared: Arc::new(shared), address, files: certificates.path("") };
        server.renew_token("first");
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: it\n\
             clusters: [{{ name: it, cluster: {{ server: 'https://localhost:{}', certificate-authority: ca.pem }} }}]\n\
             users: [{{ name: me, user: {{ tokenFile: '{}' }} }}]\n\
             contexts: [{{ name: it, context: {{ cluster: it, user: me, namespace: edge }} }}]\n",
            address.port(),
            server.files.join("token").display(),
        );
        std::fs::write(server.kubeconfig(), kubeconfig).expect("a kubeconfig");
        server.return_from_death();
        server
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.files.join("kubeconfig")
    }

    /// Makes the former token invalid, and writes a new one for the clients.
    pub(super) fn renew_token(&self, token: &str) {
        self.state().token = format!("Bearer {token}");
        std::fs::write(self.files.join("token"), token).expect("a token");
    }

    /// Creates an object, or replaces the one of its name.
    pub(super) fn put(&self, object: &Value) {
        self.state().store.put(object.clone());
        self.shared.changed.notify_all();
    }

    pub(super) fn delete(&self, resource: &str, name: &str) {
        self.state().store.delete(resource, "shop", name);
        self.shared.changed.notify_all();
    }

    /// Changes an object without an event, and forgets all versions before.
    pub(super) fn delete_and_forget(&self, resource: &str, name: &str) {
        let mut state = self.state();
        state.store.delete(resource, "shop", name);
        state.store.forget();
        state.close_connections();
    }

    pub(super) fn get(&self, resource: &str, name: &str) -> Option<Value> {
        self.state().store.get(resource, "shop", name)
    }

    /// Does not respond to lists of this resource until it is `None`.
    pub(super) fn hold(&self, resource: Option<&'static str>) {
        self.state().held = resource;
        self.shared.changed.notify_all();
    }

    /// Responds to requests for this resource with 403.
    pub(super) fn forbid(&self, resource: &'static str) {
        self.state().forbidden = Some(resource);
    }

    /// Returns the bodies that were written to paths with this text.
    pub(super) fn written(&self, path: &str) -> Vec<Value> {
        let state = self.state();
        let matching = state.written.iter().filter(|(known, _)| known.contains(path));
        matching.map(|(_, body)| body.clone()).collect()
    }

    /// Closes all connections, and accepts none.
    pub(super) fn die(&self) {
        self.shared.is_up.store(false, Ordering::SeqCst);
        // The listening thread wakes, and ends.
        drop(TcpStream::connect(self.address));
        self.state().close_connections();
        self.shared.changed.notify_all();
    }

    pub(super) fn return_from_death(&self) {
        let listener = loop {
            match TcpListener::bind(self.address) {
                Ok(listener) => break listener,
                Err(_) => thread::sleep(Duration::from_millis(10)),
            }
        };
        self.shared.is_up.store(true, Ordering::SeqCst);
        let shared = Arc::clone(&self.shared);
        thread::spawn(move || {
            for tcp in listener.incoming().map_while(Result::ok) {
                if !shared.is_up.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.serve(tcp));
            }
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().expect("the state")
    }
}

impl State {
    fn close_connections(&mut self) {
        for tcp in self.connections.drain(..) {
            let _ = tcp.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Shared {
    fn serve(&self, tcp: TcpStream) -> io::Result<()> {
        tcp.set_read_timeout(Some(PATIENCE))?;
        self.state.lock().expect("the state").connections.push(tcp.try_clone()?);
        let stream =
            self.acceptor.accept(Uninterrupted(tcp)).map_err(|error| io::Error::other(error.to_string()))?;
        let mut connection = BufReader::new(stream);
        while let Some(request) = Request::read(&mut connection)? {
            if request.is("watch", "true") {
                return self.watch(&mut connection, &request);
            }
            let (code, body) = self.respond(&request);
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            connection.get_mut().write_all(format!("{head}{body}").as_bytes())?;
        }
        Ok(())
    }

    fn respond(&self, request: &Request) -> (u16, Value) {
        let mut state = self.state.lock().expect("the state");
        if request.authorization != state.token {
            return (401, status(401, "Unauthorized"));
        }
        let (resource, namespace, name) = request.parts();
        if state.forbidden == Some(resource) {
            return (403, status(403, "Forbidden"));
        }
        while request.method == "GET" && name.is_empty() && state.held == Some(resource) {
            state = self.changed.wait(state).expect("the state");
        }
        let body = serde_json::from_slice::<Value>(&request.body).unwrap_or_default();
        if request.method != "GET" {
            state.written.push((format!("{} {}", request.method, request.path), body.clone()));
        }
        let answer = match request.method.as_str() {
            "GET" if name.is_empty() => {
                (200, state.store.list(resource, namespace, request.value("continue")))
            }
            "GET" => match state.store.get(resource, namespace, name) {
                Some(object) => (200, object),
                None => (404, status(404, "NotFound")),
            },
            "PATCH" => match state.store.merge_status(resource, namespace, name, &body) {
                Some(object) => (200, object),
                None => (404, status(404, "NotFound")),
            },
            _ => {
                let mut object = body;
                object["metadata"]["namespace"] = namespace.into();
                object["kind"] = super::store::kind(resource).into();
                (201, state.store.put(object))
            }
        };
        self.changed.notify_all();
        answer
    }

    fn watch(&self, connection: &mut Connection, request: &Request) -> io::Result<()> {
        let (resource, namespace, _) = request.parts();
        let mut seen: u64 = request.value("resourceVersion").parse().unwrap_or_default();
        let stream = connection.get_mut();
        if self.state.lock().expect("the state").token != request.authorization {
            let head = "HTTP/1.1 401 X\r\nContent-Type: application/json\r\nContent-Length: ";
            let body = status(401, "Unauthorized").to_string();
            return stream.write_all(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes());
        }
        stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        )?;
        loop {
            let state = self.state.lock().expect("the state");
            if !self.is_up.load(Ordering::SeqCst) {
                return Ok(());
            }
            if state.store.is_gone(seen) {
                return send(stream, &gone());
            }
            let changes: Vec<Change> = state.store.since(seen, resource, namespace);
            seen = state.store.version();
            if changes.is_empty() {
                let (state, timed_out) = self.changed.wait_timeout(state, BOOKMARKS).expect("the state");
                drop(state);
                if timed_out.timed_out() {
                    let metadata = json!({ "resourceVersion": seen.to_string() });
                    let object = json!({ "kind": super::store::kind(resource), "apiVersion": "v1", "metadata": metadata });
                    send(stream, &json!({ "type": "BOOKMARK", "object": object }))?;
                }
                continue;
            }
            drop(state);
            for Change { event, object, .. } in changes {
                send(stream, &json!({ "type": event, "object": object }))?;
            }
        }
    }
}

impl Request {
    fn read(connection: &mut Connection) -> io::Result<Option<Self>> {
        let mut line = String::new();
        if connection.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name.to_owned(), value.to_owned())
        };
        let query = query.split('&').map(pair).collect();
        let path = path.to_owned();
        let (mut authorization, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            connection.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "authorization" => value.clone_into(&mut authorization),
                "content-length" => length = value.parse().unwrap_or_default(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        connection.read_exact(&mut body)?;
        Ok(Some(Self { method, path, query, authorization, body }))
    }

    fn value(&self, name: &str) -> &str {
        self.query.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.value(name) == value
    }

    /// Returns the resource, the namespace and the name.
    fn parts(&self) -> (&str, &str, &str) {
        let mut segments = self.path.trim_start_matches('/').split('/');
        // `api/v1`, or `apis/GROUP/VERSION`.
        let skipped = if segments.next() == Some("api") { 1 } else { 2 };
        let rest: Vec<&str> = segments.skip(skipped).collect();
        match rest.as_slice() {
            ["namespaces", namespace, resource, name, ..] => (resource, namespace, name),
            ["namespaces", namespace, resource] => (resource, namespace, ""),
            [resource, name, ..] => (resource, "", name),
            [resource] => (resource, "", ""),
            [] => ("", "", ""),
        }
    }
}

/// Sends an event as a chunk.
fn send(stream: &mut SslStream<Uninterrupted>, event: &Value) -> io::Result<()> {
    let line = format!("{event}\n");
    stream.write_all(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes())
}

/// Shorter than those of real servers, which send one a minute.
const BOOKMARKS: Duration = Duration::from_millis(100);
