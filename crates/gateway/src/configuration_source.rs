//! Source of a gateway's configuration, with the callbacks for its changes.

use crate::{
    admin::AdminPages,
    reload::{control::Updates, watch::Contents},
    telemetry::log_level::LogLevel,
};
use quadrille_config::{
    Diagnostics,
    model::{AccessLog, Gateway, Syslog},
};
use std::{path::PathBuf, sync::Arc};

/// Reads the configuration again for a reload; on failure, returns its errors.
pub type ReadConfiguration = Box<dyn Fn() -> Result<Gateway, Diagnostics>>;

/// Source of a configuration.
pub struct ConfigurationSource {
    /// Reads it again.
    pub reread: ReadConfiguration,
    /// Configuration file to watch, if there is one.
    pub file: Option<PathBuf>,
    /// Further files to watch; called after each read.
    pub watched_files: Option<WatchedFiles>,
    /// Files and directories that the last read used, besides the first. Of directories, only the names of their
    /// files count.
    pub included_files: Option<WatchedFiles>,
    /// Returns the warnings of the last read.
    pub warnings: Option<Box<dyn Fn() -> Vec<String>>>,
    /// Called after a configuration that was read again is in service.
    pub in_service: Option<Box<dyn Fn()>>,
    /// Configurations that are received while the gateway runs.
    pub updates: Option<Updates>,
    /// Additional pages of the admin address.
    pub pages: Option<Arc<dyn AdminPages>>,
    /// Changes the destination of the access log.
    pub access_log: Option<SetAccessLog>,
    /// Reopens the access log, if it is a file.
    pub reopen_access_log: Option<ReopenAccessLog>,
    /// Changes the level of the log.
    pub log_level: Option<Arc<dyn LogLevel>>,
    /// Makes the allocator return the free memory of the calling thread to the kernel.
    pub release_memory: Option<fn()>,
}

/// Changes the destinations of the access log; has no effect and returns an error if that is not possible.
pub type SetAccessLog = Box<dyn Fn(&AccessLog, Option<&Syslog>) -> Result<(), String>>;

/// Reopens the destination of the access log; has no effect and returns an error if that is not possible.
pub type ReopenAccessLog = Box<dyn Fn() -> Result<(), String>>;

/// Returns the files that a configuration was read from, besides the first.
pub type WatchedFiles = Box<dyn Fn() -> Vec<PathBuf>>;

impl ConfigurationSource {
    /// Creates a source of a fixed configuration; the files that it references are read again.
    pub fn fixed(model: &Gateway) -> Self {
        let again = model.clone();
        Self::reading(None, Box::new(move || Ok(again.clone())))
    }

    /// Creates a source that reads this file again when it, or a file that it references, changes.
    pub fn reading(file: Option<PathBuf>, reread: ReadConfiguration) -> Self {
        Self {
            reread,
            file,
            watched_files: None,
            included_files: None,
            warnings: None,
            in_service: None,
            updates: None,
            pages: None,
            access_log: None,
            reopen_access_log: None,
            log_level: None,
            release_memory: None,
        }
    }

    /// Returns the current contents of all watched files except those that the model references.
    pub(crate) fn contents(&self) -> Contents {
        let more = self.watched_files.as_ref().map(|files| files()).unwrap_or_default();
        let included = self.included_files.as_ref().map(|files| files()).unwrap_or_default();
        let contents = Contents::of_file(self.file.as_deref()).with_paths(more.iter().map(PathBuf::as_path));
        contents.with_names(included.iter().map(PathBuf::as_path))
    }

    /// Returns the warnings of the last read.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.as_ref().map(|warnings| warnings()).unwrap_or_default()
    }
}
