//! Progress of each certificate's orders, kept across restarts: a process that restarts repeatedly must not order
//! repeatedly.

use crate::{AcmeError, UnixTime, files, files::StateDirectory, schedule::Failures};
use base64ct::{Base64, Encoding};
use boring::pkey::PKey;
use quadrille_engine::PublicKey;
use quadrille_keyless::{client::RemoteKey, wire::Ski};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Progress by the name of the certificate's file.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Progress(BTreeMap<String, Past>);

#[derive(Clone, Default, Serialize, Deserialize)]
struct Past {
    #[serde(default)]
    failures: u32,
    #[serde(default)]
    retry_at: UnixTime,
    #[serde(default)]
    ordered_at: UnixTime,
    /// Key that was generated on key servers and has no certificate yet: its `SubjectPublicKeyInfo`, in base64. A
    /// failed order leaves it to the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pending_key: Option<String>,
    /// Identifier of the key on key servers whose certificate was replaced last. Gateways may use it for some more
    /// seconds, so it is removed at the next renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replaced_key: Option<String>,
}

/// Name of the file in the state directory.
pub(crate) const FILE: &str = "progress.json";

impl Progress {
    /// Reads the state that a previous process stored; empty if it cannot be read.
    pub(crate) fn read(state: &StateDirectory) -> Self {
        let json = files::read(&state.path(FILE)).ok().flatten();
        json.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default()
    }

    pub(crate) fn failures(&self, id: &str) -> Failures {
        self.0
            .get(id)
            .map_or_else(Failures::default, |past| Failures { count: past.failures, retry_at: past.retry_at })
    }

    /// Returns the time of the last certificate; far in the past before the first one.
    pub(crate) fn ordered_at(&self, id: &str) -> UnixTime {
        self.0.get(id).map_or(0, |past| past.ordered_at)
    }

    pub(crate) fn failed(&mut self, id: &str, failures: Failures) {
        let past = self.0.entry(id.to_owned()).or_default();
        (past.failures, past.retry_at) = (failures.count, failures.retry_at);
    }

    /// Records a new certificate that replaces one with the key `replaced`. Returns the key on key servers that is no
    /// longer needed.
    pub(crate) fn ordered(&mut self, id: &str, now: UnixTime, replaced: Option<Ski>) -> Option<Ski> {
        let replaced_key = replaced.map(|key| key.to_string());
        let new = Past { ordered_at: now, replaced_key, ..Past::default() };
        let before = self.0.insert(id.to_owned(), new).and_then(|past| past.replaced_key)?;
        Ski::parse(&before).filter(|before| Some(*before) != replaced)
    }

    /// Resets the failures, because an operator requested a renewal.
    pub(crate) fn clear(&mut self, id: &str) {
        if let Some(past) = self.0.get_mut(id) {
            (past.failures, past.retry_at, past.ordered_at) = (0, 0, 0);
        }
    }

    /// Sets or clears the key generated on key servers.
    pub(crate) fn set_pending_key(&mut self, id: &str, key: Option<&RemoteKey>) {
        let encoded = key.and_then(|key| key.public().pkey().public_key_to_der().ok());
        self.0.entry(id.to_owned()).or_default().pending_key = encoded.map(|der| Base64::encode_string(&der));
    }

    /// Returns the key that was generated and has no certificate yet.
    pub(crate) fn pending_key(&self, id: &str) -> Option<RemoteKey> {
        let der = Base64::decode_vec(self.0.get(id)?.pending_key.as_deref()?).ok()?;
        RemoteKey::new(PublicKey::from_pkey(PKey::public_key_from_der(&der).ok()?).ok()?).ok()
    }

    /// Serializes the file's contents.
    pub(crate) fn to_json(&self) -> Result<Vec<u8>, AcmeError> {
        serde_json::to_vec_pretty(self).map_err(|error| AcmeError::File(error.to_string()))
    }
}
