//! A DNS server on loopback with records that a test changes.

use hickory_proto::{
    op::{Message, ResponseCode},
    rr::{RData, Record, RecordType},
};
use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// Addresses of names, with their TTL in seconds.
type Records = HashMap<String, (Vec<Ipv4Addr>, u32)>;

/// The server, which ends with the test.
pub struct DnsServer {
    pub address: SocketAddr,
    records: Arc<Mutex<Records>>,
    silent: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl DnsServer {
    /// Starts a server without names.
    pub fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let server = Self {
            address: socket.local_addr().expect("an address"),
            records: Arc::default(),
            silent: Arc::default(),
            asked: Arc::default(),
        };
        let (records, silent) = (Arc::clone(&server.records), Arc::clone(&server.silent));
        let asked = Arc::clone(&server.asked);
        thread::spawn(move || {
            let mut datagram = [0; 2048];
            while let Ok((length, client)) = socket.recv_from(&mut datagram) {
                asked.fetch_add(1, Ordering::SeqCst);
                if silent.load(Ordering::SeqCst) {
                    continue;
                }
                let question = Message::from_vec(&datagram[..length]).expect("a message");
                let answer = answer(question, &records.lock().expect("no panic"));
                socket.send_to(&answer.to_vec().expect("bytes"), client).expect("it is sent");
            }
        });
        server
    }

    /// Sets the addresses of a name, with this TTL in seconds.
    pub fn set(&self, name: &str, addresses: &[[u8; 4]], ttl: u32) {
        let addresses = addresses.iter().copied().map(Ipv4Addr::from).collect();
        self.records.lock().expect("no panic").insert(name.to_owned(), (addresses, ttl));
    }

    /// Sets whether the server ignores queries.
    pub fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::SeqCst);
    }

    /// Returns the number of queries.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn answer(question: Message, records: &Records) -> Message {
    let query = question.queries[0].clone();
    let name = query.name().to_ascii().trim_end_matches('.').to_ascii_lowercase();
    let mut answer = Message::response(question.metadata.id, question.metadata.op_code);
    answer.metadata.recursion_desired = true;
    answer.metadata.recursion_available = true;
    answer.add_query(query.clone());
    match records.get(&name) {
        None => answer.metadata.response_code = ResponseCode::NXDomain,
        Some((addresses, ttl)) if query.query_type() == RecordType::A => {
            for address in addresses {
                answer.add_answer(Record::from_rdata(
                    query.name().clone(),
                    *ttl,
                    RData::A((*address).into()),
                ));
            }
        }
        Some(_) => {}
    }
    answer
}
