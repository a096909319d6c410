//! Certificates with their keys, loaded and checked before use.

use super::{
    compression::CompressedMessages,
    ml_dsa_sets::MlDsaSets,
    trust_anchor::{self, ChainAnchor},
};
use crate::tls::{key::remote_key::Remote, pem};
use boring::{
    asn1::Asn1Time,
    nid::Nid,
    x509::{X509, X509Ref},
};
use quadrille_config::{
    Diagnostic, Problem,
    model::{CertificateSource, KeySource, Keyless, Place, Source},
};
use quadrille_engine::{Engine, Key, KeyType, PublicKey};
use quadrille_keyless::client::Client;
use std::sync::Arc;

/// A certificate with its private key.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    /// Certificate chain, leaf first.
    pub(crate) chain: Vec<X509>,
    /// Parameter sets of ML-DSA in the chain's signatures.
    pub(crate) in_chain: MlDsaSets,
    /// The trust anchor of the chain, if it is configured.
    pub(crate) trust_anchor: Option<ChainAnchor>,
    /// The leaf's private key.
    pub(crate) key: PrivateKey,
    /// The OCSP response to staple, in DER.
    pub(crate) ocsp: Option<Vec<u8>>,
    /// Compressed Certificate messages (RFC 8879).
    pub(crate) compressed: Arc<CompressedMessages>,
    /// Whether clients reject it without an OCSP response (RFC 7633).
    pub(crate) must_be_stapled: bool,
    /// Whether it names an OCSP responder.
    pub(crate) has_responder: bool,
    /// Start of the validity period, in Unix time.
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
    /// DNS names of the certificate in lower case, including wildcards.
    pub(crate) names: Vec<String>,
    /// Warnings for the operator that do not prevent the certificate from being served.
    pub(crate) warnings: Vec<String>,
}

/// A private key in this process, in a PKCS#11 token, or on key servers.
#[derive(Clone, Debug)]
pub(crate) enum PrivateKey {
    Local(Key),
    Remote(Box<Remote>),
}

impl PrivateKey {
    /// Returns algorithm and size of the key.
    pub(crate) fn key_type(&self) -> KeyType {
        match self {
            Self::Local(key) => key.key_type(),
            Self::Remote(remote) => remote.key.key_type(),
        }
    }

    /// Returns whether this process's engine performs operations, unless it is overloaded.
    pub(crate) fn is_here(&self) -> bool {
        match self {
            Self::Local(key) => !key.is_external(),
            Self::Remote(remote) => remote.overflow.is_some(),
        }
    }

    /// Precomputes the engine's data for a local key.
    pub(crate) fn prepare(&self, engine: &Engine) {
        match self {
            Self::Local(key) => engine.prepare(key),
            Self::Remote(remote) => remote.fallback.iter().for_each(|key| engine.prepare(key)),
        }
    }
}

/// Minimum size of an RSA modulus, unless weak keys are allowed.
const STRONG_RSA_BITS: u32 = 2048;

impl Certificate {
    /// Loads and checks a certificate. `client` provides the connections to key servers.
    ///
    /// # Errors
    /// Returns an error for any defect that would make handshakes fail, and for weak RSA keys unless they are
    /// allowed.
    pub(crate) fn load(
        source: &CertificateSource,
        allow_weak_keys: bool,
        client: &mut dyn FnMut(&Keyless, &Place) -> Result<Client, Diagnostic>,
    ) -> Result<Self, Diagnostic> {
        let (chain, pem) = pem::read_chain_and_text(&source.chain, &source.chain_place)?;
        let leaf = &chain[0];
        let trust_anchor = anchor_of(source, &pem)?;
        let (key, key_warnings) = private_key(leaf, source, client)?;
        check_strength(&key, source, allow_weak_keys)?;
        check_usage(leaf, &key, source)?;
        let ocsp = match (&source.ocsp, &source.ocsp_place) {
            (Some(ocsp), place) => Some(read_ocsp(ocsp, place.as_ref().unwrap_or(&source.chain_place))?),
            (None, _) => None,
        };
        let mut warnings = warnings(&chain, &key, source, ocsp.as_deref());
        warnings.extend(key_warnings);
        if trust_anchor.is_none() && trust_anchor::has_properties(&pem) {
            warnings.push(format!(
                "the certificate properties in {} are ignored, and the chain is for all clients; to use them, set \
                 `experimental: {{ trust_anchor: properties }}`",
                source.chain
            ));
        }
        Ok(Self {
            in_chain: MlDsaSets::of_chain(&chain),
            names: dns_names(leaf),
            must_be_stapled: quadrille_ocsp::must_be_stapled(leaf),
            has_responder: leaf.ocsp_responders().is_ok_and(|responders| !responders.is_empty()),
            not_before: pem::unix_time(leaf.not_before()),
            not_after: pem::unix_time(leaf.not_after()),
            warnings,
            chain,
            trust_anchor,
            key,
            ocsp,
            compressed: Arc::default(),
        })
    }
}

