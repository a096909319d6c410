//! Remote operations and remote keys.

use crate::{
    session::RemoteOperation,
    wire::{Hints, KeyName, Request, Ski, modulus_digest, opcode},
};
use boring::error::ErrorStack;
use quadrille_engine::{KeyType, Operation, PublicKey};
use std::net::IpAddr;

/// Key with a private half on key servers.
#[derive(Clone, Debug)]
pub struct RemoteKey {
    public: PublicKey,
    name: KeyName,
}

/// Connection for which an operation is computed, as information for key servers; sent in the compatible mode only.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Server name (SNI) sent by the client.
    pub sni: Option<String>,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// Address to which the client connected.
    pub server: Option<IpAddr>,
}

impl RemoteKey {
    /// Creates the remote key of a certificate's public key.
    ///
    /// # Errors
    /// If BoringSSL cannot encode the key.
    pub fn new(public: PublicKey) -> Result<Self, ErrorStack> {
        let name =
            KeyName { ski: Some(Ski::from_key(public.pkey())?), modulus: modulus_digest(public.pkey()) };
        Ok(Self { public, name })
    }

    /// Public key with which results are verified.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Algorithm and size.
    pub fn key_type(&self) -> KeyType {
        self.public.key_type()
    }

    /// Identifier of the key on servers.
    pub fn ski(&self) -> Ski {
        self.name.ski.unwrap_or(Ski([0; 20]))
    }
}

/// Operation in progress.
pub(super) struct Job {
    pub(super) key: RemoteKey,
    pub(super) operation: Operation,
    pub(super) origin: Origin,
}

impl RemoteOperation for Job {
    fn request(&self, id: u32) -> Request<'_> {
        let (opcode, payload) = opcode::from_operation(&self.operation);
        let Origin { sni, client, server } = &self.origin;
        let hints = Hints { sni: sni.as_deref(), client: *client, server: *server };
        Request { id, key: self.key.name, opcode, payload, hints }
    }

    fn is_secret(&self) -> bool {
        matches!(self.operation, Operation::Decrypt { .. })
    }

    /// A result is accepted only if the public key confirms it.
    fn accepts(&self, result: &[u8]) -> bool {
        self.operation.verify(&self.key.public, result)
    }
}
