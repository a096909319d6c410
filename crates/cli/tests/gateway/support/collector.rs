//! A trace collector over gRPC and HTTP that decodes messages with OpenTelemetry's own schema.

use super::{Pair, ports};
use boring::ssl::{AlpnError, SslAcceptor, SslFiletype, SslMethod, SslVerifyMode, select_next_proto};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value::Value,
    trace::v1::{ScopeSpans, Span},
};
use prost::Message;
use std::{
    io::{Cursor, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    sync::{Arc, Mutex},
    thread,
};

/// A message with its headers.
struct Received {
    headers: Vec<(String, String)>,
    message: ExportTraceServiceRequest,
}

/// The collector, which serves until the process ends.
pub struct Collector {
    pub address: SocketAddr,
    /// The HTTP version, for ALPN.
    version: &'static [u8],
    requests: Arc<Mutex<Vec<Received>>>,
}

impl Collector {
    pub fn grpc() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
        let address = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("a socket");
        let requests: Arc<Mutex<Vec<_>>> = Arc::default();
        let collected = Arc::clone(&requests);
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
                while let Ok((stream, _)) = listener.accept().await {
                    let collected = Arc::clone(&collected);
                    tokio::spawn(async move {
                        let mut connection = h2::server::Builder::new().handshake(stream).await.ok()?;
                        while let Some(Ok((request, respond))) = connection.accept().await {
                            tokio::spawn(call(request, respond, Arc::clone(&collected)));
                        }
                        Some(())
                    });
                }
            });
        });
        Self { address, version: b"\x02h2", requests }
    }

    /// The path; requests for others are rejected.
    pub fn http(path: &'static str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests: Arc<Mutex<Vec<_>>> = Arc::default();
        let collected = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let collected = Arc::clone(&collected);
                thread::spawn(move || post(stream, path, &collected));
            }
        });
        Self { address, version: b"\x08http/1.1", requests }
    }

    /// Starts a collector with TLS and this certificate, which requires client certificates of this CA, if given.
    pub fn behind_tls(self, pair: &Pair, clients: Option<&Path>) -> Self {
        let mut acceptor = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls()).expect("TLS");
        acceptor.set_certificate_chain_file(&pair.chain).expect("a chain");
        acceptor.set_private_key_file(&pair.key, SslFiletype::PEM).expect("a key");
        let version = self.version;
        acceptor.set_alpn_select_callback(move |_, offered| {
            select_next_proto(version, offered).ok_or(AlpnError::NOACK)
        });
        if let Some(ca) = clients {
            acceptor.set_ca_file(ca).expect("a CA");
            acceptor.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
        }
        let acceptor = acceptor.build();
        let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
        let (address, plain) = (listener.local_addr().expect("an address"), self.address);
        listener.set_nonblocking(true).expect("a socket");
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
                while let Ok((stream, _)) = listener.accept().await {
                    let acceptor = acceptor.clone();
                    tokio::spawn(async move {
                        let mut client = tokio_boring::accept(&acceptor, stream).await.ok()?;
                        let mut server = tokio::net::TcpStream::connect(plain).await.ok()?;
                        tokio::io::copy_bidirectional(&mut client, &mut server).await.ok()
                    });
                }
            });
        });
        Self { address, ..self }
    }

    /// Returns this header of each message.
    pub fn header(&self, name: &str) -> Vec<String> {
        let requests = self.requests.lock().expect("no panic");
        let headers = requests.iter().flat_map(|request| &request.headers);
        headers.filter(|(known, _)| known == name).map(|(_, value)| value.clone()).collect()
    }

    /// Returns all spans received.
    pub fn spans(&self) -> Vec<Span> {
        let requests = self.requests.lock().expect("no panic");
        let resources = requests.iter().flat_map(|request| &request.message.resource_spans);
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    /// Returns the spans of the instrumentation scope with this name.
    pub fn spans_of(&self, scope: &str) -> Vec<Span> {
        let requests = self.requests.lock().expect("no panic");
        let resources = requests.iter().flat_map(|request| &request.message.resource_spans);
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        let of = |scopes: &&ScopeSpans| scopes.scope.as_ref().is_some_and(|known| known.name == scope);
        scopes.filter(of).flat_map(|scope| scope.spans.clone()).collect()
    }

    /// Returns the sender's resource attributes.
    pub fn service(&self) -> String {
        let requests = self.requests.lock().expect("no panic");
        let resource = requests[0].message.resource_spans[0].resource.clone().expect("a resource");
        let service = resource.attributes.iter().find(|attribute| attribute.key == "service.name");
        text(service.and_then(|service| service.value.as_ref()?.value.clone()))
    }
}

