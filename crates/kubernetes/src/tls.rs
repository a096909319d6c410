//! Certificates and keys of Secrets, and versions of TLS.

use crate::{object::Secret, options::Options, secret_reference::Reference};
use base64ct::{Base64, Encoding};
use quadrille_draft::yaml::Map;
use zeroize::Zeroizing;

/// Content of PEM text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pem {
    Certificates,
    PrivateKey,
}

impl Pem {
    /// Returns the text if each of its blocks can be decoded, and one has this content.
    ///
    /// # Errors
    /// With the reason, which never contains the text.
    pub(crate) fn checked(self, text: &str) -> Result<String, String> {
        let (name, ending) = match self {
            Self::Certificates => ("a certificate", "CERTIFICATE"),
            Self::PrivateKey => ("a private key", "PRIVATE KEY"),
        };
        let mut found = false;
        let mut rest = text;
        while let Some((_, after)) = rest.split_once("-----BEGIN ") {
            let (label, body) = after.split_once("-----").ok_or("a PEM block does not begin correctly")?;
            let end = format!("-----END {label}-----");
            let (body, after) = body.split_once(&end).ok_or("a PEM block does not end")?;
            let lines = body.lines().filter(|line| !line.contains(':'));
            let encoded = zeroize::Zeroizing::new(lines.flat_map(str::split_whitespace).collect::<String>());
            let decoded = Base64::decode_vec(&encoded).map(zeroize::Zeroizing::new);
            if decoded.map_or(true, |bytes| bytes.is_empty()) {
                return Err("a PEM block is not base64".to_owned());
            }
            found |= label.ends_with(ending);
            rest = after;
        }
        match found {
            true => Ok(format!("{}\n", text.trim())),
            false => Err(format!("it does not contain {name} in PEM")),
        }
    }
}

/// Returns an item of `certificates` with the chain and the key of a Secret of type `kubernetes.io/tls`.
///
/// # Errors
/// If one of them is missing or not PEM, or they do not belong together.
pub(crate) fn certificate_of(secret: &Secret, options: &Options) -> Result<Map, String> {
    let part = |key: &str, kind: Pem| {
        let text = secret.text(key)?;
        kind.checked(text).map_err(|problem| format!("`{key}`: {problem}"))
    };
    if options.by_reference {
        secret.usable(|| {
            let chain = part("tls.crt", Pem::Certificates)?;
            let key = Zeroizing::new(part("tls.key", Pem::PrivateKey)?);
            (options.check_certificate)(&chain, &key)
        })?;
        let reference = |key| Reference { namespace: &secret.meta.namespace, name: &secret.meta.name, key };
        return Ok(
            Map::of("chain", reference("tls.crt").to_string()).with("key", reference("tls.key").to_string())
        );
    }
    let (chain, key) = (part("tls.crt", Pem::Certificates)?, part("tls.key", Pem::PrivateKey)?);
    (options.check_certificate)(&chain, &key)?;
    Ok(Map::of("chain", chain).with("key", key))
}

/// Returns `min` and `max` for a list such as `TLSv1.2 TLSv1.3`.
pub(crate) fn versions(text: &str) -> Option<Map> {
    const ALL: [(&str, &str); 4] =
        [("TLSv1", "1.0"), ("TLSv1.1", "1.1"), ("TLSv1.2", "1.2"), ("TLSv1.3", "1.3")];
    let words: Vec<_> = text.split_whitespace().filter(|word| !word.starts_with("SSL")).collect();
    let known: Vec<_> =
        ALL.iter().filter(|(name, _)| words.contains(name)).map(|(_, version)| *version).collect();
    if known.len() != words.len() {
        return None;
    }
    Some(Map::of("min", *known.first()?).with("max", *known.last()?))
}
