//! What a client's session must know of an operation.

use crate::wire::Request;
use std::sync::Arc;

/// A private-key operation that a server is asked for.
pub trait RemoteOperation {
    /// The request, under this id.
    fn request(&self, id: u32) -> Request<'_>;
    /// Whether the result is secret, as a decrypted premaster secret is: the memory that it passes through is wiped.
    fn is_secret(&self) -> bool;
    /// Whether the result is right. A session ends with the first that is not.
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
