//! Contents of the client's ClientHello.

use super::{LoadError, sessions::Sessions};
use boring::ssl::{
    SslContext, SslContextBuilder, SslMethod, SslSessionCacheMode, SslSignatureAlgorithm, SslVerifyMode,
    SslVersion,
};
use quadrille_signature_algorithms::{CLIENT_GROUPS, verify_all};
use std::{fmt, ops::RangeInclusive, str::FromStr};

/// Protocol versions of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    V1_2,
    /// TLS 1.3 (RFC 8446).
    V1_3,
}

/// Type of certificate that the client can verify, by the signature schemes that it offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyChoice {
    /// RSA, PKCS#1 v1.5 and PSS.
    Rsa,
    /// ECDSA on the NIST curves.
    Ecdsa,
    /// ML-DSA-44, in TLS 1.3.
    MlDsa44,
    /// ML-DSA-65, in TLS 1.3.
    MlDsa65,
    /// ML-DSA-87, in TLS 1.3.
    MlDsa87,
}

/// Parameters that the client offers.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Protocol versions, from the lowest to the highest.
    pub versions: RangeInclusive<TlsVersion>,
    /// Key exchange groups, colon-separated, by BoringSSL's names; the first gets the key share.
    pub groups: Option<String>,
    /// Cipher suites of TLS 1.2, by OpenSSL's names; those of TLS 1.3 cannot be chosen in BoringSSL.
    pub ciphers: Option<String>,
    /// Type of certificate; any if `None`.
    pub key: Option<KeyChoice>,
}

impl TlsVersion {
    /// Returns `1.2` or `1.3`.
    pub fn number(self) -> &'static str {
        match self {
            Self::V1_2 => "1.2",
            Self::V1_3 => "1.3",
        }
    }

    pub(super) fn boring(self) -> SslVersion {
        match self {
            Self::V1_2 => SslVersion::TLS1_2,
            Self::V1_3 => SslVersion::TLS1_3,
        }
    }
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.number())
    }
}

impl FromStr for TlsVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "1.2" => Ok(Self::V1_2),
            "1.3" => Ok(Self::V1_3),
            other => Err(format!("unsupported version `{other}`; use 1.2 or 1.3")),
        }
    }
}

impl Default for Offer {
    fn default() -> Self {
        Self { versions: TlsVersion::V1_2..=TlsVersion::V1_3, groups: None, ciphers: None, key: None }
    }
}

impl Offer {
    /// Creates an offer of one version and one list of groups.
    pub fn new(version: TlsVersion, groups: &str) -> Self {
        Self { versions: version..=version, groups: Some(groups.to_owned()), ..Self::default() }
    }

    /// Creates a TLS context with this offer that keeps sessions in `sessions` and does not verify chains.
    pub(super) fn context(&self, sessions: &Sessions) -> Result<SslContext, LoadError> {
        let mut context = self.builder()?;
        context.set_verify(SslVerifyMode::NONE);
        context.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
        let sessions = sessions.clone();
        context.set_new_session_callback(move |ssl, session| sessions.keep(ssl, session));
        Ok(context.build())
    }

    pub(super) fn builder(&self) -> Result<SslContextBuilder, LoadError> {
        let mut context = SslContext::builder(SslMethod::tls())?;
        context.set_min_proto_version(Some(self.versions.start().boring()))?;
        context.set_max_proto_version(Some(self.versions.end().boring()))?;
        context.set_alpn_protos(b"\x08http/1.1")?;
        let refused = |what, value: &str| LoadError::Offer { what, value: value.to_owned() };
        if let Some(groups) = &self.groups {
            let offered = self.offered_groups(groups);
            context.set_curves_list(&offered).map_err(|_| refused("groups", groups))?;
        } else {
            context.set_curves_list(CLIENT_GROUPS)?;
        }
        let by_key = self.key.map(|key| key.ciphers().to_owned());
        if let Some(ciphers) = self.ciphers.as_ref().or(by_key.as_ref()) {
            context.set_cipher_list(ciphers).map_err(|_| refused("ciphers", ciphers))?;
        }
        if let Some(key) = self.key {
            context.set_verify_algorithm_prefs(key.schemes())?;
        } else {
            verify_all(&mut context)?;
        }
        Ok(context)
    }

    /// Returns the groups to offer. In TLS 1.2 the list also restricts the curves in certificates (RFC 8422 section
    /// 5.1): a P-256 certificate needs its curve in it, at the end, where key exchange does not choose it.
    fn offered_groups(&self, groups: &str) -> String {
        let named = groups.split(':').any(|group| group == "P-256");
        if *self.versions.start() == TlsVersion::V1_2 && !named {
            format!("{groups}:P-256")
        } else {
            groups.to_owned()
        }
    }
}

impl KeyChoice {
    /// Returns the cipher suites for TLS 1.2, where a suite names the key type.
    fn ciphers(self) -> &'static str {
        match self {
            Self::Rsa => "ALL:!aECDSA:!PSK",
            Self::Ecdsa => "ALL:!aRSA:!kRSA:!PSK",
            Self::MlDsa44 | Self::MlDsa65 | Self::MlDsa87 => "ALL:!PSK",
        }
    }

    fn schemes(self) -> &'static [SslSignatureAlgorithm] {
        match self {
            Self::Rsa => &[
                SslSignatureAlgorithm::RSA_PSS_RSAE_SHA256,
                SslSignatureAlgorithm::RSA_PKCS1_SHA256,
                SslSignatureAlgorithm::RSA_PSS_RSAE_SHA384,
                SslSignatureAlgorithm::RSA_PKCS1_SHA384,
                SslSignatureAlgorithm::RSA_PSS_RSAE_SHA512,
                SslSignatureAlgorithm::RSA_PKCS1_SHA512,
            ],
            Self::Ecdsa => &[
                SslSignatureAlgorithm::ECDSA_SECP256R1_SHA256,
                SslSignatureAlgorithm::ECDSA_SECP384R1_SHA384,
                SslSignatureAlgorithm::ECDSA_SECP521R1_SHA512,
            ],
            Self::MlDsa44 => &[SslSignatureAlgorithm::ML_DSA_44],
            Self::MlDsa65 => &[SslSignatureAlgorithm::ML_DSA_65],
            Self::MlDsa87 => &[SslSignatureAlgorithm::ML_DSA_87],
        }
    }
}
