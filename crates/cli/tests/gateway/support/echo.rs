//! A server that responds to each request with the received bytes.

use super::ports;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc,
    thread,
};

/// Starts the server, which ends with the test.
pub fn echo_server() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for tcp in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || answer_all(tcp));
        }
    });
    address
}

/// Starts a server that responds to each request with 500, and sends the received bytes to the test.
pub fn recording_server() -> (SocketAddr, mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    let (record, recorded) = mpsc::channel();
    thread::spawn(move || {
        for tcp in listener.incoming().map_while(Result::ok) {
            let record = record.clone();
            thread::spawn(move || record_all(tcp, &record));
        }
    });
    (address, recorded)
}

fn record_all(tcp: TcpStream, record: &mpsc::Sender<Vec<u8>>) -> Option<()> {
    let mut writer = tcp.try_clone().ok()?;
    let mut reader = BufReader::new(tcp);
    loop {
        record.send(request(&mut reader)?).ok()?;
        writer.write_all(b"HTTP/1.1 500 Mine\r\nContent-Length: 4\r\n\r\nbad\n").ok()?;
    }
}

fn answer_all(tcp: TcpStream) -> Option<()> {
    let mut writer = tcp.try_clone().ok()?;
    let mut reader = BufReader::new(tcp);
    loop {
        let received = request(&mut reader)?;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", received.len());
        writer.write_all(&[head.as_bytes(), &received[..]].concat()).ok()?;
    }
}

/// Reads a request's header, and its body if it has a length; `None` at the end of the connection.
fn request(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut received = Vec::new();
    let mut length = 0;
    loop {
        let begin = received.len();
        if reader.read_until(b'\n', &mut received).ok()? == 0 {
            return None;
        }
        let line = String::from_utf8_lossy(&received[begin..]).to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let begin = received.len();
    received.resize(begin + length, 0);
    reader.read_exact(&mut received[begin..]).ok()?;
    Some(received)
}
