//! Key servers that generate and hold the keys of orders.

use quadrille_config::model::{AcmeKeyType, Keyless};
use quadrille_engine::KeyType;
use quadrille_keyless::client::Client;

/// Connections to the key servers that the configuration names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyServers(Vec<(Keyless, Client)>);

impl KeyServers {
    /// Creates the set from settings and their clients.
    pub fn new(clients: impl IntoIterator<Item = (Keyless, Client)>) -> Self {
        Self(clients.into_iter().collect())
    }

    /// Returns the subset that `wanted` selects.
    pub(crate) fn only(&self, wanted: impl Fn(&Keyless) -> bool) -> Self {
        Self(self.0.iter().filter(|(settings, _)| wanted(settings)).cloned().collect())
    }

    /// Returns the client for these key servers.
    pub(crate) fn client(&self, settings: &Keyless) -> Option<&Client> {
        self.0.iter().find(|(known, _)| known == settings).map(|(_, client)| client)
    }
}

/// Converts the configuration's key type to that of the key protocol.
pub(crate) fn key_type(key_type: AcmeKeyType) -> KeyType {
    match key_type {
        AcmeKeyType::EcdsaP256 => KeyType::EcdsaP256,
        AcmeKeyType::EcdsaP384 => KeyType::EcdsaP384,
        AcmeKeyType::Rsa2048 => KeyType::Rsa { bits: 2048 },
        AcmeKeyType::Rsa3072 => KeyType::Rsa { bits: 3072 },
        AcmeKeyType::Rsa4096 => KeyType::Rsa { bits: 4096 },
    }
}
