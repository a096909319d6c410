//! Connection flags of `ping` and `sign`.

use boring::x509::X509;
use quadrille_config::enums;
use quadrille_engine::{Key, KeyType, PublicKey, SignatureScheme};
use quadrille_keyless::{
    Address, Credentials, Trust,
    client::{Protocol, RemoteKey, Settings},
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Connection to a key server.
#[derive(clap::Args)]
pub(super) struct Remote {
    /// The key server: host:port (2407 if left out), or unix:/path. May be repeated.
    #[arg(long, value_name = "ADDRESS", required = true)]
    server: Vec<Address>,
    /// CA certificates in PEM that verify the server's certificate.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// The client certificate in PEM, such as a gateway's.
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// The private key for --cert.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Mode of the protocol: auto, batched or compatible.
    #[arg(long, value_name = "MODE", value_parser = enums::word::<Protocol>, default_value = "auto")]
    protocol: Protocol,
}

impl Remote {
    pub(super) fn servers(&self) -> &[Address] {
        &self.server
    }

    pub(super) fn settings(&self) -> Result<Settings, Vec<String>> {
        let tls = match (&self.ca, &self.cert, &self.key) {
            (Some(ca), Some(cert), Some(key)) => {
                let key = Key::from_pem(&read(key)?).map_err(|error| vec![format!("--key: {error}")])?;
                let key = key.for_connections().map_err(|error| vec![format!("--key: {error}")])?;
                let credentials = Credentials { chain: certificates(cert)?, key: key.to_owned() };
                Some((credentials, Trust(certificates(ca)?)))
            }
            _ if self.server.iter().any(|server| matches!(server, Address::Tcp { .. })) => {
                return Err(vec!["a key server over TCP needs --ca, --cert and --key".to_owned()]);
            }
            _ => None,
        };
        Ok(Settings { protocol: self.protocol, ..Settings::new(self.server.clone(), tls) })
    }
}

/// Returns the remote private key that belongs to a certificate.
pub(super) fn key_of(certificate: &Path) -> Result<RemoteKey, Vec<String>> {
    let unusable = |error: String| vec![format!("{}: {error}", certificate.display())];
    let chain = certificates(certificate)?;
    let public = chain[0].public_key().map_err(|error| unusable(error.to_string()))?;
    let public = PublicKey::from_pkey(public).map_err(|error| unusable(error.to_string()))?;
    RemoteKey::new(public).map_err(|error| unusable(error.to_string()))
}

/// Returns the signature scheme that TLS 1.3 uses with a key of this type.
pub(super) fn usual_scheme(key_type: KeyType) -> SignatureScheme {
    match key_type {
        KeyType::Rsa { .. } => SignatureScheme::RsaPssSha256,
        KeyType::EcdsaP256 => SignatureScheme::EcdsaSha256,
        KeyType::EcdsaP384 => SignatureScheme::EcdsaSha384,
        KeyType::EcdsaP521 => SignatureScheme::EcdsaSha512,
        KeyType::Ed25519 => SignatureScheme::Ed25519,
        KeyType::MlDsa(set) => SignatureScheme::MlDsa(set),
    }
}

/// Runs a future to completion on this thread.
pub(super) fn block_on<T>(task: impl Future<Output = Result<T, Vec<String>>>) -> Result<T, Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| vec![format!("cannot start: {error}")])?.block_on(task)
}

pub(super) fn read(file: &Path) -> Result<Vec<u8>, Vec<String>> {
    fs::read(file).map_err(|error| vec![format!("cannot read {}: {error}", file.display())])
}

fn certificates(file: &Path) -> Result<Vec<X509>, Vec<String>> {
    match quadrille_pem::certificates(&read(file)?) {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Err(damage) => Err(vec![format!("{}: {damage}", file.display())]),
        Ok(_) => Err(vec![format!("{} holds no certificate in PEM", file.display())]),
    }
}
