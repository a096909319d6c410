//! Cipher suites of TLS 1.2 and below, as OpenSSL and IANA name them.

use crate::{
    model::Problem,
    text::{nearest, quote},
};

/// What BoringSSL has, most preferable first: OpenSSL's name and IANA's.
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

/// TLS 1.3's, which BoringSSL offers all or none of.
const OF_TLS13: [&str; 3] =
    ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];

/// OpenSSL's name of a suite that is called by either of its names.
///
/// # Errors
/// Says which suites there are.
pub(crate) fn cipher_suite(text: &str) -> Result<String, Problem> {
    let is = |name: &str| name.eq_ignore_ascii_case(text);
    if let Some((name, _)) = SUITES.iter().find(|(openssl, iana)| is(openssl) || is(iana)) {
        return Ok((*name).to_owned());
    }
    if OF_TLS13.iter().any(|name| is(name)) {
        return Err(Problem::new(
            format!("{} is one of TLS 1.3, whose three suites are always offered", quote(text)),
            "leave it out; here are those of TLS 1.2 and below",
        ));
    }
    if text.contains(':') {
        return Err(Problem::new(
            format!("{} is not one suite", quote(text)),
            "write a list, each suite an item of its own",
        ));
    }
    let names = SUITES.iter().flat_map(|(openssl, iana)| [*openssl, *iana]);
    let remedy = match nearest(text, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", SUITES.map(|(openssl, _)| openssl).join(", ")),
    };
    Err(Problem::new(format!("{} is no cipher suite that there is", quote(text)), remedy))
}

/// Whether versions below TLS 1.2 have it.
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
        assert!(said("HIGH").contains("there are ECDHE-ECDSA-AES128-GCM-SHA256, "));
        assert!(said("AES128-SHA:AES256-SHA").contains("write a list"));
    }
}
