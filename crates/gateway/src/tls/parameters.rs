//! BoringSSL's names of versions and groups.

use boring::ssl::SslVersion;
use quadrille_config::model::{Group, Version};

/// Returns the list of groups, most preferred first.
pub(crate) fn group_list(groups: &[Group]) -> String {
    let name = |group: &Group| match group {
        Group::X25519MlKem768 => "X25519MLKEM768",
        Group::X25519 => "X25519",
        Group::P256 => "P-256",
        Group::P384 => "P-384",
        Group::P521 => "P-521",
    };
    groups.iter().map(name).collect::<Vec<_>>().join(":")
}

pub(crate) fn ssl_version(version: Version) -> SslVersion {
    match version {
        Version::Tls10 => SslVersion::TLS1,
        Version::Tls11 => SslVersion::TLS1_1,
        Version::Tls12 => SslVersion::TLS1_2,
        Version::Tls13 => SslVersion::TLS1_3,
    }
}
