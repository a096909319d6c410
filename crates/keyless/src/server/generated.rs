//! Generated keys: their limit, and their files.

use super::{
    key_origin::Generated,
    keys::{Keys, StoredKey},
};
use crate::wire::{ErrorCode, Ski};
use quadrille_engine::{Key, KeyType, Zeroizing};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    num::NonZeroUsize,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Maximum number of generated keys, of all clients together.
const MOST: usize = 10_000;

/// Key requested by a client.
pub(super) struct WantedKey {
    pub(super) key_type: KeyType,
    pub(super) generated: Generated,
    /// Maximum number of keys of the client.
    pub(super) limit: NonZeroUsize,
}

/// Reason for which no key was generated.
#[derive(Debug, thiserror::Error)]
pub(super) enum GenerationError {
    /// The client's limit, or the overall limit, is reached.
    #[error("the limit of generated keys is reached")]
    TooMany,
    #[error("cannot store the key in {}: {error}; ensure that the key server may write there", directory.display())]
    Write { directory: PathBuf, error: io::Error },
    #[error("key generation failed")]
    Failed,
}

impl From<&GenerationError> for ErrorCode {
    fn from(error: &GenerationError) -> Self {
        match error {
            GenerationError::TooMany => Self::TooManyKeys,
            GenerationError::Write { .. } | GenerationError::Failed => Self::Internal,
        }
    }
}

impl WantedKey {
    /// Checks that one more key is allowed.
    pub(super) fn check(&self, keys: &Keys) -> Result<(), GenerationError> {
        let mut all = 0;
        let mut own = 0;
        for generated in keys.iter().filter_map(|stored| stored.generated.as_ref()) {
            all += 1;
            own += usize::from(generated.client == self.generated.client);
        }
        if own >= self.limit.get() || all >= MOST { Err(GenerationError::TooMany) } else { Ok(()) }
    }

    /// Generates the key. RSA takes a second or more.
    pub(super) fn make(self) -> Result<NewKey, GenerationError> {
        let key = Key::generate(self.key_type).map_err(|_| GenerationError::Failed)?;
        let ski = Ski::from_key(key.public().pkey()).map_err(|_| GenerationError::Failed)?;
        Ok(NewKey { name: file_name(&self.generated.reference, ski), key, ski, wanted: self })
    }
}

/// Generated key that is not stored yet.
pub(super) struct NewKey {
    wanted: WantedKey,
    pub(super) name: String,
    pub(super) key: Key,
    ski: Ski,
}

impl NewKey {
    /// Checks that one more key is allowed.
    pub(super) fn check(&self, keys: &Keys) -> Result<(), GenerationError> {
        self.wanted.check(keys)
    }

    /// Writes the key into the directory, where it outlives this process, and returns the key to serve.
    pub(super) fn keep(self, directory: &Path) -> Result<(PathBuf, Arc<StoredKey>), GenerationError> {
        let Self { wanted, name, key, ski } = self;
        let file = directory.join(format!("{name}.pem"));
        let pem = key.pkey().private_key_to_pem_pkcs8().map(Zeroizing::new);
        let pem = pem.map_err(|_| GenerationError::Failed)?;
        let written = write(&file, wanted.generated.head().as_bytes(), &pem);
        written.map_err(|error| GenerationError::Write { directory: directory.to_owned(), error })?;
        Ok((file, Arc::new(StoredKey::new(name, ski, key, Some(wanted.generated)))))
    }
}

/// File name of a key, without its extension: readable, and unique.
fn file_name(reference: &str, ski: Ski) -> String {
    let ski = ski.to_string();
    format!("{reference}.{}", ski.get(..16).unwrap_or(&ski))
}

/// Writes a whole file or none, also after a power failure, for this user only. Until it is complete it is hidden,
/// and so ignored.
fn write(file: &Path, head: &[u8], pem: &[u8]) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let part = directory.join(format!(".generated.{}.part", std::process::id()));
    let _ = fs::remove_file(&part);
    let written = (|| {
        let mut open = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&part)?;
        open.write_all(head)?;
        open.write_all(pem)?;
        open.sync_all()?;
        fs::rename(&part, file)?;
        File::open(directory)?.sync_all()
    })();
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn wanted(client: &str, reference: &str, limit: usize) -> WantedKey {
        let generated = Generated { client: client.to_owned(), reference: reference.to_owned() };
        let limit = NonZeroUsize::new(limit).unwrap();
        WantedKey { key_type: KeyType::EcdsaP256, generated, limit }
    }

    fn load(directory: &Path) -> Keys {
        let (keys, problems) = Keys::load(directory, &Keys::default()).unwrap();
        assert!(!problems.iter().any(|problem| problem.fatal), "{problems:?}");
        keys
    }

    #[test]
    fn a_key_is_a_file_for_one_user_and_is_found_again_with_its_client() {
        let directory = tempfile::tempdir().unwrap();
        let new = wanted("evil\nReference: other", "www.example.com.ecdsa-p256", 1).make().unwrap();
        let (file, stored) = new.keep(directory.path()).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no other file is left");
        let keys = load(directory.path());
        let again = keys.iter().next().unwrap();
        assert_eq!((again.ski, &again.name), (stored.ski, &stored.name));
        let generated = again.generated.as_ref().unwrap();
        assert_eq!(generated.reference, "www.example.com.ecdsa-p256");
        assert_eq!(generated.client, "evil?Reference: other");
        assert_eq!(keys.file(&stored.ski), Some(file.as_path()));
    }

    #[test]
    fn each_client_has_as_many_as_it_may_and_keys_of_others_do_not_count() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(
            directory.path().join("own.pem"),
            Key::generate(KeyType::EcdsaP256).unwrap().pkey().private_key_to_pem_pkcs8().unwrap(),
        )
        .unwrap();
        wanted("a", "one", 2).make().unwrap().keep(directory.path()).unwrap();
        wanted("a", "two", 2).make().unwrap().keep(directory.path()).unwrap();
        let keys = load(directory.path());
        assert!(matches!(wanted("a", "three", 2).check(&keys), Err(GenerationError::TooMany)));
        assert!(wanted("a", "three", 3).check(&keys).is_ok() && wanted("b", "three", 1).check(&keys).is_ok());
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let gone = directory.path().join("gone");
        let error = wanted("a", "one", 1).make().unwrap().keep(&gone).unwrap_err();
        assert!(error.to_string().contains("gone") && error.to_string().contains("the key server may write"));
    }
}
