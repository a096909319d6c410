//! Versions, cipher suites, curves.

use crate::{
    reader::{Field, ReadMessage},
    schema,
    values::enumeration,
};
use quadrille_config::{
    enums::word,
    model::{Group, TlsPolicy, Version},
};

/// Protocol versions; `TLS_AUTO` sets none.
const VERSIONS: &[(&str, u32, Option<Version>)] = &[
    ("TLS_AUTO", 0, None),
    ("TLSv1_0", 1, Some(Version::Tls10)),
    ("TLSv1_1", 2, Some(Version::Tls11)),
    ("TLSv1_2", 3, Some(Version::Tls12)),
    ("TLSv1_3", 4, Some(Version::Tls13)),
];

/// Reads `envoy.extensions.transport_sockets.tls.v3.TlsParameters`, overriding the defaults.
pub(crate) fn parameters(field: &Field<'_>, policy: &mut TlsPolicy) -> Option<()> {
    let message = field.message(&schema::TLS_PARAMETERS)?;
    if let Some(Some(version)) = message.read("tls_minimum_protocol_version", enumeration(VERSIONS)) {
        policy.min = version;
    }
    if let Some(Some(version)) = message.read("tls_maximum_protocol_version", enumeration(VERSIONS)) {
        policy.max = version;
    }
    if policy.min > policy.max {
        return field.fail("the lowest version is above the highest");
    }
    policy.ciphers = message.list("cipher_suites").iter().filter_map(Field::text).flat_map(suites).collect();
    let curves = message.list("ecdh_curves");
    if !curves.is_empty() {
        policy.groups = curves.iter().filter_map(|curve| curve.parse(word::<Group>)).collect();
    }
    Some(())
}

/// Splits an entry, which may contain several suites in OpenSSL's notation: `A:B`.
fn suites(text: &str) -> impl Iterator<Item = String> {
    text.split(':').filter(|suite| !suite.is_empty()).map(str::to_owned)
}
