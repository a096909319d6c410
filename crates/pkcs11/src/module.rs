//! Libraries of vendors, each loaded and initialised once for a process, and never unloaded.

use crate::{TokenError, error::name, login::Logins};
use cryptoki::{
    context::{CInitializeArgs, CInitializeFlags, Pkcs11},
    error::{Error, RvError},
};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// Library of a vendor.
pub(crate) struct Module {
    path: PathBuf,
    context: Mutex<Option<Pkcs11>>,
    pub(crate) logins: Logins,
}

impl Module {
    /// Returns the library of this path. It is loaded when a thread of a token uses it, because that may take long.
    pub(crate) fn of(path: &Path) -> Arc<Self> {
        static MODULES: Mutex<Vec<Arc<Module>>> = Mutex::new(Vec::new());
        // The same library by another path has the same state.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = modules.iter().find(|module| module.path == path) {
            return Arc::clone(known);
        }
        let new = Arc::new(Self { path, context: Mutex::new(None), logins: Logins::default() });
        modules.push(Arc::clone(&new));
        new
    }

    /// Returns the functions of the library, and loads it if necessary.
    pub(crate) fn context(&self) -> Result<Pkcs11, TokenError> {
        let mut context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = &*context {
            return Ok(context.clone());
        }
        let failed = |reason| TokenError::Module { module: self.path.display().to_string(), reason };
        let loaded = Pkcs11::new(&self.path).map_err(|error| failed(load_reason(&error)))?;
        match loaded.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)) {
            Ok(()) | Err(Error::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => {}
            Err(error) => return Err(failed(name(&error))),
        }
        Ok(context.insert(loaded).clone())
    }
}

fn load_reason(error: &Error) -> String {
    match error {
        Error::LibraryLoading(error) => error.to_string(),
        other => name(other),
    }
}
