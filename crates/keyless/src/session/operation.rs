//! Interface between a client's session and an operation.

use crate::wire::Request;
use std::sync::Arc;

/// Private-key operation computed by a server.
pub trait RemoteOperation {
    /// Request of the operation, with this id.
    fn request(&self, id: u32) -> Request<'_>;
    /// Returns whether the result is secret, as a decrypted premaster secret is: its memory is then wiped.
    fn is_secret(&self) -> bool;
    /// Returns whether the result is right. A session ends with the first wrong result.
    fn accepts(&self, result: &[u8]) -> bool;
}

impl<O: RemoteOperation> RemoteOperation for Arc<O> {
    fn request(&self, id: u32) -> Request<'_> {
        (**self).request(id)
    }

    fn is_secret(&self) -> bool {
        (**self).is_secret()
    }

    fn accepts(&self, result: &[u8]) -> bool {
        (**self).accepts(result)
    }
}
