//! TLS to a control plane, with a client certificate if one is configured.

use boring::{
    error::ErrorStack,
    ssl::{SslConnector, SslMethod},
    x509::{X509, store::X509StoreBuilder},
};
use quadrille_config::model::{CertificateSource, KeySource, Source, UpstreamTls};
use quadrille_engine::Key;
use quadrille_envoy::ClusterTls;
use quadrille_gateway::verify_server_names;
use quadrille_xds::transport::{Connect, Connecting, Io};
use std::{fmt::Display, io, sync::Arc};

/// TLS settings of all connections to one control plane. Its certificate is always verified, against the system's CAs
/// unless others are configured.
#[derive(Clone)]
pub(crate) struct Tls {
    wanted: Arc<UpstreamTls>,
}

/// Makes TLS connections to one endpoint.
pub(crate) struct OverTls {
    tls: Tls,
    plain: Arc<dyn Connect>,
    host: String,
}

impl Tls {
    /// Creates the connector. The files are read for each connection, so that they can be renewed; this checks that
    /// they can be read now.
    pub(crate) fn new(name: &str, tls: &ClusterTls) -> Result<Self, String> {
        let failed = |problem: &dyn Display| format!("TLS to the control plane `{name}`: {problem}");
        let wanted = tls.for_control_plane().map_err(|problem| failed(&problem))?;
        let new = Self { wanted: Arc::new(wanted) };
        new.connector().map_err(|error| failed(&error))?;
        Ok(new)
    }

    pub(crate) fn over(&self, plain: Arc<dyn Connect>, host: String) -> OverTls {
        OverTls { tls: self.clone(), plain, host }
    }

    fn connector(&self) -> io::Result<SslConnector> {
        let mut builder = SslConnector::builder(SslMethod::tls()).map_err(opaque)?;
        quadrille_signature_algorithms::verify_all_servers(&mut builder).map_err(opaque)?;
        builder.set_alpn_protos(b"\x02h2").map_err(opaque)?;
        if let Some(ca) = &self.wanted.ca {
            let mut store = X509StoreBuilder::new().map_err(opaque)?;
            for certificate in certificates(ca)? {
                store.add_cert(certificate).map_err(opaque)?;
            }
            builder.set_cert_store_builder(store);
        }
        if let Some(certificate) = &self.wanted.certificate {
            let (chain, key) = local(certificate)?;
            let mut chain = certificates(chain)?.into_iter();
            let own = chain.next().ok_or_else(|| io::Error::other("the client certificate is empty"))?;
            builder.set_certificate(&own).map_err(opaque)?;
            for certificate in chain {
                builder.add_extra_chain_cert(certificate).map_err(opaque)?;
            }
            let unusable = |error| invalid(key, &error);
            let own = Key::from_pem(&key.read()?).map_err(unusable)?;
            builder.set_private_key(own.for_connections().map_err(unusable)?).map_err(opaque)?;
            builder.check_private_key().map_err(opaque)?;
        }
        Ok(builder.build())
    }
}

fn certificates(source: &Source) -> io::Result<Vec<X509>> {
    quadrille_pem::certificates(&source.read()?).map_err(|damage| invalid(source, &damage))
}

fn invalid(source: &Source, problem: &dyn Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{source}: {problem}"))
}

fn local(certificate: &CertificateSource) -> io::Result<(&Source, &Source)> {
    match &certificate.key {
        KeySource::Pem(key) => Ok((&certificate.chain, key)),
        KeySource::Keyless(_) | KeySource::Pkcs11(_) => {
            Err(io::Error::other("the client certificate's key must be in a file"))
        }
    }
}

impl Connect for OverTls {
    fn connect(&self) -> Connecting {
        let tls = self.tls.clone();
        let connector = tls.connector();
        let plain = self.plain.connect();
        let name = tls.wanted.server_name.clone().unwrap_or_else(|| self.host.clone());
        Box::pin(async move {
            let mut configuration = connector?.configure().map_err(opaque)?;
            // The required subjectAltNames replace the host name, as in Envoy.
            let names = &tls.wanted.names;
            configuration.set_verify_hostname(names.is_empty());
            let failed = |problem: &dyn Display| io::Error::other(format!("TLS as `{name}`: {problem}"));
            let stream = tokio_boring::connect(configuration, &name, plain.await?).await;
            let stream = stream.map_err(|error| failed(&error))?;
            verify_server_names(stream.ssl(), names).map_err(|error| failed(&error))?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}

/// Keeps the error's text, which never contains key material.
fn opaque(error: ErrorStack) -> io::Error {
    io::Error::other(error.to_string())
}
