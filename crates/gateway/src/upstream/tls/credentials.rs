//! TLS to endpoints: connections resume the sessions of earlier ones.

use super::{
    alpn::Alpn,
    client_sessions::{ClientSessions, Peer},
};
use crate::{
    tls::{
        Transport,
        certificate::{
            alt_names,
            files::{Certificate, PrivateKey},
        },
        parameters::{group_list, ssl_version},
    },
    upstream::balance::{endpoint::Endpoints, server::Server},
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

/// TLS to the endpoints of an upstream. Sessions are not shared with other upstreams, as they were verified by its
/// rules.
pub(crate) struct ClientTls {
    connector: SslConnector,
    server_name: Option<String>,
    verify: bool,
    verify_name: bool,
    names: Vec<AltName>,
    alpn: UpstreamAlpn,
    sessions: Arc<ClientSessions>,
}

/// Trusted CAs and client certificate of a TLS transport.
#[derive(Default)]
pub(crate) struct Credentials {
    /// Content of [`UpstreamTls::ca`].
    pub(crate) ca: Option<Arc<Box<[X509]>>>,
    /// Client certificate.
    pub(crate) certificate: Option<Certificate>,
}

/// Index of the peer in the connection's ex_data, for the callback that stores the session.
static PEER: LazyLock<Option<Index<Ssl, Peer>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

impl ClientTls {
    pub(crate) fn new(tls: &UpstreamTls, credentials: &Credentials) -> Result<Self, ErrorStack> {
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
            // A panic must not unwind out of the callback; nothing in it panics.
            if let Some(peer) = PEER.and_then(|index| ssl.ex_data(index)) {
                keep.put(peer, session);
            }
        });
        let (server_name, verify) = (tls.server_name.clone(), tls.verify);
        let (verify_name, names, alpn) = (tls.verify_name, tls.names.clone(), tls.alpn);
        Ok(Self { connector: builder.build(), server_name, verify, verify_name, names, alpn, sessions })
    }

    /// Removes the sessions of all other endpoints.
    pub(crate) fn retain(&self, endpoints: &Endpoints) {
        // The endpoints are ordered by address.
        let is_there =
            |address: &_| endpoints.binary_search_by(|endpoint| endpoint.address.cmp(address)).is_ok();
        self.sessions.retain(is_there);
    }

    /// Opens a verified connection, or one that resumes a verified session. `name` replaces the endpoint's.
    pub(crate) async fn connect(
        &self,
        server: &Server,
        name: Option<&str>,
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
        let name = name.or(self.server_name.as_deref()).unwrap_or(&server.host);
        let peer = (server.address.clone(), Arc::from(name));
        if let Some(session) = self.sessions.take(&peer) {
            // SAFETY: the session was created on a connection of this connector.
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
    quadrille_signature_algorithms::verify_all(builder)?;
    if !parameters.ciphers.is_empty() {
        builder.set_strict_cipher_list(&parameters.ciphers.join(":"))?;
    }
    Ok(())
}

/// Sets the client certificate, which servers may request.
fn show(certificate: &Certificate, builder: &mut SslConnectorBuilder) -> Result<(), ErrorStack> {
    for (index, link) in certificate.chain.iter().enumerate() {
        match index {
            0 => builder.set_certificate(link)?,
            _ => builder.add_extra_chain_cert(link.clone())?,
        }
    }
    match &certificate.key {
        PrivateKey::Local(key) => builder.set_private_key(key.pkey()),
        // Client certificates are not created with remote keys.
        PrivateKey::Remote(_) => Ok(()),
    }
}