/// Returns an attribute of a span as text.
pub fn attribute(span: &Span, key: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key == key);
    text(found.and_then(|found| found.value.as_ref()?.value.clone()))
}

fn text(value: Option<Value>) -> String {
    match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(value)) => value.to_string(),
        other => format!("{other:?}"),
    }
}

async fn call(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Cursor<Vec<u8>>>,
    collected: Arc<Mutex<Vec<Received>>>,
) -> Option<()> {
    assert_eq!(request.uri().path(), "/opentelemetry.proto.collector.trace.v1.TraceService/Export");
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = request.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let mut body = request.into_body();
    let mut message = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.ok()?;
        body.flow_control().release_capacity(data.len()).ok()?;
        message.extend_from_slice(&data);
    }
    let message = ExportTraceServiceRequest::decode(&message[5..]).expect("spans");
    collected.lock().expect("no panic").push(Received { headers, message });
    let response = http::Response::builder().header("content-type", "application/grpc").body(()).ok()?;
    let mut stream = respond.send_response(response, false).ok()?;
    stream.send_data(Cursor::new(vec![0; 5]), false).ok()?;
    let mut trailers = http::HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().ok()?);
    stream.send_trailers(trailers).ok()
}

fn post(mut stream: TcpStream, path: &str, collected: &Mutex<Vec<Received>>) -> Option<()> {
    while request(&mut stream, path, collected).is_some() {}
    Some(())
}

fn request(stream: &mut TcpStream, path: &str, collected: &Mutex<Vec<Received>>) -> Option<()> {
    let mut received = Vec::new();
    let end = loop {
        let mut more = [0; 4096];
        let count = stream.read(&mut more).ok().filter(|count| *count > 0)?;
        received.extend_from_slice(&more[..count]);
        if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
    let mut body = received.split_off(end);
    match head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()) {
        Some(length) => {
            let begin = body.len();
            body.resize(length, 0);
            stream.read_exact(&mut body[begin..]).ok()?;
        }
        None => body = chunked(body, stream)?,
    }
    let is_good = head.starts_with(&format!("post {path} http/1.1\r\n"))
        && head.contains("content-type: application/x-protobuf\r\n");
    if !is_good {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").ok();
    }
    let pair = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    let headers = head.lines().filter_map(pair).collect();
    let message = ExportTraceServiceRequest::decode(&body[..]).expect("spans");
    collected.lock().expect("no panic").push(Received { headers, message });
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()
}

/// Reads a chunked body (RFC 9112 section 7.1) that starts with these bytes.
fn chunked(mut received: Vec<u8>, stream: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let chunk = received[at..].windows(2).position(|two| two == b"\r\n").and_then(|line| {
            let size = usize::from_str_radix(std::str::from_utf8(&received[at..at + line]).ok()?, 16).ok()?;
            let begin = at + line + 2;
            (received.len() >= begin + size + 2).then_some((begin, size))
        });
        match chunk {
            Some((_, 0)) => return Some(body),
            Some((begin, size)) => {
                body.extend_from_slice(&received[begin..begin + size]);
                at = begin + size + 2;
            }
            None => {
                let mut more = [0; 4096];
                let count = stream.read(&mut more).ok().filter(|count| *count > 0)?;
                received.extend_from_slice(&more[..count]);
            }
        }
    }
}
