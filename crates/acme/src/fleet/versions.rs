//! Version of each record that this member has received, kept across restarts: older records are rejected.

use crate::{AcmeError, StateDirectory, files};
use quadrille_resumption::Version;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Versions by record name.
#[derive(Default)]
pub(super) struct Versions(BTreeMap<String, Version>);

#[derive(Serialize, Deserialize)]
struct Document {
    fleet: String,
    versions: BTreeMap<String, String>,
}

const FILE: &str = "fleet.json";

impl Versions {
    /// Reads the versions for the fleet of this name; empty if the directory belonged to another fleet.
    pub(super) fn read(state: &StateDirectory, fleet: &str) -> Self {
        let json = files::read(&state.path(FILE)).ok().flatten();
        let document = json.and_then(|json| serde_json::from_slice::<Document>(&json).ok());
        let Some(document) = document.filter(|document| document.fleet == fleet) else {
            return Self::default();
        };
        let known = document.versions.into_iter();
        Self(known.filter_map(|(name, version)| Some((name, version.parse().ok()?))).collect())
    }

    pub(super) fn write(&self, state: &StateDirectory, fleet: &str) -> Result<(), AcmeError> {
        let versions = self.0.iter().map(|(name, version)| (name.clone(), version.to_string())).collect();
        let document = Document { fleet: fleet.to_owned(), versions };
        let json =
            serde_json::to_vec_pretty(&document).map_err(|error| AcmeError::File(error.to_string()))?;
        files::write(&state.path(FILE), &json)
    }

    /// Returns the version of a record; the lowest version if it was never received.
    pub(super) fn get(&self, name: &str) -> Version {
        self.0.get(name).copied().unwrap_or_default()
    }

    pub(super) fn set(&mut self, name: &str, version: Version) {
        self.0.insert(name.to_owned(), version);
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Returns the highest version.
    pub(super) fn newest(&self) -> Version {
        self.0.values().max().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_kept_for_their_fleet_only() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(directory.path()).unwrap();
        let version: Version = "00000000000000070000".parse().unwrap();
        let mut versions = Versions::default();
        versions.set("progress.json", version);
        versions.write(&state, "one").unwrap();
        assert_eq!(Versions::read(&state, "one").get("progress.json"), version);
        assert_eq!(Versions::read(&state, "one").newest(), version);
        assert_eq!(Versions::read(&state, "two").newest(), Version::default());
    }
}
