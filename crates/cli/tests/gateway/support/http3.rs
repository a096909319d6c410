//! A client of HTTP/3, which shows what browsers hide: single connections, the datagrams of which they consist, and what is
//! resumed. It is quiche's, as the gateway is; other implementations have tests of their own.

use super::{Certificates, PATIENCE};
use boring::ssl::{SslContextBuilder, SslMethod, SslVerifyMode};
use quiche::{
    ConnectionId, RecvInfo,
    h3::{self, Event, Header, NameValue},
};
use std::{
    collections::HashMap,
    io::ErrorKind,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

const LARGEST: usize = 65_535;

/// How a client connects.
pub struct Http3Client {
    config: quiche::Config,
}

/// One connection.
pub struct Http3 {
    socket: UdpSocket,
    quic: quiche::Connection,
    http: Option<h3::Connection>,
    /// Whether it speaks HTTP/3 by itself.
    speaks: bool,
    answers: HashMap<u64, Answer>,
    /// The gateway has said that the connection will end.
    pub told_to_go: bool,
    /// Datagrams of the gateway's, before anything else is done with them.
    pub received: usize,
    /// Bytes of its own datagrams.
    pub sent_bytes: usize,
}

/// What has come for a request.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: u16,
    /// Of responses before the last (1xx).
    pub informational: Vec<u16>,
    pub headers: Vec<(String, String)>,
    pub trailers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// It is complete, or this is why it never will be.
    pub ended: Option<Result<(), u64>>,
}

/// A request, whose body may be sent in pieces.
pub struct Sending<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
}

impl Http3Client {
    /// One that trusts this CA.
    pub fn new(certificates: &Certificates) -> Self {
        Self::with_groups(certificates, "X25519:P-256")
    }

    /// One that has key shares of these groups; those of `X25519MLKEM768` fill a second datagram.
    pub fn with_groups(certificates: &Certificates, groups: &str) -> Self {
        let mut context = SslContextBuilder::new(SslMethod::tls()).expect("a context");
        context.set_curves_list(groups).expect("groups");
        context.set_ca_file(certificates.ca()).expect("the CA");
        context.set_verify(SslVerifyMode::PEER);
        context.enable_ocsp_stapling();
        let version = quiche::PROTOCOL_VERSION;
        let mut config =
            quiche::Config::with_boring_ssl_ctx_builder(version, context).expect("a configuration");
        config.set_application_protos(h3::APPLICATION_PROTOCOL).expect("protocols");
        config.set_max_idle_timeout(30_000);
        config.set_initial_max_data(1 << 20);
        config.set_initial_max_stream_data_bidi_local(1 << 18);
        config.set_initial_max_stream_data_uni(1 << 18);
        config.set_initial_max_streams_uni(10);
        config.set_active_connection_id_limit(8);
        // A header is sent as a whole or not at all.
        config.set_initial_congestion_window_packets(1000);
        config.enable_early_data();
        Self { config }
    }

    pub fn config(&mut self) -> &mut quiche::Config {
        &mut self.config
    }

    /// A connection whose handshake is complete.
    pub fn connect(&mut self, address: SocketAddr) -> Http3 {
        let mut client = self.begin(address, None);
        client.run_until("no handshake", |client| client.quic.is_established());
        client
    }

    /// A connection whose handshake is complete, and which says only what it is told to, on streams as they are.
    pub fn connect_raw(&mut self, address: SocketAddr) -> Http3 {
        let mut client = self.begin(address, None);
        client.speaks = false;
        client.run_until("no handshake", |client| client.quic.is_established());
        client
    }

    /// A connection that has sent its first flight, resuming this session.
    pub fn begin(&mut self, address: SocketAddr, session: Option<&[u8]>) -> Http3 {
        self.begin_for("localhost", address, session)
    }

    /// The same to another name.
    pub fn begin_for(&mut self, name: &str, address: SocketAddr, session: Option<&[u8]>) -> Http3 {
        let socket = socket();
        let mut id = [0; 16];
        boring::rand::rand_bytes(&mut id).expect("random bytes");
        let local = socket.local_addr().expect("an address");
        let id = ConnectionId::from_ref(&id);
        let mut quic =
            quiche::connect(Some(name), &id, local, address, &mut self.config).expect("a connection");
        if let Some(session) = session {
            quic.set_session(session).expect("a session");
        }
        let (answers, told_to_go, received, sent_bytes) = (HashMap::new(), false, 0, 0);
        let http = None;
        let mut client =
            Http3 { socket, quic, http, speaks: true, answers, told_to_go, received, sent_bytes };
        client.send();
        client
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    socket.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
    socket
}

impl Http3 {
    /// The OCSP response that came with the certificate.
    pub fn staple(&mut self) -> Option<Vec<u8>> {
        let ssl: &mut boring::ssl::SslRef = self.quic.as_mut();
        ssl.ocsp_status().map(<[u8]>::to_vec)
    }

    /// Asks for a path, and waits for the whole answer.
    #[track_caller]
    pub fn get(&mut self, path: &str) -> Answer {
        self.exchange(&Sending { method: "GET", path, headers: &[], body: b"" })
    }

