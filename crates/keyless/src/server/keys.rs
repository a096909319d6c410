//! Keys of a directory, by identifier.

use super::{key_origin::Generated, token_file};
use crate::wire::{KeyName, Ski, modulus_digest};
use quadrille_engine::{Key, KeyError, KeyType, Zeroizing};
use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Served keys.
#[derive(Clone, Default)]
pub struct Keys {
    directory: PathBuf,
    by_ski: HashMap<Ski, Arc<StoredKey>>,
    by_modulus: HashMap<[u8; 32], Arc<StoredKey>>,
    /// Keys by file, so that a file that is being written does not lose its key.
    files: BTreeMap<PathBuf, Arc<StoredKey>>,
}

/// Served key.
#[derive(Debug)]
pub struct StoredKey {
    /// File name without its extension.
    pub name: String,
    /// Identifier by which clients request it.
    pub ski: Ski,
    pub(super) hex: String,
    /// The key.
    pub key: Key,
    /// Client and purpose of a generated key; `None` for a key installed by the operator.
    pub generated: Option<Generated>,
    /// Contents of the file that names a key in a PKCS#11 token; `None` for a key in the file itself.
    in_token: Option<Box<[u8]>>,
}

/// Problem with a key file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", file.display())]
pub struct KeyProblem {
    /// Path of the file.
    pub file: PathBuf,
    /// Description and remedy.
    pub message: String,
    /// Whether the file's key is not served, or only an earlier version of it.
    pub fatal: bool,
}

/// Label of all generated keys.
pub(super) const GENERATED: &str = "(generated)";

/// Larger than any key.
const MAX_FILE: u64 = 1024 * 1024;

impl Keys {
    /// Reads every file of a directory that holds a private key in PEM, or the URI of one in a PKCS#11 token. Files
    /// without one, such as certificates, and hidden files are ignored. A file that is currently unreadable, or whose token is not
    /// available, keeps the key that it had in `before`.
    ///
    /// # Errors
    /// If the directory itself cannot be read.
    pub fn load(directory: &Path, before: &Self) -> io::Result<(Self, Vec<KeyProblem>)> {
        let mut files: Vec<PathBuf> =
            fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        files.sort();
        let mut keys = Self { directory: directory.to_owned(), ..Self::default() };
        let mut problems = Vec::new();
        for file in files.into_iter().filter(|file| !is_hidden(file)) {
            match StoredKey::read(&file, before, &mut problems) {
                Ok(None) => {}
                Ok(Some(stored)) => keys.add(file, stored, &mut problems),
                Err(message) => {
                    if let Some(old) = before.files.get(&file) {
                        keys.add(file.clone(), Arc::clone(old), &mut Vec::new());
                    }
                    problems.push(KeyProblem { file, message, fatal: true });
                }
            }
        }
        Ok((keys, problems))
    }

    /// Finds the key that a request names.
    pub(super) fn find(&self, name: &KeyName) -> Option<&Arc<StoredKey>> {
        let by_modulus = || self.by_modulus.get(&name.modulus?);
        name.ski.and_then(|ski| self.by_ski.get(&ski)).or_else(by_modulus)
    }

    /// Directory of the keys.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// File of a generated key.
    pub(super) fn file(&self, ski: &Ski) -> Option<&Path> {
        let mut files = self.files.iter().filter(|(_, stored)| stored.generated.is_some());
        files.find(|(_, stored)| stored.ski == *ski).map(|(file, _)| file.as_path())
    }

    /// Returns a copy with one more key.
    pub(super) fn with(&self, file: PathBuf, stored: Arc<StoredKey>) -> Self {
        let mut keys = self.clone();
        keys.insert(file, stored);
        keys
    }

    /// Returns a copy without this key.
    pub(super) fn without(&self, ski: &Ski) -> Self {
        let mut keys = self.clone();
        keys.by_ski.remove(ski);
        keys.by_modulus.retain(|_, stored| stored.ski != *ski);
        keys.files.retain(|_, stored| stored.ski != *ski);
        keys
    }

    /// All keys, by file name.
    pub fn iter(&self) -> impl Iterator<Item = &StoredKey> {
        self.files.values().map(|stored| &**stored)
    }

