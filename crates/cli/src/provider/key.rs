//! `quadrille provider key`.

use super::key_kind;
use base64ct::{Base64, Encoding};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Makes a PEM file that servers read instead of a private key. It contains no secret: it names a certificate, and
/// the local key server that holds the key. The provider accepts it if `quadrille provider install --pem-keys` listed
/// the paths that it names.
///
///   quadrille keyserver --keys /etc/quadrille/keys --unix /run/quadrille/keys.sock --policy policy.yaml
///   quadrille provider key --server unix:/run/quadrille/keys.sock --cert /etc/ssl/site.pem --out /etc/ssl/site.key
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct MakeKey {
    /// The key server: unix:/path. May be repeated; the first one that is available is used.
    #[arg(long, value_name = "ADDRESS", required = true)]
    server: Vec<quadrille_keyless::Address>,
    /// The certificate or public key in PEM that identifies the private key. The server reads it at start, so it must
    /// have permission to.
    #[arg(long, value_name = "FILE")]
    cert: PathBuf,
    /// A private key in PEM that the server reads itself, and uses when no key server responds.
    #[arg(long, value_name = "FILE")]
    fallback: Option<PathBuf>,
    /// Output file [default: standard output].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Line length of PEM (RFC 7468).
const LINE: usize = 64;

impl MakeKey {
    pub(super) fn run(&self) -> Result<(), String> {
        let uri = self.uri()?;
        let text = Base64::encode_string(uri.as_bytes());
        let lines =
            text.as_bytes().chunks(LINE).map(|line| String::from_utf8_lossy(line).into_owned() + "\n");
        let pem: String =
            [format!("{uri}\n-----BEGIN QUADRILLE KEY-----\n")].into_iter().chain(lines).collect::<String>()
                + "-----END QUADRILLE KEY-----\n";
        match &self.out {
            None => print!("{pem}"),
            Some(file) => {
                fs::write(file, pem).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
            }
        }
        Ok(())
    }

    fn uri(&self) -> Result<String, String> {
        key_kind::check(&self.cert)?;
        let servers: Vec<String> = self.server.iter().map(socket).collect::<Result<_, _>>()?;
        let fallback = match &self.fallback {
            Some(file) => format!("&fallback={}", absolute(file)?),
            None => String::new(),
        };
        Ok(format!("quadrille:{}?key={}{fallback}", servers.join(","), absolute(&self.cert)?))
    }
}

fn socket(address: &quadrille_keyless::Address) -> Result<String, String> {
    match address {
        quadrille_keyless::Address::Unix(path) => {
            let path = std::path::absolute(path).map_err(|error| error.to_string())?;
            Ok(format!("unix:{}", escaped(&path)?))
        }
        quadrille_keyless::Address::Tcp { .. } => {
            Err(format!("{address}: the provider uses only local key servers: write unix:/path"))
        }
    }
}

fn absolute(file: &Path) -> Result<String, String> {
    escaped(&file.canonicalize().map_err(|error| format!("{}: {error}", file.display()))?)
}

/// Percent-encodes the characters that are special in the URI.
fn escaped(path: &Path) -> Result<String, String> {
    let text = path.to_str().ok_or_else(|| format!("{}: the path is not UTF-8", path.display()))?;
    Ok(["%", "?", "&", ",", "="].iter().fold(text.to_owned(), |text, special| {
        let code = special.bytes().next().unwrap_or(b'%');
        text.replace(special, &format!("%{code:02x}"))
    }))
}
