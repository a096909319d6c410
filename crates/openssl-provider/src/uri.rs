//! Keys named by a URI.
//!
//! ```text
//! quadrille:file:/etc/ssl/private/site.key                        a PEM file, computed in this process
//! quadrille:unix:/run/quadrille/keys.sock?key=/etc/ssl/site.pem   in a key server of this machine
//! quadrille:keyless:unix:/run/a.sock,unix:/run/b.sock?key=/etc/ssl/site.pem&fallback=/etc/ssl/private/site.key
//! ```
//!
//! `key` is a certificate or public key; the URI names the matching private key.

use crate::{
    components::Family,
    error::{Failure, Reason},
    key::{ProviderKey, check_kind},
    pem_keys,
    remote::RemoteKey,
};
use boring::pkey::{PKey, Private, Public};
use quadrille_engine::{Key, KeyType, PublicKey, Zeroizing};
use quadrille_keyless::Address;
use std::{
    fs::File,
    io::Read,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Common prefix of all URIs.
pub(crate) const SCHEME: &str = "quadrille:";

/// Maximum file size; longer files do not contain a key.
const LONGEST_FILE: u64 = 1024 * 1024;

/// Loads the key named by a URI in the server's own configuration.
pub(crate) fn resolve(uri: &str) -> Result<(Family, ProviderKey), Failure> {
    let key = NamedKey::read(uri)?.load()?;
    let family = Family::for_key_type(key.key_type())
        .ok_or_else(|| Failure::new(Reason::UnsupportedKey, format!("{uri}: it is neither RSA nor ECDSA")))?;
    Ok((family, key))
}

/// Loads the key named by a URI in a PEM file, if all its paths are listed. There is one error, so that it does not
/// reveal which files exist.
pub(crate) fn resolve_listed(uri: &str) -> Result<(Family, ProviderKey), Failure> {
    let listed = NamedKey::read(uri).is_ok_and(|named| named.paths().all(pem_keys::covers));
    let resolved = if listed { resolve(uri).ok() } else { None };
    resolved.ok_or_else(|| {
        let detail = "a QUADRILLE KEY block names a path that pem-keys in openssl.cnf does not list or \
                      that does not exist; `openssl pkey -in` with the URI in front of the block says more";
        Failure::new(Reason::BadUri, detail)
    })
}

/// A parsed URI.
enum NamedKey {
    File(PathBuf),
    Remote { sockets: Vec<PathBuf>, public: PathBuf, fallback: Option<PathBuf> },
}

impl NamedKey {
    fn read(uri: &str) -> Result<Self, Failure> {
        let Some(rest) = uri.strip_prefix(SCHEME) else {
            return Err(bad(uri, "it does not start with quadrille:"));
        };
        if let Some(path) = rest.strip_prefix("file:") {
            Self::file(uri, path)
        } else if let Some(rest) = rest.strip_prefix("keyless:") {
            Self::remote(uri, rest)
        } else if rest.starts_with("unix:") {
            Self::remote(uri, rest)
        } else if rest.starts_with('/') {
            Self::file(uri, rest)
        } else {
            Err(bad(uri, "after quadrille: write file:/path, or unix:/socket?key=/certificate"))
        }
    }

    fn file(uri: &str, path: &str) -> Result<Self, Failure> {
        plain(uri, path.strip_prefix("//").unwrap_or(path)).map(Self::File)
    }

    fn remote(uri: &str, rest: &str) -> Result<Self, Failure> {
        let (servers, query) = rest.split_once('?').unwrap_or((rest, ""));
        let sockets = servers.split(',').map(|server| socket(uri, server)).collect::<Result<Vec<_>, _>>()?;
        let (mut public, mut fallback) = (None, None);
        for setting in query.split('&').filter(|setting| !setting.is_empty()) {
            match setting.split_once('=') {
                Some(("key", path)) => public = Some(plain(uri, path)?),
                Some(("fallback", path)) => fallback = Some(plain(uri, path)?),
                _ => return Err(bad(uri, &format!("`{setting}` is neither key=FILE nor fallback=FILE"))),
            }
        }
        let public = public.ok_or_else(|| bad(uri, "add ?key=FILE with the certificate of the key"))?;
        Ok(Self::Remote { sockets, public, fallback })
    }

    /// Returns all paths that are opened for the URI.
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let (sockets, files) = match self {
            Self::File(path) => (&[][..], [Some(path), None]),
            Self::Remote { sockets, public, fallback } => (&sockets[..], [Some(public), fallback.as_ref()]),
        };
        sockets.iter().chain(files.into_iter().flatten()).map(PathBuf::as_path)
    }

    fn load(self) -> Result<ProviderKey, Failure> {
        match self {
            Self::File(path) => ProviderKey::local(private_key(&path)?),
            Self::Remote { sockets, public, fallback } => {
                let key = PublicKey::from_pkey(public_key(&public)?)?;
                supported(key.key_type(), &public)?;
                let fallback = fallback.map(|path| private_key(&path)).transpose()?;
                let remote = RemoteKey::new(&key, sockets)?;
                ProviderKey::remote(key, remote, fallback.as_deref())
            }
        }
    }
}

