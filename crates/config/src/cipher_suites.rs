//! Cipher suites of TLS 1.2 and below, by their OpenSSL and IANA names.

use crate::{
    model::Problem,
    suggest::{nearest, quote},
};

/// Cipher suites of BoringSSL, most preferred first: OpenSSL's name and IANA's.
const SUITES: [(&str, &str); 17] = [
    ("ECDHE-ECDSA-AES128-GCM-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    ("ECDHE-RSA-AES128-GCM-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    ("ECDHE-RSA-AES256-GCM-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
    ("ECDHE-RSA-CHACHA20-POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
    ("ECDHE-ECDSA-AES128-SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256"),
    ("ECDHE-RSA-AES128-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256"),
    ("ECDHE-ECDSA-AES128-SHA", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"),
    ("ECDHE-RSA-AES128-SHA", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"),
    ("ECDHE-ECDSA-AES256-SHA", "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"),
    ("ECDHE-RSA-AES256-SHA", "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"),
    ("AES128-GCM-SHA256", "TLS_RSA_WITH_AES_128_GCM_SHA256"),
    ("AES256-GCM-SHA384", "TLS_RSA_WITH_AES_256_GCM_SHA384"),
    ("AES128-SHA", "TLS_RSA_WITH_AES_128_CBC_SHA"),
    ("AES256-SHA", "TLS_RSA_WITH_AES_256_CBC_SHA"),
    ("DES-CBC3-SHA", "TLS_RSA_WITH_3DES_EDE_CBC_SHA"),
];

/// Cipher suites of TLS 1.3; BoringSSL offers all of them or none.
const OF_TLS13: [&str; 3] =
    ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

/// Returns OpenSSL's name of a suite, given either of its names.
///
/// # Errors
/// For an unknown suite; the message lists the known ones.
pub(crate) fn cipher_suite(text: &str) -> Result<String, Problem> {
    let is = |name: &str| name.eq_ignore_ascii_case(text);
    if let Some((name, _)) = SUITES.iter().find(|(openssl, iana)| is(openssl) || is(iana)) {
        return Ok((*name).to_owned());
    }
    if OF_TLS13.iter().any(|name| is(name)) {
        return Err(Problem::new(
            format!("{} belongs to TLS 1.3, whose three suites are always offered", quote(text)),
            "remove it, and list suites of TLS 1.2 and below",
        ));
    }
    if text.contains(':') {
        return Err(Problem::new(
            format!("{} is not one suite", quote(text)),
            "write a list with one suite for each item",
        ));
    }
    let names = SUITES.iter().flat_map(|(openssl, iana)| [*openssl, *iana]);
    let remedy = match nearest(text, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", SUITES.map(|(openssl, _)| openssl).join(", ")),
    };
    Err(Problem::new(format!("{} is not a known cipher suite", quote(text)), remedy))
}

/// Returns whether versions below TLS 1.2 support the suite.
pub(crate) fn is_of_tls10(name: &str) -> bool {
    name.ends_with("-SHA")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_two_names() {
        for (openssl, iana) in SUITES {
            for name in [openssl, iana, &iana.to_lowercase()] {
                assert_eq!(cipher_suite(name).as_deref(), Ok(openssl));
            }
        }
        let said = |text| cipher_suite(text).expect_err("no suite").to_string();
        assert!(said("TLS_AES_128_GCM_SHA256").contains("always offered"));
        assert!(said("ECDHE-RSA-AES128-GCM-SHA255").contains("did you mean `ECDHE-RSA-AES128-GCM-SHA256`?"));
        assert!(said("HIGH").contains("known are ECDHE-ECDSA-AES128-GCM-SHA256, "));
        assert!(said("AES128-SHA:AES256-SHA").contains("write a list"));
    }
}
