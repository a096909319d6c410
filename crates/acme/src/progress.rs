//! What is known of each certificate besides its file, kept over restarts: a process that is started again and again
//! must not order again and again.

use crate::{AcmeError, UnixTime, files, files::StateDirectory, schedule::Failures};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// By the names of the certificates' files.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Progress(BTreeMap<String, Past>);

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Past {
    #[serde(default)]
    failures: u32,
    #[serde(default)]
    retry_at: UnixTime,
    #[serde(default)]
    ordered_at: UnixTime,
}

/// Its file in the state directory.
pub(crate) const FILE: &str = "progress.json";

impl Progress {
    /// What a process before has left; nothing, if that cannot be read.
    pub(crate) fn read(state: &StateDirectory) -> Self {
        let json = files::read(&state.path(FILE)).ok().flatten();
        json.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default()
    }

    pub(crate) fn failures(&self, id: &str) -> Failures {
        self.0
            .get(id)
            .map_or_else(Failures::default, |past| Failures { count: past.failures, retry_at: past.retry_at })
    }

    /// When the last certificate came; long ago, if none did.
    pub(crate) fn ordered_at(&self, id: &str) -> UnixTime {
        self.0.get(id).map_or(0, |past| past.ordered_at)
    }

    pub(crate) fn failed(&mut self, id: &str, failures: Failures) {
        let past = self.0.entry(id.to_owned()).or_default();
        (past.failures, past.retry_at) = (failures.count, failures.retry_at);
    }

    pub(crate) fn ordered(&mut self, id: &str, now: UnixTime) {
        self.0.insert(id.to_owned(), Past { failures: 0, retry_at: 0, ordered_at: now });
    }

    /// An operator wants it at once.
    pub(crate) fn clear(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// What the file holds.
    pub(crate) fn to_json(&self) -> Result<Vec<u8>, AcmeError> {
        serde_json::to_vec_pretty(self).map_err(|error| AcmeError::File(error.to_string()))
    }
}
