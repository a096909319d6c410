//! TLS towards the servers: connections resume the sessions of earlier ones.

use super::{
    alpn::Alpn,
    client_sessions::{ClientSessions, Peer},
    endpoint::Endpoints,
    server::Server,
};
use crate::tls::{
    Transport, alt_names,
    certificate::{Certificate, PrivateKey},
    parameters::{group_list, ssl_version},
};
use boring::{
    error::ErrorStack,
    ex_data::Index,
    ssl::{Ssl, SslConnector, SslConnectorBuilder, SslMethod, SslSessionCacheMode, SslVerifyMode},
    x509::{X509, store::X509StoreBuilder},
};
use quadrille_config::model::{AltName, TlsParameters, UpstreamAlpn, UpstreamTls};
use std::{
    io,
    sync::{Arc, LazyLock},
};
use tokio_boring::SslStream;

/// TLS towards the servers of one upstream. Sessions stay within it: they were verified by its rules.
pub(crate) struct ClientTls {
    connector: SslConnector,
    server_name: Option<String>,
    verify: bool,
    verify_name: bool,
    names: Vec<AltName>,
    alpn: UpstreamAlpn,
    sessions: Arc<ClientSessions>,
}

/// By what the gateway and servers know each other, by one way of TLS.
#[derive(Default)]
pub(crate) struct Credentials {
    /// What [`UpstreamTls::ca`] holds.
    pub(crate) ca: Option<Arc<Box<[X509]>>>,
    /// What is shown to servers.
    pub(crate) certificate: Option<Certificate>,
}

/// Whose session it is, known to the callback that keeps it.
static PEER: LazyLock<Option<Index<Ssl, Peer>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

impl ClientTls {
    pub(super) fn new(tls: &UpstreamTls, credentials: &Credentials) -> Result<Self, ErrorStack> {
        let mut builder = SslConnector::builder(SslMethod::tls())?;
        if let Some(ca) = &credentials.ca {
            let mut store = X509StoreBuilder::new()?;
            ca.iter().try_for_each(|ca| store.add_cert(ca))?;
            builder.set_cert_store_builder(store);
        }
        if let Some(certificate) = &credentials.certificate {
            show(certificate, &mut builder)?;
        }
        offer(&tls.parameters, &mut builder)?;
        let sessions = Arc::new(ClientSessions::default());
        let keep = Arc::clone(&sessions);
        builder.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
        builder.set_new_session_callback(move |ssl, session| {
            // A panic must not leave the callback; there is nothing in it that panics.
            if let Some(peer) = PEER.and_then(|index| ssl.ex_data(index)) {
                keep.put(peer, session);
            }
        });
        let (server_name, verify) = (tls.server_name.clone(), tls.verify);
        let (verify_name, names, alpn) = (tls.verify_name, tls.names.clone(), tls.alpn);
        Ok(Self { connector: builder.build(), server_name, verify, verify_name, names, alpn, sessions })
    }

    /// Forgets the sessions of all other servers.
    pub(super) fn retain(&self, endpoints: &Endpoints) {
        // They are ordered by address.
        let is_there =
            |address: &_| endpoints.binary_search_by(|endpoint| endpoint.address.cmp(address)).is_ok();
        self.sessions.retain(is_there);
    }

    /// A verified connection, or one that resumes a verified session.
    pub(super) async fn connect(
        &self,
        server: &Server,
        tcp: Transport,
        alpn: Alpn,
    ) -> io::Result<SslStream<Transport>> {
        let mut configuration = self.connector.configure()?;
        let offered = alpn.wire(self.alpn);
        if !offered.is_empty() {
            configuration.set_alpn_protos(offered)?;
        }
        if !self.verify {
            configuration.set_verify(SslVerifyMode::NONE);
        }
        configuration.set_verify_hostname(self.verify && self.verify_name);
        let name = self.server_name.as_deref().unwrap_or(&server.host);
        let peer = (server.address.clone(), Arc::from(name));
        if let Some(session) = self.sessions.take(&peer) {
            // SAFETY: the session was made on a connection of this connector.
            unsafe { configuration.set_session(&session)? };
        }
        if let Some(index) = *PEER {
            configuration.set_ex_data(index, peer);
        }
        let stream = tokio_boring::connect(configuration, name, tcp)
            .await
            .map_err(|error| io::Error::other(error.to_string()))?;
        alt_names::verify_server_names(stream.ssl(), &self.names)?;
        Ok(stream)
    }
}

fn offer(parameters: &TlsParameters, builder: &mut SslConnectorBuilder) -> Result<(), ErrorStack> {
    builder.set_min_proto_version(Some(ssl_version(parameters.min)))?;
    builder.set_max_proto_version(Some(ssl_version(parameters.max)))?;
    builder.set_curves_list(&group_list(&parameters.groups))?;
    if !parameters.ciphers.is_empty() {
        builder.set_strict_cipher_list(&parameters.ciphers.join(":"))?;
    }
    Ok(())
}

/// The certificate for servers that ask for one.
fn show(certificate: &Certificate, builder: &mut SslConnectorBuilder) -> Result<(), ErrorStack> {
    for (index, link) in certificate.chain.iter().enumerate() {
        match index {
            0 => builder.set_certificate(link)?,
            _ => builder.add_extra_chain_cert(link.clone())?,
        }
    }
    match &certificate.key {
        PrivateKey::Local(key) => builder.set_private_key(key.pkey()),
        // None is made like that.
        PrivateKey::Remote(_) => Ok(()),
    }
}
