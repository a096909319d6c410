//! Decodes protobuf resources to trees with the field names of the .proto files.
//!
//! The tree equals that of the same resource in YAML: numbers and durations are text (`0.010s`), bytes are base64, an
//! enum's value is its name, an `Any` is a mapping with `@type`. A type without a descriptor stays opaque, `{"@type":
//! ..., "value": base64}`. Fields without a descriptor are omitted and listed in [`Decoded::unknown`].
//!
//! Decoding is stricter than protobuf in one respect: a singular field may occur only once. No serialiser writes it
//! twice, and two parsers could disagree about which occurrence counts.
//!
//! Text and bytes are wiped when the tree is dropped. Buffers of the gRPC library are not wiped ([`crate::proto`]).

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

/// A decoded resource.
#[derive(Debug)]
pub struct Decoded {
    /// A mapping; its first entry is `@type`.
    pub tree: Node,
    /// Paths of fields without a descriptor, `filter_chains[0].transport_socket: field 99`; the first few.
    pub unknown: Vec<String>,
}

/// Decodes a resource.
///
/// # Errors
/// Fails if the resource does not match its type URL, is too large, or has an unknown type.
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
