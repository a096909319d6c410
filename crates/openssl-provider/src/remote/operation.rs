//! An operation that a key server is asked for.

use quadrille_engine::Operation;
use quadrille_keyless::{
    session::RemoteOperation,
    wire::{Hints, KeyName, Request, Ski, opcode},
};

/// An operation with a key that is in key servers.
pub(super) struct KeyServerOperation {
    pub(super) ski: Ski,
    pub(super) operation: Operation,
}

impl RemoteOperation for KeyServerOperation {
    fn request(&self, id: u32) -> Request<'_> {
        let (opcode, payload) = opcode::from_operation(&self.operation);
        Request { id, key: KeyName::from(self.ski), opcode, payload, hints: Hints::default() }
    }

    fn is_secret(&self) -> bool {
        matches!(self.operation, Operation::Decrypt { .. })
    }

    /// The key server's engine has checked the result with the public key before it sent it, and it is on this machine and
    /// has the key anyway: to check it once more here would cost as much as the way there and back.
    fn accepts(&self, _result: &[u8]) -> bool {
        true
    }
}
