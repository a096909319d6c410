//! A collector of traces, by gRPC and by HTTP, that decodes what it gets by OpenTelemetry's own schema.

use super::ports;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value::Value, trace::v1::Span,
};
use prost::Message;
use std::{
    io::{Cursor, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// The collector; it serves until the process ends.
pub struct Collector {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
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
        Self { address, requests }
    }

    /// What is sent elsewhere than to this path is refused.
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
        Self { address, requests }
    }

    /// All spans that have come.
    pub fn spans(&self) -> Vec<Span> {
        let requests = self.requests.lock().expect("no panic");
        let resources = requests.iter().flat_map(|request| &request.resource_spans);
        let scopes = resources.flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    /// What the sender says it is.
    pub fn service(&self) -> String {
        let requests = self.requests.lock().expect("no panic");
        let resource = requests[0].resource_spans[0].resource.clone().expect("a resource");
        let service = resource.attributes.iter().find(|attribute| attribute.key == "service.name");
        text(service.and_then(|service| service.value.as_ref()?.value.clone()))
    }
}

/// An attribute of a span, as text.
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
    collected: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
) -> Option<()> {
    assert_eq!(request.uri().path(), "/opentelemetry.proto.collector.trace.v1.TraceService/Export");
    let mut body = request.into_body();
    let mut message = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.ok()?;
        body.flow_control().release_capacity(data.len()).ok()?;
        message.extend_from_slice(&data);
    }
    collected
        .lock()
        .expect("no panic")
        .push(ExportTraceServiceRequest::decode(&message[5..]).expect("spans"));
    let response = http::Response::builder().header("content-type", "application/grpc").body(()).ok()?;
    let mut stream = respond.send_response(response, false).ok()?;
    stream.send_data(Cursor::new(vec![0; 5]), false).ok()?;
    let mut trailers = http::HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().ok()?);
    stream.send_trailers(trailers).ok()
}

fn post(mut stream: TcpStream, path: &str, collected: &Mutex<Vec<ExportTraceServiceRequest>>) -> Option<()> {
    let mut received = Vec::new();
    let end = loop {
        let mut more = [0; 4096];
        let count = stream.read(&mut more).ok()?;
        received.extend_from_slice(&more[..count]);
        if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())?;
    let mut body = received.split_off(end);
    let begin = body.len();
    body.resize(length, 0);
    stream.read_exact(&mut body[begin..]).ok()?;
    let is_good = head.starts_with(&format!("post {path} http/1.1\r\n"))
        && head.contains("content-type: application/x-protobuf\r\n");
    if !is_good {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").ok();
    }
    collected.lock().expect("no panic").push(ExportTraceServiceRequest::decode(&body[..]).expect("spans"));
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()
}
