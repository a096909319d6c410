//! Files of keys in PKCS#11 tokens: a `pkcs11:` URI, with the certificate in PEM if the token does not have the public
//! key. Empty lines, and lines that begin with `#`, are ignored.

use quadrille_config::pkcs11_uri;
use quadrille_engine::PublicKey;
use quadrille_pkcs11::Loaded;

/// Returns whether a file names a key in a token.
pub(super) fn is_one(contents: &[u8]) -> bool {
    uri(contents).is_some()
}

/// Loads the key that a file names.
pub(super) fn load(contents: &[u8]) -> Result<Loaded, String> {
    let uri = uri(contents).ok_or("no pkcs11: URI found")?;
    let key = pkcs11_uri::parse(uri).map_err(|problem| problem.to_string())?;
    let certificates = quadrille_pem::certificates(contents).map_err(|damage| damage.to_string())?;
    let public = certificates.first().map(|leaf| {
        let public = leaf.public_key().map_err(|error| error.to_string())?;
        PublicKey::from_pkey(public).map_err(|error| error.to_string())
    });
    quadrille_pkcs11::load(&key, public.transpose()?).map_err(|error| error.to_string())
}

/// Returns the first line with contents, if it is a URI.
fn uri(contents: &[u8]) -> Option<&str> {
    let lines = contents.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.into_iter().find(|line| !line.is_empty() && !line.starts_with(b"#"))?;
    std::str::from_utf8(first).ok().filter(|line| pkcs11_uri::is_uri(line))
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn the_first_line_with_contents() {
        assert_eq!(uri(b"# the shop\n\n  pkcs11:token=a\r\n-----BEGIN"), Some("pkcs11:token=a"));
        assert_eq!(uri(b"-----BEGIN CERTIFICATE-----\npkcs11:token=a"), None);
        assert_eq!(uri(b"\xff\npkcs11:token=a"), None);
    }
}
