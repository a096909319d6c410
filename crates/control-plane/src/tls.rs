//! TLS towards a control plane, with a client certificate where one is written.

use boring::{
    error::ErrorStack,
    pkey::PKey,
    ssl::{SslConnector, SslMethod},
    x509::{X509, store::X509StoreBuilder},
};
use quadrille_config::model::Source;
use quadrille_envoy::ClusterTls;
use quadrille_xds::transport::{Connect, Connecting, Io};
use std::{io, sync::Arc};

/// What holds for all connections to one control plane.
#[derive(Clone)]
pub(crate) struct Tls {
    certificate: Option<(Source, Source)>,
    ca: Option<Source>,
    sni: Option<String>,
}

/// Connections to one server.
pub(crate) struct OverTls {
    tls: Tls,
    plain: Arc<dyn Connect>,
    host: String,
}

impl Tls {
    /// The files are read for each connection, so that they can be renewed; here it is seen whether they can be read
    /// now.
    pub(crate) fn new(name: &str, tls: &ClusterTls) -> Result<Self, String> {
        let certificate = tls.client_certificate().map(|(chain, key)| (chain.clone(), key.clone()));
        let new = Self { certificate, ca: tls.trusted_ca().cloned(), sni: tls.sni.clone() };
        new.connector().map_err(|error| format!("TLS to the control plane `{name}`: {error}"))?;
        Ok(new)
    }

    pub(crate) fn over(&self, plain: Arc<dyn Connect>, host: String) -> OverTls {
        OverTls { tls: self.clone(), plain, host }
    }

    fn connector(&self) -> io::Result<SslConnector> {
        let mut builder = SslConnector::builder(SslMethod::tls()).map_err(opaque)?;
        builder.set_alpn_protos(b"\x02h2").map_err(opaque)?;
        if let Some(ca) = &self.ca {
            let mut store = X509StoreBuilder::new().map_err(opaque)?;
            for certificate in X509::stack_from_pem(&ca.read()?).map_err(opaque)? {
                store.add_cert(certificate).map_err(opaque)?;
            }
            builder.set_cert_store_builder(store);
        }
        if let Some((chain, key)) = &self.certificate {
            let mut chain = X509::stack_from_pem(&chain.read()?).map_err(opaque)?.into_iter();
            let own = chain.next().ok_or_else(|| io::Error::other("the client certificate is empty"))?;
            builder.set_certificate(&own).map_err(opaque)?;
            for certificate in chain {
                builder.add_extra_chain_cert(certificate).map_err(opaque)?;
            }
            let key = PKey::private_key_from_pem(&key.read()?).map_err(opaque)?;
            builder.set_private_key(&key).map_err(opaque)?;
            builder.check_private_key().map_err(opaque)?;
        }
        Ok(builder.build())
    }
}

impl Connect for OverTls {
    fn connect(&self) -> Connecting {
        let connector = self.tls.connector();
        let plain = self.plain.connect();
        let name = self.tls.sni.clone().unwrap_or_else(|| self.host.clone());
        Box::pin(async move {
            let configuration = connector?.configure().map_err(opaque)?;
            let stream = tokio_boring::connect(configuration, &name, plain.await?).await;
            let stream = stream.map_err(|error| io::Error::other(format!("TLS as `{name}`: {error}")))?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}

/// Its text names what went wrong; key material is never in it.
fn opaque(error: ErrorStack) -> io::Error {
    io::Error::other(error.to_string())
}
