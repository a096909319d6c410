//! A DNS server on loopback with records that a test changes.

use hickory_proto::{
    op::{Message, ResponseCode},
    rr::{Name, RData, Record, RecordType, rdata::SRV},
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

/// Records of names, with their TTL in seconds.
type Records = HashMap<String, (Vec<RData>, u32)>;

/// The server, which ends with the test.
pub struct DnsServer {
    pub address: SocketAddr,
    records: Arc<Mutex<Records>>,
    silent: Arc<AtomicBool>,
    drops_aaaa: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    asked_aaaa: Arc<AtomicUsize>,
}

impl DnsServer {
    /// Starts a server without names.
    pub fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let server = Self {
            address: socket.local_addr().expect("an address"),
            records: Arc::default(),
            silent: Arc::default(),
            drops_aaaa: Arc::default(),
            asked: Arc::default(),
            asked_aaaa: Arc::default(),
        };
        let (records, silent) = (Arc::clone(&server.records), Arc::clone(&server.silent));
        let drops_aaaa = Arc::clone(&server.drops_aaaa);
        let (asked, asked_aaaa) = (Arc::clone(&server.asked), Arc::clone(&server.asked_aaaa));
        thread::spawn(move || {
            let mut datagram = [0; 2048];
            while let Ok((length, client)) = socket.recv_from(&mut datagram) {
                asked.fetch_add(1, Ordering::SeqCst);
                if silent.load(Ordering::SeqCst) {
                    continue;
                }
                let question = Message::from_vec(&datagram[..length]).expect("a message");
                if question.queries[0].query_type() == RecordType::AAAA {
                    asked_aaaa.fetch_add(1, Ordering::SeqCst);
                    if drops_aaaa.load(Ordering::SeqCst) {
                        continue;
                    }
                }
                let answer = answer(question, &records.lock().expect("no panic"));
                socket.send_to(&answer.to_vec().expect("bytes"), client).expect("it is sent");
            }
        });
        server
    }

    /// Sets the addresses of a name, with this TTL in seconds.
    pub fn set(&self, name: &str, addresses: &[[u8; 4]], ttl: u32) {
        let addresses = addresses.iter().map(|address| RData::A(Ipv4Addr::from(*address).into())).collect();
        self.records.lock().expect("no panic").insert(name.to_owned(), (addresses, ttl));
    }

    /// Sets the SRV records of a name, with priority, weight, port and target, and this TTL in seconds.
    pub fn set_services(&self, name: &str, services: &[(u16, u16, u16, &str)], ttl: u32) {
        let record = |(priority, weight, port, target): &(u16, u16, u16, &str)| {
            let target = Name::from_ascii(format!("{target}.")).expect("a name");
            RData::SRV(SRV::new(*priority, *weight, *port, target))
        };
        let services = services.iter().map(record).collect();
        self.records.lock().expect("no panic").insert(name.to_owned(), (services, ttl));
    }

    /// Sets whether the server ignores queries.
    pub fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::SeqCst);
    }

    /// Sets whether the server ignores queries for IPv6 addresses, as some routers do.
    pub fn set_drops_aaaa(&self, drops: bool) {
        self.drops_aaaa.store(drops, Ordering::SeqCst);
    }

    /// Returns the number of queries for IPv6 addresses.
    pub fn asked_aaaa(&self) -> usize {
        self.asked_aaaa.load(Ordering::SeqCst)
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
        Some((records, ttl)) => {
            for record in records.iter().filter(|record| record.record_type() == query.query_type()) {
                answer.add_answer(Record::from_rdata(query.name().clone(), *ttl, record.clone()));
            }
        }
    }
    answer
}