impl Certificate {
    /// Returns the trust anchor that clients must request to receive the chain, if there is one.
    pub(crate) fn negotiated_anchor(&self) -> Option<&ChainAnchor> {
        self.trust_anchor.as_ref().filter(|anchor| anchor.is_negotiated())
    }

    /// Loads the certificate of a TLS client. The endpoints decide whether its key is strong enough.
    ///
    /// # Errors
    /// Errors of [`load`](Self::load), and one for a key with which BoringSSL cannot sign.
    pub(crate) fn load_for_client(source: &CertificateSource) -> Result<Self, Diagnostic> {
        let loaded = Self::load(source, true, &mut |_, place| {
            Err(Diagnostic::new(place, "the key of a client certificate must be on this machine"))
        })?;
        if let PrivateKey::Local(key) = &loaded.key {
            let unusable = |error| Diagnostic::new(&source.key_place, format!("{}: {error}", source.key));
            key.for_connections().map_err(unusable)?;
        }
        Ok(loaded)
    }
}

/// Returns the trust anchor of the chain in this text.
fn anchor_of(source: &CertificateSource, pem: &[u8]) -> Result<Option<ChainAnchor>, Diagnostic> {
    ChainAnchor::new(source.trust_anchor.as_ref(), pem).map_err(|reason| {
        let remedy = "use the file of a CA that writes certificate properties, or write the identifier as \
                      `trust_anchor: 32473.1`";
        Diagnostic::new(&source.chain_place, Problem::new(format!("{}: {reason}", source.chain), remedy))
    })
}

/// Loads the certificate's private key, with warnings for the operator. For a key on key servers, only the public half can
/// be checked.
fn private_key(
    leaf: &X509Ref,
    source: &CertificateSource,
    client: &mut dyn FnMut(&Keyless, &Place) -> Result<Client, Diagnostic>,
) -> Result<(PrivateKey, Vec<String>), Diagnostic> {
    let public = || {
        let unusable = |reason: String| Diagnostic::new(&source.chain_place, reason);
        let public = leaf.public_key().map_err(|error| unusable(error.to_string()))?;
        PublicKey::from_pkey(public).map_err(|error| unusable(error.to_string()))
    };
    match &source.key {
        KeySource::Pem(file) => {
            let key = pem::read_key(file, &source.key_place)?;
            check_match(leaf, &key, source)?;
            Ok((PrivateKey::Local(key.with_poll_delay(source.poll_delay)), Vec::new()))
        }
        KeySource::Keyless(keyless) => {
            let client = client(keyless, &source.key_place)?;
            let remote = Remote::new(keyless, public()?, client, &source.key_place)?;
            if let Some(key) = &remote.fallback {
                check_match(leaf, key, source)?;
            }
            Ok((PrivateKey::Remote(Box::new(remote)), Vec::new()))
        }
        KeySource::Pkcs11(key) => {
            let loaded = quadrille_pkcs11::load(key, Some(public()?));
            let unusable = |error| Diagnostic::new(&source.key_place, format!("{key}: {error}"));
            let loaded = loaded.map_err(unusable)?;
            Ok((PrivateKey::Local(loaded.key), loaded.warnings))
        }
    }
}

fn check_match(leaf: &X509Ref, key: &Key, source: &CertificateSource) -> Result<(), Diagnostic> {
    let matches = leaf.public_key().is_ok_and(|public| key.pkey().public_eq(&public));
    if matches {
        return Ok(());
    }
    Err(Diagnostic::new(
        &source.key_place,
        format!(
            "the private key {} does not match the certificate {}: the first certificate in the chain must belong \
             to the key",
            source.key, source.chain
        ),
    ))
}

fn check_strength(
    key: &PrivateKey,
    source: &CertificateSource,
    allow_weak_keys: bool,
) -> Result<(), Diagnostic> {
    match key.key_type() {
        KeyType::Rsa { bits } if bits < STRONG_RSA_BITS && !allow_weak_keys => Err(Diagnostic::new(
            &source.key_place,
            Problem::new(
                format!("{} is a weak RSA key of {bits} bits", source.key),
                format!("use one of {STRONG_RSA_BITS} bits or more, or set allow_weak_keys"),
            ),
        )),
        _ => Ok(()),
    }
}

