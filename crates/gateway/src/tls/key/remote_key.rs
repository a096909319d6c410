//! Keys on key servers, and the connections to these.

use super::key_overflow::KeyOverflow;
use crate::tls::pem::{read_chain, read_key};
use quadrille_config::{
    Diagnostic,
    model::{KeyServerUse, Keyless, KeylessTls, Place, Source},
};
use quadrille_engine::{Key, PublicKey};
use quadrille_keyless::{
    Credentials, Trust,
    client::{Client, FailoverPolicy, RemoteKey, Settings},
};
use std::sync::Arc;

/// Private key of a certificate on key servers.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    pub(crate) key: RemoteKey,
    pub(crate) client: Client,
    /// Local key, used if the key servers are not queried or do not respond.
    pub(crate) fallback: Option<Key>,
    /// Set if the key servers receive only operations that would be queued too long here.
    pub(crate) overflow: Option<Arc<KeyOverflow>>,
}

impl Remote {
    /// Creates the private half of this public key.
    pub(crate) fn new(
        settings: &Keyless,
        public: PublicKey,
        client: Client,
        place: &Place,
    ) -> Result<Self, Diagnostic> {
        let key = RemoteKey::new(public).map_err(|error| Diagnostic::new(place, error.to_string()))?;
        let fallback = settings.fallback.as_ref().map(|source| read_key(source, place)).transpose()?;
        let overflow = (settings.usage == KeyServerUse::Overflow).then(KeyOverflow::new);
        Ok(Self { key, client, fallback, overflow })
    }

    /// Creates a key without a local fallback.
    pub(crate) fn alone(key: RemoteKey, client: Client) -> Self {
        Self { key, client, fallback: None, overflow: None }
    }
}

/// Creates the client of these key servers. In a running gateway, as opposed to a check, connections are opened at
/// once, so that unreachable key servers are noticed before the first handshake.
pub(crate) fn client(settings: &Keyless, place: &Place) -> Result<Client, Diagnostic> {
    let tls = settings.tls.as_ref().map(credentials).transpose()?;
    let failover =
        FailoverPolicy { deadline: settings.timeout, hedge: settings.hedge, ..FailoverPolicy::default() };
    let client = Client::new(Settings {
        protocol: settings.protocol,
        padding: settings.padding,
        failover,
        ..Settings::new(settings.servers.clone(), tls)
    });
    let client = client.map_err(|error| {
        let certificate = settings.tls.as_ref().map_or(place, |tls| &tls.certificate.1);
        Diagnostic::new(certificate, format!("BoringSSL does not accept the certificate and key: {error}"))
    })?;
    if tokio::runtime::Handle::try_current().is_ok() {
        client.warm_up();
    }
    Ok(client)
}

fn credentials(tls: &KeylessTls) -> Result<(Credentials, Trust), Diagnostic> {
    read_credentials(&tls.certificate, &tls.key, &tls.ca)
}

/// Reads a certificate with its key, and the trusted CAs for the peer.
pub(crate) fn read_credentials(
    certificate: &(Source, Place),
    key: &(Source, Place),
    ca: &(Source, Place),
) -> Result<(Credentials, Trust), Diagnostic> {
    let chain = read_chain(&certificate.0, &certificate.1)?;
    let own = read_key(&key.0, &key.1)?;
    let matches = chain[0].public_key().is_ok_and(|public| own.pkey().public_eq(&public));
    if !matches {
        let (key_source, certificate) = (&key.0, &certificate.0);
        let message = format!("the private key {key_source} does not match the certificate {certificate}");
        return Err(Diagnostic::new(&key.1, message));
    }
    let trust = Trust(read_chain(&ca.0, &ca.1)?);
    let unusable = |error| Diagnostic::new(&key.1, format!("{}: {error}", key.0));
    let key = own.for_connections().map_err(unusable)?.to_owned();
    Ok((Credentials { chain, key }, trust))
}