fn socket(uri: &str, server: &str) -> Result<PathBuf, Failure> {
    match server.parse::<Address>() {
        Ok(Address::Unix(path)) => plain(uri, &path.to_string_lossy()),
        Ok(Address::Tcp { .. }) => {
            Err(bad(uri, "only key servers on this machine are supported here: write unix:/path"))
        }
        Err(problem) => Err(bad(uri, &problem.to_string())),
    }
}

/// Parses an absolute path, decoding percent-encoding such as `%2c`.
fn plain(uri: &str, path: &str) -> Result<PathBuf, Failure> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [byte, after @ ..] = rest {
        let digits =
            after.get(..2).filter(|_| *byte == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let resolved = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(resolved.unwrap_or(*byte));
        rest = if resolved.is_some() { &after[2..] } else { after };
    }
    let path = PathBuf::from(String::from_utf8(bytes).map_err(|_| bad(uri, "a path is not UTF-8"))?);
    if path.is_absolute() { Ok(path) } else { Err(bad(uri, "paths must be absolute")) }
}

fn private_key(path: &Path) -> Result<PKey<Private>, Failure> {
    let key = Key::from_pem(&read(path)?);
    let key =
        key.map_err(|error| Failure::new(Reason::UnsupportedKey, format!("{}: {error}", path.display())))?;
    supported(key.key_type(), path)?;
    Ok(key.pkey().to_owned())
}

fn supported(key: KeyType, path: &Path) -> Result<(), Failure> {
    let of_file =
        |failure: Failure| Failure::new(failure.reason, format!("{}: {}", path.display(), failure.detail));
    check_kind(key).map_err(of_file)
}

fn public_key(path: &Path) -> Result<PKey<Public>, Failure> {
    let pem = read(path)?;
    let failed =
        |detail: String| Failure::new(Reason::UnsupportedKey, format!("{}: {detail}", path.display()));
    let certificates = quadrille_pem::certificates(&pem).map_err(|damage| failed(damage.to_string()))?;
    let public = match certificates.first() {
        Some(certificate) => certificate.public_key(),
        None => PKey::public_key_from_pem(&pem),
    };
    public.map_err(|_| failed("it contains neither a certificate nor a public key (PEM)".to_owned()))
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let cannot =
        |error: std::io::Error| Failure::new(Reason::CannotReadFile, format!("{}: {error}", path.display()));
    // Allocated large enough for most keys, so that growing leaves no copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(64 * 1024));
    // Opens a pipe without a writer without blocking; it is then rejected because it is not a file.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(cannot)?;
    if !file.metadata().map_err(cannot)?.is_file() {
        return Err(cannot(std::io::Error::other("it is not a regular file")));
    }
    file.take(LONGEST_FILE).read_to_end(&mut bytes).map_err(cannot)?;
    Ok(bytes)
}

fn bad(uri: &str, why: &str) -> Failure {
    Failure::new(Reason::BadUri, format!("{uri}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::{Reason, resolve};

    #[test]
    fn errors_name_the_problem() {
        let cases = [
            ("quadrille:", Reason::BadUri, "file:/path"),
            ("quadrille:file:key.pem", Reason::BadUri, "absolute"),
            ("quadrille:file:/nowhere/key.pem", Reason::CannotReadFile, "No such file"),
            ("quadrille:unix:/run/x.sock", Reason::BadUri, "?key="),
            ("quadrille:unix:/run/x.sock?key=/nowhere", Reason::CannotReadFile, "/nowhere"),
            ("quadrille:keyless:keys.internal:2407?key=/x", Reason::BadUri, "unix:/path"),
            ("quadrille:unix:/run/x.sock?what=1", Reason::BadUri, "what=1"),
        ];
        for (uri, reason, word) in cases {
            let failure = resolve(uri).err().unwrap();
            assert!(failure.reason == reason && failure.detail.contains(word), "{uri}: {failure:?}");
        }
    }
}
