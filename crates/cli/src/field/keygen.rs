//! `quadrille field keygen`.

use base64ct::{Base64, Encoding};
use quadrille_field::{KeyId, KeyRing, random_key};
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Makes a new key ring file with mode 0600, or changes the keys in one. A file is replaced in one step.
///
/// With one server, --rotate is enough. With several, each must have a key before any of them encrypts with it: --add
/// it, distribute the file, then --activate it and distribute the file again. Then `quadrille field migrate`
/// re-encrypts the tables, and --retire disables the old key.
#[derive(clap::Args)]
pub(crate) struct Keygen {
    /// The key ring file.
    #[arg(required_unless_present = "bytes")]
    file: Option<PathBuf>,
    #[command(flatten)]
    change: Change,
    /// Print one key of N random bytes in base64 instead.
    #[arg(long, value_name = "N", conflicts_with_all = ["file", "Change"], value_parser = clap::value_parser!(u16).range(1..=4096))]
    bytes: Option<u16>,
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct Change {
    /// Add a new key and make it the active one; the previous one still decrypts.
    #[arg(long)]
    rotate: bool,
    /// Add a new key that only decrypts until it is activated.
    #[arg(long)]
    add: bool,
    /// Make a key the active one.
    #[arg(long, value_name = "ID")]
    activate: Option<KeyId>,
    /// Disable a key: fields encrypted with it can no longer be read. --activate enables it again.
    #[arg(long, value_name = "ID")]
    retire: Option<KeyId>,
}

impl Keygen {
    pub(crate) fn run(self) -> Result<(), String> {
        match (self.bytes, self.file) {
            (Some(bytes), _) => print_key(bytes.into()),
            (None, Some(file)) if self.change.is_none() => create(&file),
            (None, Some(file)) => self.change.apply(&file),
            (None, None) => Err("name a key ring file".to_owned()),
        }
    }
}

fn print_key(bytes: usize) -> Result<(), String> {
    let key = random_key(bytes).map_err(|error| error.to_string())?;
    println!("{}", *Zeroizing::new(Base64::encode_string(&key)));
    Ok(())
}

fn create(file: &PathBuf) -> Result<(), String> {
    let ring = KeyRing::generate().map_err(|error| error.to_string())?;
    ring.create(file).map_err(|error| match error.source.as_ref().map(std::io::Error::kind) {
        Some(std::io::ErrorKind::AlreadyExists) => {
            format!("{}: already exists; --rotate or --add changes it", file.display())
        }
        _ => error.to_string(),
    })?;
    if let Some((id, _)) = ring.keys().next() {
        println!("{}: created, with the active key {id}", file.display());
    }
    Ok(())
}

impl Change {
    fn is_none(&self) -> bool {
        !self.rotate && !self.add && self.activate.is_none() && self.retire.is_none()
    }

    fn apply(&self, file: &PathBuf) -> Result<(), String> {
        let _lock = KeyRing::lock(file).map_err(|error| error.to_string())?;
        let mut ring = KeyRing::load(file).map_err(|error| error.to_string())?;
        let mut done = Vec::new();
        if self.rotate || self.add {
            let id = ring.add().map_err(|error| error.to_string())?;
            done.push(format!("added {id}"));
            if self.rotate {
                ring.activate(id).map_err(|error| error.to_string())?;
                done.push(format!("activated {id}"));
            }
        }
        if let Some(id) = self.activate {
            ring.activate(id).map_err(|error| format!("{}: {error}", file.display()))?;
            done.push(format!("activated {id}"));
        }
        if let Some(id) = self.retire {
            ring.retire(id).map_err(|error| format!("{}: {error}", file.display()))?;
            done.push(format!("retired {id}"));
        }
        ring.replace(file).map_err(|error| error.to_string())?;
        println!("{}: {}", file.display(), done.join(", "));
        Ok(())
    }
}
