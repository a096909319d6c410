//! An HTTP/3 client with control over what browsers hide: single connections, their datagrams, and resumption. It
//! uses quiche, as the gateway does; other implementations have their own tests.

use super::{Certificates, PATIENCE};
use boring::ssl::{SslContextBuilder, SslMethod, SslSignatureAlgorithm, SslVerifyMode};
use quiche::{
    ConnectionId, RecvInfo,
    h3::{self, Event, Header, NameValue},
};
use std::{
    collections::HashMap,
    io::ErrorKind::{ConnectionRefused, TimedOut, WouldBlock},
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    time::{Duration, Instant},
};

const LARGEST: usize = 65_535;

/// Connection settings of a client.
pub struct Http3Client {
    config: quiche::Config,
}

/// An HTTP/3 connection.
pub struct Http3 {
    socket: UdpSocket,
    quic: quiche::Connection,
    http: Option<h3::Connection>,
    /// Whether it uses HTTP/3; otherwise tests use raw streams.
    speaks: bool,
    answers: HashMap<u64, Answer>,
    /// Whether the gateway has sent GOAWAY.
    pub told_to_go: bool,
    /// The gateway's datagrams, before processing.
    pub received: usize,
    /// Bytes sent in its own datagrams.
    pub sent_bytes: usize,
}

/// Data received for a request.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: u16,
    /// Headers of informational (1xx) responses.
    pub informational: Vec<u16>,
    pub headers: Vec<(String, String)>,
    pub trailers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether it completed, or the reason why it will not.
    pub ended: Option<Result<(), u64>>,
}

/// A request with a body that may be sent in pieces.
pub struct Sending<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
}

impl Http3Client {
    /// Returns a client that trusts this CA.
    pub fn new(certificates: &Certificates) -> Self {
        Self::with_groups(certificates, "X25519:P-256")
    }

    /// Returns a client with key shares of these groups; those of `X25519MLKEM768` fill a second datagram.
    pub fn with_groups(certificates: &Certificates, groups: &str) -> Self {
        Self::configured(certificates, |context| context.set_curves_list(groups).expect("groups"))
    }

    /// Returns a client that can verify these signatures only.
    pub fn offering(certificates: &Certificates, algorithms: &[SslSignatureAlgorithm]) -> Self {
        Self::configured(certificates, |tls| tls.set_verify_algorithm_prefs(algorithms).expect("algorithms"))
    }

    /// Returns a client whose TLS context is configured.
    pub fn configured(certificates: &Certificates, configure: impl FnOnce(&mut SslContextBuilder)) -> Self {
        let mut context = SslContextBuilder::new(SslMethod::tls()).expect("a context");
        configure(&mut context);
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
        // A header is sent completely or not at all.
        config.set_initial_congestion_window_packets(1000);
        config.enable_early_data();
        Self { config }
    }

    pub fn config(&mut self) -> &mut quiche::Config {
        &mut self.config
    }

    /// Opens a connection and completes the handshake.
    pub fn connect(&mut self, address: SocketAddr) -> Http3 {
        let mut client = self.begin(address, None);
        client.run_until("no handshake", |client| client.quic.is_established());
        client
    }

    /// Opens a connection without HTTP/3, completes the handshake, and leaves the streams to the test.
    pub fn connect_raw(&mut self, address: SocketAddr) -> Http3 {
        let mut client = self.begin(address, None);
        client.speaks = false;
        client.run_until("no handshake", |client| client.quic.is_established());
        client
    }

    /// Opens a connection and sends its first flight, resuming this session.
    pub fn begin(&mut self, address: SocketAddr, session: Option<&[u8]>) -> Http3 {
        self.begin_for("localhost", address, session)
    }

    /// Opens a connection to another name.
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
    /// Returns the stapled OCSP response.
    pub fn staple(&mut self) -> Option<Vec<u8>> {
        let ssl: &mut boring::ssl::SslRef = self.quic.as_mut();
        ssl.ocsp_status().map(<[u8]>::to_vec)
    }

    /// Requests a path, and waits for the complete response.
    #[track_caller]
    pub fn get(&mut self, path: &str) -> Answer {
        self.exchange(&Sending { method: "GET", path, headers: &[], body: b"" })
    }

    /// Sends a request, and waits for the complete response.
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