    /// Sends a request, and waits for the whole answer.
    #[track_caller]
    pub fn exchange(&mut self, request: &Sending<'_>) -> Answer {
        let id = self.start(request.method, request.path, request.headers, request.body.is_empty());
        let mut left = request.body;
        while !left.is_empty() && self.answer(id).ended.is_none() {
            let sent = self.write(id, left, true);
            left = &left[sent..];
            self.turn();
        }
        self.finish(id)
    }

    /// Sends a request's header.
    pub fn start(&mut self, method: &str, path: &str, headers: &[(&str, &str)], alone: bool) -> u64 {
        let pseudo =
            [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", path)];
        let fields: Vec<_> = pseudo
            .iter()
            .chain(headers)
            .map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes()))
            .collect();
        self.start_with(&fields, alone)
    }

    /// Asks another host of the same connection.
    #[track_caller]
    pub fn get_of(&mut self, host: &str, path: &str) -> Answer {
        let fields = [(":method", "GET"), (":scheme", "https"), (":authority", host), (":path", path)];
        let fields = fields.map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes()));
        let id = self.start_with(&fields, true);
        self.finish(id)
    }

    /// The code with which the gateway ends the connection, if it does in this time.
    pub fn closes_within(&mut self, time: Duration) -> Option<u64> {
        let end = Instant::now() + time;
        while self.quic.peer_error().is_none() && !self.quic.is_closed() && Instant::now() < end {
            self.turn();
        }
        self.quic.peer_error().map(|error| error.error_code)
    }

    /// The code with which the gateway ends the connection.
    #[track_caller]
    pub fn closed_with(&mut self) -> u64 {
        let code = self.closes_within(PATIENCE);
        code.unwrap_or_else(|| panic!("not closed by the gateway; {:?}", self.quic.local_error()))
    }

    /// The alert with which the gateway ends the handshake (RFC 9001 section 4.8).
    #[track_caller]
    pub fn alert(&mut self) -> u64 {
        let code = self.closed_with();
        assert!((0x100..0x200).contains(&code), "no alert, but {code:#x}");
        code - 0x100
    }

    /// All that comes on a stream until its end, as it is.
    #[track_caller]
    pub fn read_raw(&mut self, stream: u64) -> Vec<u8> {
        let (mut all, mut piece) = (Vec::new(), [0; LARGEST]);
        let end = Instant::now() + PATIENCE;
        loop {
            while let Ok((count, last)) = self.quic.stream_recv(stream, &mut piece) {
                all.extend_from_slice(&piece[..count]);
                if last {
                    return all;
                }
            }
            assert!(Instant::now() < end, "the stream does not end; {:?}", self.quic.peer_error());
            self.turn();
        }
    }

    /// Sends these fields as a request's header.
    pub fn start_with(&mut self, fields: &[Header], alone: bool) -> u64 {
        let end = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < end, "no room for a request");
            self.speak_http();
            match self.http.as_mut().map(|http| http.send_request(&mut self.quic, fields, alone)) {
                Some(Ok(id)) => {
                    self.answers.insert(id, Answer::default());
                    self.send();
                    return id;
                }
                Some(Err(h3::Error::StreamBlocked)) | None => self.turn(),
                Some(Err(h3::Error::TransportError(quiche::Error::StreamLimit))) => self.turn(),
                Some(Err(error)) => panic!("no request: {error}"),
            }
        }
    }

    /// Sends as much of a body as there is room for.
    pub fn write(&mut self, id: u64, data: &[u8], last: bool) -> usize {
        let http = self.http.as_mut().expect("HTTP/3");
        match http.send_body(&mut self.quic, id, data, last) {
            Ok(count) => count,
            Err(h3::Error::Done) => 0,
            Err(h3::Error::TransportError(quiche::Error::StreamStopped(_))) => data.len(),
            Err(error) => panic!("cannot send: {error}"),
        }
    }

    /// Sends trailers, and with them the end.
    pub fn write_trailers(&mut self, id: u64, trailers: &[(&str, &str)]) {
        let fields: Vec<_> =
            trailers.iter().map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes())).collect();
        let http = self.http.as_mut().expect("HTTP/3");
        http.send_additional_headers(&mut self.quic, id, &fields, true, true).expect("trailers");
        self.send();
    }

    /// Waits for the end of an answer.
    #[track_caller]
    pub fn finish(&mut self, id: u64) -> Answer {
        self.run_until("no answer", |client| client.answer(id).ended.is_some() || client.quic.is_closed());
        self.answers.remove(&id).expect("an answer")
    }

    /// What has come for a request until now.
    pub fn answer(&self, id: u64) -> &Answer {
        &self.answers[&id]
    }

    /// What has come of an answer's body since the last time.
    pub fn take_body(&mut self, id: u64) -> Vec<u8> {
        self.answers.get_mut(&id).map(|answer| std::mem::take(&mut answer.body)).unwrap_or_default()
    }

    /// Says of a request that is under way how urgent it is (RFC 9218 section 7.2).
    pub fn update_priority(&mut self, id: u64, urgency: u8) {
        let http = self.http.as_mut().expect("HTTP/3");
        let priority = h3::Priority::new(urgency, false);
        http.send_priority_update_for_request(&mut self.quic, id, &priority).expect("a frame");
        self.send();
    }

    /// Gives a request up.
    pub fn cancel(&mut self, id: u64) {
        const REQUEST_CANCELLED: u64 = 0x10c;
        for direction in [quiche::Shutdown::Read, quiche::Shutdown::Write] {
            let _ = self.quic.stream_shutdown(id, direction, REQUEST_CANCELLED);
        }
        self.send();
    }

    pub fn is_established(&self) -> bool {
        self.quic.is_established()
    }

    /// The connection itself.
    pub fn quic(&mut self) -> &mut quiche::Connection {
        &mut self.quic
    }

    /// What resumes it, once there is a ticket.
    #[track_caller]
    pub fn session(&mut self) -> Vec<u8> {
        self.run_until("no ticket", |client| client.quic.session().is_some());
        self.quic.session().expect("a session").to_vec()
    }

    /// Goes on from another port, as behind a NAT that has forgotten the connection.
    pub fn move_to_another_port(&mut self) {
        self.run_until("no spare connection id", |client| client.quic.available_dcids() > 0);
        self.socket = socket();
        let local = self.socket.local_addr().expect("an address");
        while self.quic.scids_left() > 0 {
            let mut id = [0; 16];
            boring::rand::rand_bytes(&mut id).expect("random bytes");
            self.quic.new_scid(&ConnectionId::from_ref(&id), 0, false).expect("another id");
        }
        self.quic.migrate_source(local).expect("a path");
        self.send();
    }

    /// Goes on until something is true; says `what` has not happened otherwise.
    #[track_caller]
    pub fn run_until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !done(self) {
            let (local, peer) = (self.quic.local_error(), self.quic.peer_error());
            assert!(Instant::now() < end, "{what}; {local:?} {peer:?}");
            assert!(!self.quic.is_closed(), "{what}; closed: {local:?} {peer:?}");
            self.turn();
        }
    }

    /// Sends, and takes what has come, for a moment.
    pub fn turn(&mut self) {
        self.send();
        let mut datagram = [0; LARGEST];
        match self.socket.recv_from(&mut datagram) {
            Ok((length, from)) => {
                self.received += 1;
                let to = self.socket.local_addr().expect("an address");
                let _ = self.quic.recv(&mut datagram[..length], RecvInfo { from, to });
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => panic!("{error}"),
        }
        if self.quic.timeout().is_some_and(|left| left.is_zero()) {
            self.quic.on_timeout();
        }
        self.speak_http();
        self.take_events();
        self.send();
    }

    /// Says nothing for a while, whatever comes: how many bytes do.
    pub fn overhear(&mut self, time: Duration) -> usize {
        let (end, mut datagram, mut bytes) = (Instant::now() + time, [0; LARGEST], 0);
        while Instant::now() < end {
            bytes += self.socket.recv(&mut datagram).unwrap_or_default();
        }
        bytes
    }

    fn speak_http(&mut self) {
        if self.speaks && self.http.is_none() && (self.quic.is_established() || self.quic.is_in_early_data())
        {
            let config = h3::Config::new().expect("a configuration");
            self.http = h3::Connection::with_transport(&mut self.quic, &config).ok();
        }
    }

    /// Sends all there is to send, without waiting between datagrams.
    pub fn send(&mut self) {
        let mut datagram = [0; LARGEST];
        while let Ok((length, info)) = self.quic.send(&mut datagram) {
            self.sent_bytes += length;
            let _ = self.socket.send_to(&datagram[..length], info.to);
        }
    }

    fn take_events(&mut self) {
        let Some(http) = &mut self.http else { return };
        while let Ok((id, event)) = http.poll(&mut self.quic) {
            if let Event::GoAway = event {
                self.told_to_go = true;
            }
            let Some(answer) = self.answers.get_mut(&id) else { continue };
            match event {
                Event::Headers { list, .. } => answer.take_fields(&list),
                Event::Data => {
                    let mut data = [0; LARGEST];
                    while let Ok(count) = http.recv_body(&mut self.quic, id, &mut data) {
                        answer.body.extend_from_slice(&data[..count]);
                    }
                }
                Event::Finished => answer.ended = Some(Ok(())),
                Event::Reset(code) => answer.ended = Some(Err(code)),
                _ => {}
            }
        }
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn take_fields(&mut self, fields: &[Header]) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let status = fields.iter().find(|field| field.name() == b":status");
        let status = status.and_then(|field| text(field.value()).parse().ok());
        let fields = fields.iter().filter(|field| !field.name().starts_with(b":"));
        let fields = fields.map(|field| (text(field.name()), text(field.value())));
        match status {
            None => self.trailers.extend(fields),
            Some(informational @ 100..=199) => self.informational.push(informational),
            Some(status) => {
                self.status = status;
                self.headers.extend(fields);
            }
        }
    }
}
