//! Resources out of protobuf, as trees with the field names of the .proto files.
//!
//! The tree is what the same resource is in YAML: numbers and durations are text (`0.010s`), bytes are base64, an
//! enum's value is its name, an `Any` is a mapping with `@type`. A type that the descriptors do not have stays opaque,
//! `{"@type": ..., "value": base64}`. Fields that they do not have are left out and named in [`Decoded::unknown`].
//!
//! It is stricter than protobuf in one place: a field that cannot be a list stands there once. No serialiser writes it
//! twice, and two readers could disagree about which one counts.
//!
//! Text and bytes are wiped when the tree is dropped. What gRPC's library has buffered before is not
//! ([`crate::proto`]).

mod budget;
mod descriptors;
mod error;
mod message;
#[cfg(test)]
mod tests;
mod tree;
mod well_known;
mod wire;

pub use budget::Budget;
pub use descriptors::descriptors;
pub(crate) use error::shortened;
pub use error::{DecodeError, Fault};

use crate::proto::Any;
use quadrille_config::yaml::Node;

/// A resource, read.
#[derive(Debug)]
pub struct Decoded {
    /// A mapping; its first entry is `@type`.
    pub tree: Node,
    /// Paths of fields that the descriptors do not have, `filter_chains[0].transport_socket: field 99`; the first few.
    pub unknown: Vec<String>,
}

/// Reads a resource.
///
/// # Errors
/// If it is not what its type URL says, is too large, or has a type that is not known.
pub fn decode(any: &Any, budget: &mut Budget) -> Result<Decoded, DecodeError> {
    let Some(descriptor) = descriptors::message_of(&any.type_url) else {
        let fault = Fault::UnknownResource(shortened(&any.type_url));
        return Err(DecodeError { path: String::new(), fault });
    };
    let mut reader = message::Reader { budget, unknown: Vec::new(), path: Vec::new() };
    match reader.typed(&any.type_url, &descriptor, &any.value) {
        Ok(tree) => Ok(Decoded { tree, unknown: reader.unknown }),
        Err(fault) => Err(DecodeError { path: reader.path_text(), fault }),
    }
}
