//! An operation for a key server.

use crate::process::PerProcess;
use boring::{error::ErrorStack, pkey::PKey};
use quadrille_engine::{Operation, PublicKey};
use quadrille_keyless::{
    session::RemoteOperation,
    wire::{Hints, KeyName, Request, Ski, opcode},
};
use std::sync::Arc;

/// An operation with a key that key servers hold.
pub(super) struct KeyServerOperation {
    pub(super) ski: Ski,
    pub(super) operation: Operation,
    pub(super) verification_key: Arc<VerificationKey>,
}

/// Public half with which results are verified. Each process that uses it has its own copy inside BoringSSL, with its
/// own locks.
pub(super) struct VerificationKey {
    der: Vec<u8>,
    ready: PerProcess<Option<PublicKey>>,
}

impl VerificationKey {
    pub(super) fn new(public: &PublicKey) -> Result<Self, ErrorStack> {
        Ok(Self { der: public.pkey().public_key_to_der()?, ready: PerProcess::new() })
    }

    fn confirms(&self, operation: &Operation, result: &[u8]) -> bool {
        let parse = || PublicKey::from_pkey(PKey::public_key_from_der(&self.der).ok()?).ok();
        self.ready.get(parse).as_ref().is_some_and(|key| operation.verify(key, result))
    }
}

impl RemoteOperation for KeyServerOperation {
    fn request(&self, id: u32) -> Request<'_> {
        let (opcode, payload) = opcode::from_operation(&self.operation);
        Request { id, key: KeyName::from(self.ski), opcode, payload, hints: Hints::default() }
    }

    fn is_secret(&self) -> bool {
        matches!(self.operation, Operation::Decrypt { .. })
    }

    /// Verifies a result with the public key; key servers are not trusted.
    fn accepts(&self, result: &[u8]) -> bool {
        self.verification_key.confirms(&self.operation, result)
    }
}