    /// Requests a path of another host on the same connection.
    #[track_caller]
    pub fn get_of(&mut self, host: &str, path: &str) -> Answer {
        let fields = [(":method", "GET"), (":scheme", "https"), (":authority", host), (":path", path)];
        let fields = fields.map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes()));
        let id = self.start_with(&fields, true);
        self.finish(id)
    }

    /// Returns the code with which the gateway closes the connection, if it does in this time.
    pub fn closes_within(&mut self, time: Duration) -> Option<u64> {
        let end = Instant::now() + time;
        while self.quic.peer_error().is_none() && !self.quic.is_closed() && Instant::now() < end {
            self.turn();
        }
        self.quic.peer_error().map(|error| error.error_code)
    }

    /// Returns the code with which the gateway closes the connection.
    #[track_caller]
    pub fn closed_with(&mut self) -> u64 {
        let code = self.closes_within(PATIENCE);
        code.unwrap_or_else(|| panic!("not closed by the gateway; {:?}", self.quic.local_error()))
    }

    /// Returns the alert with which the gateway ends the handshake (RFC 9001 section 4.8).
    #[track_caller]
    pub fn alert(&mut self) -> u64 {
        let code = self.closed_with();
        assert!((0x100..0x200).contains(&code), "no alert, but {code:#x}");
        code - 0x100
    }

    /// Returns all raw bytes of a stream until its end.
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

    /// Sends as much of a body as the window allows.
    pub fn write(&mut self, id: u64, data: &[u8], last: bool) -> usize {
        let http = self.http.as_mut().expect("HTTP/3");
        match http.send_body(&mut self.quic, id, data, last) {
            Ok(count) => count,
            Err(h3::Error::Done) => 0,
            Err(h3::Error::TransportError(quiche::Error::StreamStopped(_))) => data.len(),
            Err(error) => panic!("cannot send: {error}"),
        }
    }

    /// Sends trailers and the end of the stream.
    pub fn write_trailers(&mut self, id: u64, trailers: &[(&str, &str)]) {
        let fields: Vec<_> =
            trailers.iter().map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes())).collect();
        let http = self.http.as_mut().expect("HTTP/3");
        http.send_additional_headers(&mut self.quic, id, &fields, true, true).expect("trailers");
        self.send();
    }

    /// Waits for the end of a response.
    #[track_caller]
    pub fn finish(&mut self, id: u64) -> Answer {
        self.run_until("no response", |client| client.answer(id).ended.is_some() || client.quic.is_closed());
        self.answers.remove(&id).expect("a response")
    }

    /// Returns the data received for a request so far.
    pub fn answer(&self, id: u64) -> &Answer {
        &self.answers[&id]
    }

    /// Returns the bytes of a response's body received since the last call.
    pub fn take_body(&mut self, id: u64) -> Vec<u8> {
        self.answers.get_mut(&id).map(|answer| std::mem::take(&mut answer.body)).unwrap_or_default()
    }

    /// Updates the priority of a pending request (RFC 9218 section 7.2).
    pub fn update_priority(&mut self, id: u64, urgency: u8) {
        let http = self.http.as_mut().expect("HTTP/3");
        let priority = h3::Priority::new(urgency, false);
        http.send_priority_update_for_request(&mut self.quic, id, &priority).expect("a frame");
        self.send();
    }

    /// Cancels a request.
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

    /// Returns the QUIC connection.
    pub fn quic(&mut self) -> &mut quiche::Connection {
        &mut self.quic
    }

    /// Returns the session for resumption, once there is a ticket.
    #[track_caller]
    pub fn session(&mut self) -> Vec<u8> {
        self.run_until("no ticket", |client| client.quic.session().is_some());
        self.quic.session().expect("a session").to_vec()
    }

    /// Migrates to another port, as behind a NAT that has dropped the mapping.
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

    /// Runs the connection until a condition is true; fails with `what` otherwise.
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

    /// Sends and receives for a short time.
    pub fn turn(&mut self) {
        self.send();
        self.listen();
        if self.quic.timeout().is_some_and(|left| left.is_zero()) {
            self.quic.on_timeout();
        }
        self.speak_http();
        self.take_events();
        self.send();
    }

    /// Receives for a short time, and sends nothing; returns the number of bytes.
    pub fn listen(&mut self) -> usize {
        let mut datagram = [0; LARGEST];
        let (length, from) = match self.socket.recv_from(&mut datagram) {
            Ok(received) => received,
            Err(error) if matches!(error.kind(), WouldBlock | TimedOut | ConnectionRefused) => return 0,
            Err(error) => panic!("{error}"),
        };
        self.received += 1;
        let to = self.socket.local_addr().expect("an address");
        let _ = self.quic.recv(&mut datagram[..length], RecvInfo { from, to });
        length
    }

    /// Sends nothing for this time; returns the number of bytes received.
    pub fn overhear(&mut self, time: Duration) -> usize {
        let end = Instant::now() + time;
        std::iter::from_fn(|| (Instant::now() < end).then(|| self.listen())).sum()
    }

    fn speak_http(&mut self) {
        if self.speaks && self.http.is_none() && (self.quic.is_established() || self.quic.is_in_early_data())
        {
            let config = h3::Config::new().expect("a configuration");
            self.http = h3::Connection::with_transport(&mut self.quic, &config).ok();
        }
    }

    /// Sends all pending datagrams without pacing.
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