    fn add(&mut self, file: PathBuf, stored: Arc<StoredKey>, problems: &mut Vec<KeyProblem>) {
        if let Some(other) = self.by_ski.get(&stored.ski) {
            let message = format!("same key as `{}`; remove one of the two", other.name);
            problems.push(KeyProblem { file, message, fatal: false });
            return;
        }
        if !stored.is_in_token() && readable_by_all(&file) {
            let message = "readable by all users of this machine; run: chmod 600".to_owned();
            problems.push(KeyProblem { file: file.clone(), message, fatal: false });
        }
        self.insert(file, stored);
    }

    fn insert(&mut self, file: PathBuf, stored: Arc<StoredKey>) {
        if let Some(digest) = modulus_digest(stored.key.public().pkey()) {
            self.by_modulus.insert(digest, Arc::clone(&stored));
        }
        self.by_ski.insert(stored.ski, Arc::clone(&stored));
        self.files.insert(file, stored);
    }
}

impl StoredKey {
    pub(super) fn new(name: String, ski: Ski, key: Key, generated: Option<Generated>) -> Self {
        Self { name, ski, hex: ski.to_string(), key, generated, in_token: None }
    }

    /// Returns whether the key is in a PKCS#11 token.
    pub fn is_in_token(&self) -> bool {
        self.in_token.is_some()
    }

    /// Names of the key in policies.
    pub(super) fn names(&self) -> Vec<&str> {
        let reference = self.generated.as_ref().map(|generated| generated.reference.as_str());
        [self.name.as_str(), self.hex.as_str()].into_iter().chain(reference).collect()
    }

    /// Label in metrics: generated keys are short-lived, and named by clients.
    pub(super) fn label(&self) -> &str {
        if self.generated.is_some() { GENERATED } else { &self.name }
    }

    /// Algorithm and size.
    pub fn key_type(&self) -> KeyType {
        self.key.key_type()
    }

    /// Reads the key of a file; returns the previous object if the key is unchanged, because backends have prepared
    /// it.
    fn read(file: &Path, before: &Keys, problems: &mut Vec<KeyProblem>) -> Result<Option<Arc<Self>>, String> {
        let metadata = fs::metadata(file).map_err(|error| error.to_string())?;
        if !metadata.is_file() || metadata.len() > MAX_FILE {
            return Ok(None);
        }
        let pem = fs::read(file).map(Zeroizing::new).map_err(|error| error.to_string())?;
        if token_file::is_one(&pem) {
            return Self::of_token(file, &pem, before, problems).map(Some);
        }
        let key = match Key::from_pem(&pem) {
            Ok(key) => key,
            Err(KeyError::Missing) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let (name, ski) = (name_of(file), ski_of(&key)?);
        let generated = Generated::parse(&pem);
        let same = |old: &&Arc<Self>| old.name == name && old.generated == generated && !old.is_in_token();
        if let Some(old) = before.by_ski.get(&ski).filter(same) {
            return Ok(Some(Arc::clone(old)));
        }
        Ok(Some(Arc::new(Self::new(name, ski, key, generated))))
    }

    /// Returns the key in a token that a file names; the previous object if the file is unchanged, without a request to
    /// the token.
    fn of_token(
        file: &Path,
        contents: &[u8],
        before: &Keys,
        problems: &mut Vec<KeyProblem>,
    ) -> Result<Arc<Self>, String> {
        let same = |old: &&Arc<Self>| old.in_token.as_deref() == Some(contents);
        if let Some(old) = before.files.get(file).filter(same) {
            return Ok(Arc::clone(old));
        }
        let loaded = token_file::load(contents)?;
        let warning = |message| KeyProblem { file: file.to_owned(), message, fatal: false };
        problems.extend(loaded.warnings.into_iter().map(warning));
        let stored = Self::new(name_of(file), ski_of(&loaded.key)?, loaded.key, None);
        Ok(Arc::new(Self { in_token: Some(contents.into()), ..stored }))
    }
}

fn name_of(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn ski_of(key: &Key) -> Result<Ski, String> {
    Ski::from_key(key.public().pkey()).map_err(|error| error.to_string())
}

fn is_hidden(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn readable_by_all(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o004 != 0)
}
