//! Mutual TLS, for both ends.

use crate::wire::ALPN;
use boring::{
    error::ErrorStack,
    pkey::{PKey, Private},
    ssl::{
        AlpnError, SslConnector, SslContext, SslContextBuilder, SslMethod, SslMode, SslOptions,
        SslSessionCacheMode, SslVerifyMode, SslVersion, select_next_proto,
    },
    x509::{X509, store::X509StoreBuilder},
};
use quadrille_pem::RevocationLists;

/// Certificate chain, leaf first, and private key of this end.
#[derive(Clone)]
pub struct Credentials {
    /// Leaf first.
    pub chain: Vec<X509>,
    /// The leaf's key.
    pub key: PKey<Private>,
}

/// CAs that the peer's certificate may chain to.
#[derive(Clone)]
pub struct Trust(pub Vec<X509>);

/// CAs and certificate revocation lists that clients' certificates are verified with.
#[derive(Clone)]
pub struct ClientTrust {
    /// CAs.
    pub cas: Trust,
    /// Lists of all these CAs; `None` if certificates are not checked for revocation.
    pub revoked: Option<RevocationLists>,
}

impl PartialEq for ClientTrust {
    fn eq(&self, other: &Self) -> bool {
        let der = |trust: &Self| trust.cas.0.iter().map(|ca| ca.to_der().ok()).collect::<Vec<_>>();
        self.revoked == other.revoked && der(self) == der(other)
    }
}

impl ClientTrust {
    pub(crate) fn store(&self) -> Result<X509StoreBuilder, ErrorStack> {
        let mut store = self.cas.store()?;
        if let Some(revoked) = &self.revoked {
            revoked.add_to(&mut store)?;
        }
        Ok(store)
    }
}

impl Trust {
    fn store(&self) -> Result<X509StoreBuilder, ErrorStack> {
        let mut store = X509StoreBuilder::new()?;
        for ca in &self.0 {
            store.add_cert(ca)?;
        }
        Ok(store)
    }
}

/// TLS 1.2 for foreign peers: forward secrecy and AEAD only.
const CIPHERS: &str = "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:\
                       ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:\
                       ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

/// Server side: every client must present a certificate of these CAs.
pub(crate) fn server(credentials: &Credentials, clients: &ClientTrust) -> Result<SslContext, ErrorStack> {
    let mut builder = SslContext::builder(SslMethod::tls())?;
    common(&mut builder, credentials, SslVersion::TLS1_2)?;
    builder.set_cert_store_builder(clients.store()?);
    for ca in &clients.cas.0 {
        builder.add_client_ca(ca)?;
    }
    builder.set_options(SslOptions::NO_TICKET | SslOptions::CIPHER_SERVER_PREFERENCE);
    builder.set_session_cache_mode(SslSessionCacheMode::OFF);
    builder.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
    // The choice is a part of the client's list, which outlives the callback. Clients without a known protocol are
    // served in the compatible mode, as are clients without ALPN.
    builder.set_alpn_select_callback(|_, client| {
        let ours = wire_alpn();
        select_next_proto(&ours, client)
            .and_then(|chosen| client.windows(chosen.len()).find(|window| *window == chosen))
            .ok_or(AlpnError::NOACK)
    });
    Ok(builder.build())
}

/// Client side. With `only_ours` only the batched mode over TLS 1.3 is accepted; with `offer_ours` it is preferred.
pub(crate) fn client(
    credentials: &Credentials,
    servers: &Trust,
    offer_ours: bool,
    only_ours: bool,
) -> Result<SslConnector, ErrorStack> {
    let mut builder = SslConnector::builder(SslMethod::tls())?;
    let least = if only_ours { SslVersion::TLS1_3 } else { SslVersion::TLS1_2 };
    common(&mut builder, credentials, least)?;
    builder.set_cert_store_builder(servers.store()?);
    builder.set_verify(SslVerifyMode::PEER);
    if offer_ours {
        builder.set_alpn_protos(&wire_alpn())?;
    }
    Ok(builder.build())
}

fn common(
    builder: &mut SslContextBuilder,
    credentials: &Credentials,
    least: SslVersion,
) -> Result<(), ErrorStack> {
    // A blocked write may be retried with more data, and at another address (otherwise `BAD_WRITE_RETRY` would end
    // the connections of all slow readers).
    builder.set_mode(SslMode::ENABLE_PARTIAL_WRITE | SslMode::ACCEPT_MOVING_WRITE_BUFFER);
    builder.set_min_proto_version(Some(least))?;
    builder.set_max_proto_version(Some(SslVersion::TLS1_3))?;
    builder.set_strict_cipher_list(CIPHERS)?;
    quadrille_signature_algorithms::verify_all_servers(builder)?;
    for (index, link) in credentials.chain.iter().enumerate() {
        match index {
            0 => builder.set_certificate(link)?,
            _ => builder.add_extra_chain_cert(link.clone())?,
        }
    }
    builder.set_private_key(&credentials.key)
}

/// Length-prefixed ALPN name (RFC 7301 section 3.1).
fn wire_alpn() -> Vec<u8> {
    let mut wire = vec![u8::try_from(ALPN.len()).unwrap_or(0)];
    wire.extend(ALPN.as_bytes());
    wire
}
