//! Per-process cache of key rings, valid until their file changes: parsing and deriving keys for every page would
//! take longer than the page's fields.

use quadrille_field::{Error, Field, KeyRing, KeyRingError};
use std::{
    collections::HashMap,
    ffi::{CString, c_char, c_int},
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A key ring with the columns whose keys have been derived.
pub(crate) struct Cached {
    ring: KeyRing,
    fields: Mutex<HashMap<[String; 2], Arc<Field>>>,
}

/// Maximum number of columns cached per ring.
const MOST_FIELDS: usize = 1024;
/// Maximum number of files cached.
const MOST_FILES: usize = 16;

impl Cached {
    pub(crate) fn new(ring: KeyRing) -> Self {
        Self { ring, fields: Mutex::default() }
    }

    pub(crate) fn ring(&self) -> &KeyRing {
        &self.ring
    }

    /// Returns a column, derived once.
    pub(crate) fn field(&self, table: &str, column: &str) -> Result<Arc<Field>, Error> {
        let name = [table.to_owned(), column.to_owned()];
        let mut fields = locked(&self.fields);
        if let Some(field) = fields.get(&name) {
            return Ok(Arc::clone(field));
        }
        let field = Arc::new(self.ring.field(table, column)?);
        if fields.len() >= MOST_FIELDS {
            fields.clear();
        }
        fields.insert(name, Arc::clone(&field));
        Ok(field)
    }
}

static FILES: Mutex<Vec<File>> = Mutex::new(Vec::new());

struct File {
    path: PathBuf,
    version: Version,
    cached: Arc<Cached>,
}

/// Detects a change of a file's contents, mode or owner.
#[derive(PartialEq, Eq)]
struct Version([i128; 4]);

impl Version {
    fn of_file(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Ok(Self([
            i128::from(metadata.dev()) << 64 | i128::from(metadata.ino()),
            i128::from(metadata.size()),
            nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        ]))
    }
}

/// Returns the key ring of a file, read again if the file has changed.
pub(crate) fn load(path: &Path) -> Result<Arc<Cached>, KeyRingError> {
    // Taken before reading: if the file changes meanwhile, the next page reads it again.
    let version = Version::of_file(path).ok();
    let mut files = locked(&FILES);
    if let Some(known) =
        files.iter().find(|file| file.path == path && Some(&file.version) == version.as_ref())
    {
        return Ok(Arc::clone(&known.cached));
    }
    files.retain(|file| file.path != path);
    let cached = Arc::new(Cached::new(KeyRing::load(path)?));
    if let Some(version) = version {
        if files.len() >= MOST_FILES {
            files.remove(0);
        }
        files.push(File { path: path.to_owned(), version, cached: Arc::clone(&cached) });
    }
    Ok(cached)
}

/// Returns the files and their keys, without values, for phpinfo().
pub(crate) fn loaded() -> Vec<String> {
    let describe = |file: &File| {
        let keys: Vec<_> = file.cached.ring.keys().map(|(id, state)| format!("{id} ({state})")).collect();
        format!("{}: {}", file.path.display(), keys.join(", "))
    };
    locked(&FILES).iter().map(describe).collect()
}

/// Returns whether PHP's `open_basedir` allows this file; PHP warns if not.
pub(crate) fn may_open(path: &Path) -> bool {
    unsafe extern "C" {
        fn php_check_open_basedir(path: *const c_char) -> c_int;
    }
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: PHP exports this function, which reads a zero-terminated path.
    unsafe { php_check_open_basedir(path.as_ptr()) == 0 }
}

/// Locks the mutex, even after a panic: a panic leaves no partial state here.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
