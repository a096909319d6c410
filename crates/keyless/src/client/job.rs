//! An operation for key servers, and the key that it is for.

use crate::{
    session::RemoteOperation,
    wire::{Hints, KeyName, Request, Ski, modulus_digest, opcode},
};
use boring::error::ErrorStack;
use quadrille_engine::{KeyType, Operation, PublicKey};
use std::net::IpAddr;

/// A key whose private half is on key servers.
#[derive(Clone, Debug)]
pub struct RemoteKey {
    public: PublicKey,
    name: KeyName,
}

/// For whom an operation is, as far as key servers may want to know; sent in the compatible mode only.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The server name that the client has asked for.
    pub sni: Option<String>,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// The address that the client has connected to.
    pub server: Option<IpAddr>,
}

impl RemoteKey {
    /// The private half of a certificate's public key.
    ///
    /// # Errors
    /// If BoringSSL cannot encode the key.
    pub fn new(public: PublicKey) -> Result<Self, ErrorStack> {
        let name =
            KeyName { ski: Some(Ski::from_key(public.pkey())?), modulus: modulus_digest(public.pkey()) };
        Ok(Self { public, name })
    }

    /// What results are checked with.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Algorithm and size.
    pub fn key_type(&self) -> KeyType {
        self.public.key_type()
    }

    /// The identifier by which servers know the key.
    pub fn ski(&self) -> Ski {
        self.name.ski.unwrap_or(Ski([0; 20]))
    }
}

/// An operation on its way.
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

    /// No result is believed that the public key does not confirm.
    fn accepts(&self, result: &[u8]) -> bool {
        self.operation.verify(&self.key.public, result)
    }
}
