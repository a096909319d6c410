//! `quadrille keyserver keys`.

use quadrille_config::pkcs11_uri;
use quadrille_engine::PublicKey;
use quadrille_keyless::{server, wire::Ski};
use std::{io::Write, path::Path};

/// List the private keys of a key server's directory, or of a PKCS#11 token: identifier, type, and name or URI. Tokens
/// are opened, with their PINs. Exits with status 2 if a file is unusable.
///
///   quadrille keyserver keys --keys /etc/quadrille/keys
///   quadrille keyserver keys --keys \
///     'pkcs11:token=keys?module-path=/usr/lib/softhsm/libsofthsm2.so&pin-source=file:/etc/quadrille/keys.pin'
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Keys {
    /// A directory of private keys, or the `pkcs11:` URI of a token.
    #[arg(long, value_name = "DIR|URI")]
    keys: String,
}

impl Keys {
    pub(super) fn run(self) -> Result<(), Vec<String>> {
        if pkcs11_uri::is_uri(&self.keys) { self.token() } else { self.directory() }
    }

    fn token(&self) -> Result<(), Vec<String>> {
        let key = pkcs11_uri::parse(&self.keys).map_err(|problem| vec![format!("--keys: {problem}")])?;
        let found = quadrille_pkcs11::list(&key).map_err(|error| vec![format!("{key}: {error}")])?;
        for object in &found {
            let shown = match &object.public {
                Some(public) => public_half(public)?,
                None => "(no supported public key in the token)".to_owned(),
            };
            print(&format!("{shown}  {}", object.uri))?;
        }
        if found.is_empty() { Err(vec![format!("{key}: the token has no such private key")]) } else { Ok(()) }
    }

    fn directory(&self) -> Result<(), Vec<String>> {
        let loaded = server::Keys::load(Path::new(&self.keys), &server::Keys::default());
        let (keys, problems) = loaded.map_err(|error| vec![format!("cannot read {}: {error}", self.keys)])?;
        for stored in keys.iter() {
            let place = if stored.is_in_token() { " (in a PKCS#11 token)" } else { "" };
            print(&format!("{}  {}{place}", public_half(stored.key.public())?, stored.name))?;
        }
        let (fatal, warnings): (Vec<_>, Vec<_>) = problems.into_iter().partition(|problem| problem.fatal);
        warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
        if fatal.is_empty() { Ok(()) } else { Err(fatal.iter().map(ToString::to_string).collect()) }
    }
}

fn public_half(public: &PublicKey) -> Result<String, Vec<String>> {
    let ski = Ski::from_key(public.pkey()).map_err(|error| vec![error.to_string()])?;
    Ok(format!("{ski}  {}", public.key_type()))
}

fn print(line: &str) -> Result<(), Vec<String>> {
    writeln!(std::io::stdout(), "{line}").map_err(|error| vec![error.to_string()])
}
