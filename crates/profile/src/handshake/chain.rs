//! A certificate chain and its verification by a client: root, intermediate, leaf, all with keys of one type.

use super::{error::Error, kind::Suite};
use boring::{
    error::ErrorStack,
    pkey::{PKey, Private},
    rsa::Rsa,
    ssl::{SslAlert, SslContextBuilder, SslRef, SslVerifyError, SslVerifyMode},
    x509::{
        X509, X509StoreContext,
        store::{X509Store, X509StoreBuilder, X509StoreRef},
    },
};
use quadrille_handshake_timing::verification;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

const NAME: &str = "localhost";

pub(super) struct Chain {
    /// The root certificate, trusted by the client.
    pub(super) root: X509,
    pub(super) intermediate: X509,
    pub(super) leaf: X509,
    /// The leaf's private key.
    pub(super) key: PKey<Private>,
}

impl Chain {
    pub(super) fn new(suite: Suite) -> Result<Self, Error> {
        let (root_key, intermediate_key, key) = (pair(suite)?, pair(suite)?, pair(suite)?);
        let (root, intermediate) = (authority("Root"), authority("Intermediate"));
        let leaf = CertificateParams::new(vec![NAME.to_owned()])?;
        let root_certificate = root.self_signed(&root_key)?;
        let by_root = Issuer::new(root, root_key);
        let intermediate_certificate = intermediate.signed_by(&intermediate_key, &by_root)?;
        let leaf = leaf.signed_by(&key, &Issuer::new(intermediate, intermediate_key))?;
        Ok(Self {
            root: X509::from_der(root_certificate.der())?,
            intermediate: X509::from_der(intermediate_certificate.der())?,
            leaf: X509::from_der(leaf.der())?,
            key: PKey::private_key_from_pem(key.serialize_pem().as_bytes())?,
        })
    }
}

/// Configures a client to verify chains that end at `root`, as BoringSSL does by default, with marks around the
/// verification.
pub(super) fn verify(context: &mut SslContextBuilder, root: X509) -> Result<(), ErrorStack> {
    let mut trusted = X509StoreBuilder::new()?;
    trusted.add_cert(root)?;
    let trusted: X509Store = trusted.build();
    context.set_custom_verify_callback(SslVerifyMode::PEER, move |ssl| {
        match verification(|| is_trusted(ssl, &trusted)) {
            Ok(true) => Ok(()),
            _ => Err(SslVerifyError::Invalid(SslAlert::BAD_CERTIFICATE)),
        }
    });
    Ok(())
}

fn is_trusted(ssl: &SslRef, trusted: &X509StoreRef) -> Result<bool, ErrorStack> {
    let (Some(leaf), Some(chain)) = (ssl.peer_certificate(), ssl.peer_cert_chain()) else { return Ok(false) };
    X509StoreContext::new()?.init(trusted, &leaf, chain, |context| {
        context.verify_param_mut().set_host(NAME)?;
        context.verify_cert()
    })
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn pair(suite: Suite) -> Result<KeyPair, Error> {
    Ok(match suite {
        Suite::EcdheEcdsa => KeyPair::generate()?,
        Suite::EcdheRsa | Suite::Rsa => {
            let pem = PKey::from_rsa(Rsa::generate(2048)?)?.private_key_to_pem_pkcs8()?;
            KeyPair::from_pem(&String::from_utf8_lossy(&pem))?
        }
    })
}
