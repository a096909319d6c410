//! gRPC services with one unary method.

use super::accept;
use h2::server::SendResponse;
use std::{io::Cursor, net::SocketAddr};

/// Returns a method's response to a message; `None` is `UNAVAILABLE`.
pub type Method = fn(&[u8]) -> Option<Vec<u8>>;

/// Starts a service whose method has this path. Serves until the process ends.
pub fn grpc_service(path: &'static str, method: Method) -> SocketAddr {
    accept(move |stream| async move {
        let Ok(mut connection) = h2::server::Builder::new().handshake(stream).await else {
            return;
        };
        while let Some(Ok((request, respond))) = connection.accept().await {
            assert_eq!(request.uri().path(), path);
            tokio::spawn(call(method, request, respond));
        }
    })
}

async fn call(
    method: Method,
    request: http::Request<h2::RecvStream>,
    mut respond: SendResponse<Cursor<Vec<u8>>>,
) -> Option<()> {
    let mut body = request.into_body();
    let mut message = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.ok()?;
        body.flow_control().release_capacity(data.len()).ok()?;
        message.extend_from_slice(&data);
    }
    let response = http::Response::builder().header("content-type", "application/grpc").body(()).ok()?;
    let mut stream = respond.send_response(response, false).ok()?;
    let answer = method(&message[5..]);
    let status = if answer.is_some() { "0" } else { "14" };
    if let Some(answer) = answer {
        let length = u32::try_from(answer.len()).ok()?.to_be_bytes();
        stream.send_data(Cursor::new([&[0], &length[..], &answer].concat()), false).ok()?;
    }
    let mut trailers = http::HeaderMap::new();
    trailers.insert("grpc-status", status.parse().ok()?);
    stream.send_trailers(trailers).ok()
}

/// Encodes a length-delimited protobuf field.
pub fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = value.len();
    while length > 127 {
        out.push(length as u8 & 127 | 128);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(value);
    out
}

/// Returns the length-delimited fields of a protobuf message.
pub struct Fields<'a>(Vec<(u64, &'a [u8])>);

impl<'a> Fields<'a> {
    pub fn of(mut bytes: &'a [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            match key & 7 {
                0 => _ = varint(&mut bytes),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    fields.push((key >> 3, &bytes[..length]));
                    bytes = &bytes[length..];
                }
                other => panic!("wire type {other}"),
            }
        }
        Self(fields)
    }

    pub fn all(&self, number: u64) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.0.iter().filter(move |(found, _)| *found == number).map(|(_, value)| *value)
    }

    pub fn message(&self, number: u64) -> Self {
        Self::of(self.all(number).next().unwrap_or_default())
    }

    pub fn text(&self, number: u64) -> String {
        String::from_utf8_lossy(self.all(number).next().unwrap_or_default()).into_owned()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a byte");
        *bytes = rest;
        value |= u64::from(first & 127) << shift;
        if *first < 128 {
            break;
        }
    }
    value
}
