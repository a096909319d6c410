//! Servers inside and outside of the pod.

use super::network::Namespace;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

/// Responds to HTTP/1.1 requests with its name, the client's address and the path, until the process ends.
pub(super) fn http(namespace: &Namespace, address: &str, name: &'static str) {
    serve(namespace, address, move |stream| {
        let peer = stream.peer_addr().ok()?;
        let mut reader = BufReader::new(&stream);
        loop {
            let mut first = String::new();
            if reader.read_line(&mut first).ok()? == 0 {
                return Some(());
            }
            let path = first.split(' ').nth(1)?.to_owned();
            let mut certificate = "";
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).ok()?;
                if line.to_ascii_lowercase().starts_with("x-forwarded-client-cert:") {
                    certificate = " shown";
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let body = format!("{name} {} {path}{certificate}", peer.ip().to_canonical());
            let length = body.len();
            write!(&stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}").ok()?;
        }
    });
}

/// Sends first, and then echoes.
pub(super) fn greeting(namespace: &Namespace, address: &str, name: &'static str) {
    serve(namespace, address, move |mut stream| {
        let peer = stream.peer_addr().ok()?;
        writeln!(stream, "{name} {}", peer.ip()).ok()?;
        let mut bytes = [0; 1024];
        loop {
            match stream.read(&mut bytes).ok()? {
                0 => return Some(()),
                length => stream.write_all(&bytes[..length]).ok()?,
            }
        }
    });
}

fn serve(
    namespace: &Namespace,
    address: &str,
    answer: impl Fn(TcpStream) -> Option<()> + Clone + Send + 'static,
) {
    let address: SocketAddr = address.parse().expect("an address");
    let listener = namespace.inside(|| TcpListener::bind(address).expect("a port of the namespace"));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || answer(stream));
        }
    });
}
