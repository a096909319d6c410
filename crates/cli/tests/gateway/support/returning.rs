//! Clients that resume their last session, by every method of TLS.

use super::{Certificates, PATIENCE, Pair};
use boring::{
    ex_data::Index,
    ssl::{
        Ssl, SslConnector, SslFiletype, SslMethod, SslOptions, SslSession, SslSessionCacheMode, SslVersion,
    },
};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, LazyLock, Mutex},
};

/// Method of resumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Tls13,
    Ticket12,
    Id12,
}

impl Way {
    pub const ALL: [Self; 3] = [Self::Tls13, Self::Ticket12, Self::Id12];
}

/// A client configuration.
#[derive(Clone)]
pub struct Returning {
    connector: SslConnector,
    way: Way,
}

type Slot = Arc<Mutex<Option<SslSession>>>;

static SLOT: LazyLock<Index<Ssl, Slot>> = LazyLock::new(|| Ssl::new_ex_index().expect("an index"));

impl Returning {
    pub fn new(certificates: &Certificates, way: Way) -> Self {
        Self::build(certificates, way, None)
    }

    /// Returns a client with a certificate.
    pub fn with_certificate(certificates: &Certificates, way: Way, pair: &Pair) -> Self {
        Self::build(certificates, way, Some(pair))
    }

    fn build(certificates: &Certificates, way: Way, pair: Option<&Pair>) -> Self {
        let mut builder = SslConnector::builder(SslMethod::tls()).expect("a TLS client");
        builder.set_ca_file(certificates.ca()).expect("the CA");
        let version = if way == Way::Tls13 { SslVersion::TLS1_3 } else { SslVersion::TLS1_2 };
        builder.set_min_proto_version(Some(version)).expect("a version");
        builder.set_max_proto_version(Some(version)).expect("a version");
        if way == Way::Id12 {
            builder.set_options(SslOptions::NO_TICKET);
        }
        if let Some(pair) = pair {
            builder.set_certificate_chain_file(&pair.chain).expect("a certificate");
            builder.set_private_key_file(&pair.key, SslFiletype::PEM).expect("a key");
        }
        builder.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
        builder.set_new_session_callback(|ssl, session| {
            if let Some(slot) = ssl.ex_data(*SLOT) {
                *slot.lock().expect("a slot") = Some(session);
            }
        });
        Self { connector: builder.build(), way }
    }

    /// Requests `/` with this session, and replaces it with the newest one. Returns whether it was resumed.
    pub fn visit(&self, address: SocketAddr, session: &mut Option<SslSession>) -> io::Result<bool> {
        self.visit_as("localhost", address, session)
    }

    /// Requests `/` from another server name.
    pub fn visit_as(
        &self,
        name: &str,
        address: SocketAddr,
        session: &mut Option<SslSession>,
    ) -> io::Result<bool> {
        let tcp = TcpStream::connect(address)?;
        tcp.set_read_timeout(Some(PATIENCE))?;
        tcp.set_nodelay(true)?;
        let mut configuration = self.connector.configure().map_err(io::Error::other)?;
        let slot = Slot::default();
        configuration.set_ex_data(*SLOT, Arc::clone(&slot));
        let offered = session.take();
        if let Some(session) = &offered {
            // SAFETY: the session is from a connection of this connector, or was read from bytes.
            unsafe { configuration.set_session(session).map_err(io::Error::other)? };
        }
        let mut tls =
            configuration.connect(name, tcp).map_err(|error| io::Error::other(error.to_string()))?;
        tls.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        // The TLS 1.3 ticket arrives before the response. The end of the connection is not tested here.
        let _ = tls.read_to_end(&mut answer);
        if !answer.starts_with(b"HTTP/1.1 200") {
            let text = String::from_utf8_lossy(&answer).into_owned();
            return Err(io::Error::other(format!("no response: {text:?}")));
        }
        let resumed = tls.ssl().session_reused();
        let newest = slot.lock().expect("a slot").take();
        // A session id is kept; a ticket must be replaced.
        *session = newest.or_else(|| offered.filter(|_| resumed && self.way == Way::Id12));
        Ok(resumed)
    }
}
