//! Where a gateway's configuration comes from, and who is told of it.

use crate::{
    admin::AdminPages,
    reload::{control::Updates, watch::Contents},
};
use quadrille_config::{
    Diagnostics,
    model::{AccessLog, Gateway},
};
use std::{path::PathBuf, sync::Arc};

/// Reads the configuration again, for a reload; on failure, what is wrong with it.
pub type ReadConfiguration = Box<dyn Fn() -> Result<Gateway, Diagnostics>>;

/// Where a configuration came from.
pub struct ConfigurationSource {
    /// Reads it again.
    pub reread: ReadConfiguration,
    /// The file to watch, where there is one.
    pub file: Option<PathBuf>,
    /// More files to watch: asked for after each reading.
    pub watched_files: Option<WatchedFiles>,
    /// Told when what was read again is in service.
    pub in_service: Option<Box<dyn Fn()>>,
    /// Configurations that come while the gateway runs.
    pub updates: Option<Updates>,
    /// Pages that the admin address has besides its own.
    pub pages: Option<Arc<dyn AdminPages>>,
    /// Told where access lines go from now on.
    pub access_log: Option<SetAccessLog>,
    /// Opens the file of the access log anew, if it is one.
    pub reopen_access_log: Option<ReopenAccessLog>,
}

/// Sends access lines elsewhere; without effect, and an error, where that is not possible.
pub type SetAccessLog = Box<dyn Fn(&AccessLog) -> Result<(), String>>;

/// Opens what access lines go to anew; without effect, and an error, where that is not possible.
pub type ReopenAccessLog = Box<dyn Fn() -> Result<(), String>>;

/// Files that a configuration was read from, besides the first.
pub type WatchedFiles = Box<dyn Fn() -> Vec<PathBuf>>;

impl ConfigurationSource {
    /// A configuration that stays as it is; the files that it names are read again.
    pub fn fixed(model: &Gateway) -> Self {
        let again = model.clone();
        Self::reading(None, Box::new(move || Ok(again.clone())))
    }

    /// A configuration that is read again from this file when it, or what it names, changes.
    pub fn reading(file: Option<PathBuf>, reread: ReadConfiguration) -> Self {
        Self {
            reread,
            file,
            watched_files: None,
            in_service: None,
            updates: None,
            pages: None,
            access_log: None,
            reopen_access_log: None,
        }
    }

    /// All files that are watched besides those that the model names, as they are now.
    pub(crate) fn contents(&self) -> Contents {
        let more = self.watched_files.as_ref().map(|files| files()).unwrap_or_default();
        Contents::of_file(self.file.as_deref()).with_paths(more.iter().map(PathBuf::as_path))
    }
}