/// Rejects a certificate whose key must not sign: BoringSSL does not serve it, except for RSA.
fn check_usage(leaf: &X509Ref, key: &PrivateKey, source: &CertificateSource) -> Result<(), Diagnostic> {
    if quadrille_pem::may_sign(leaf) || matches!(key.key_type(), KeyType::Rsa { .. }) {
        return Ok(());
    }
    let message = format!("the key usage of the certificate {} does not allow signatures", source.chain);
    Err(Diagnostic::new(&source.chain_place, Problem::new(message, USAGE_REMEDY)))
}

const USAGE_REMEDY: &str = "issue it with keyUsage=digitalSignature";

fn read_ocsp(source: &Source, place: &Place) -> Result<Vec<u8>, Diagnostic> {
    const DER_SEQUENCE: u8 = 0x30;
    let der = pem::read(source, place)?;
    if der.first() != Some(&DER_SEQUENCE) {
        return Err(Diagnostic::new(
            place,
            Problem::new(
                format!("{source} is not an OCSP response in DER"),
                "create one with: openssl ocsp ... -respout FILE",
            ),
        ));
    }
    Ok(der.to_vec())
}

/// Returns the names of the subjectAltName extension; without it, the common name (RFC 6125 section 6.4.4).
fn dns_names(leaf: &X509Ref) -> Vec<String> {
    let alternatives: Vec<String> = leaf
        .subject_alt_names()
        .map(|names| names.iter().filter_map(|name| Some(name.dnsname()?.to_ascii_lowercase())).collect())
        .unwrap_or_default();
    if !alternatives.is_empty() {
        return alternatives;
    }
    let common = leaf.subject_name().entries_by_nid(Nid::COMMONNAME).next();
    common.and_then(|entry| Some(entry.data().as_utf8().ok()?.to_ascii_lowercase())).into_iter().collect()
}

fn warnings(
    chain: &[X509],
    key: &PrivateKey,
    source: &CertificateSource,
    ocsp: Option<&[u8]>,
) -> Vec<String> {
    let leaf = &chain[0];
    let mut warnings = validity_warnings(leaf, &source.chain);
    if let (Some(source), Some(Err(failure))) = (&source.ocsp, ocsp.map(quadrille_ocsp::expiry)) {
        warnings
            .push(format!("the OCSP response in {source} is stapled, but clients may reject it: {failure}"));
    }
    warnings.extend(chain_warning(chain, &source.chain));
    if !quadrille_pem::may_sign(leaf) {
        warnings.push(format!(
            "the key usage of the certificate {} does not allow signatures, and many clients will reject it; {USAGE_REMEDY}",
            source.chain
        ));
    }
    if let PrivateKey::Local(key) = key
        && has_unequal_primes(key)
    {
        warnings.push(format!(
            "the primes of the RSA key {} have different sizes, so that its operations take several times as long and \
             are not batched; generate a new key: openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048",
            source.key
        ));
    }
    warnings
}

/// Returns a warning about an intermediate certificate that is missing, or not in its place.
fn chain_warning(chain: &[X509], source: &Source) -> Option<String> {
    let issuer = |of: &X509Ref| quadrille_pem::common_name(of.issuer_name());
    let is_issued = |pair: &[X509]| pair[1].issued(&pair[0]).is_ok();
    if let Some(at) = chain.windows(2).position(|pair| !is_issued(pair)) {
        return Some(format!(
            "the chain {source} is not in order, so that clients may reject it: certificate {} was not issued by the \
             next one; order them from the server's certificate to its CA, and add the certificate of `{}`",
            at + 1,
            issuer(&chain[at]).escape_debug()
        ));
    }
    let [leaf] = chain else { return None };
    let is_incomplete = quadrille_pem::has_issuer_url(leaf) && leaf.issued(leaf).is_err();
    is_incomplete.then(|| {
        format!(
            "the chain {source} has no intermediate certificate, and clients that do not have it will reject it; append \
             the certificate of `{}`",
            issuer(leaf).escape_debug()
        )
    })
}

fn has_unequal_primes(key: &Key) -> bool {
    key.pkey().rsa().is_ok_and(|rsa| rsa.p().zip(rsa.q()).is_some_and(|(p, q)| p.num_bits() != q.num_bits()))
}

fn validity_warnings(leaf: &X509Ref, source: &Source) -> Vec<String> {
    let Ok(now) = Asn1Time::days_from_now(0) else { return Vec::new() };
    let mut warnings = Vec::new();
    if leaf.not_after() < now {
        warnings.push(format!(
            "the certificate {source} has expired ({}); clients will reject it",
            leaf.not_after()
        ));
    }
    if leaf.not_before() > now {
        warnings.push(format!("the certificate {source} is not valid before {}", leaf.not_before()));
    }
    warnings
}
