//! Resources out of protobuf, as trees with the field names of the .proto files.
//!
//! The tree is what the same resource is in YAML: numbers and durations are text (`0.010s`), bytes are base64, an enum's value is its
//! name, an `Any` is a mapping with `@type`. A type that the descriptors do not have stays opaque, `{"@type": ..., "value": base64}`.
//! Fields that they do not have are left out and named in [`Decoded::unknown`].
//!
//! It is stricter than protobuf in one place: a field that cannot be a list stands there once. No serialiser writes it twice,
//! and two readers could disagree about which one counts.
//!
//! Text and bytes are wiped when the tree is dropped. What gRPC's library has buffered before is not ([`crate::proto`]).

mod message;
#[cfg(test)]
mod tests;
mod well_known;
mod wire;

use crate::{Limits, proto::Any};
use prost_reflect::DescriptorPool;
use quadrille_config::yaml::Node;
use std::sync::LazyLock;

/// A resource, read.
#[derive(Debug)]
pub struct Decoded {
    /// A mapping; its first entry is `@type`.
    pub tree: Node,
    /// Paths of fields that the descriptors do not have, `filter_chains[0].transport_socket: field 99`; the first few.
    pub unknown: Vec<String>,
}

/// Why there is no tree, and where.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{fault}", .path, if .path.is_empty() { "" } else { ": " })]
pub struct DecodeError {
    /// Of the field, as in `virtual_hosts[3].routes[0].match`.
    pub path: String,
    /// What is wrong there.
    pub fault: Fault,
}

/// What can be wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The wire format is violated.
    #[error("not a protobuf message: {0}")]
    Malformed(&'static str),
    /// Lengths do not fit.
    #[error("not a protobuf message: it ends in the middle of a field")]
    CutShort,
    /// A field's wire type is not that of its declaration.
    #[error("its wire type is not that of the field {0}")]
    WrongType(String),
    /// Text that is not UTF-8.
    #[error("text that is not UTF-8")]
    NotUtf8,
    /// See the [module](self).
    #[error("given more than once")]
    Twice,
    /// A value that has no meaning, such as a duration with a billion nanoseconds.
    #[error("{0}")]
    Meaningless(&'static str),
    /// [`Limits::depth`].
    #[error("messages are nested too deeply")]
    TooDeep,
    /// [`Limits::nodes`].
    #[error("there is too much in one response")]
    TooLarge,
    /// The type URL is not a resource's.
    #[error("a resource of type {0} is not known")]
    UnknownResource(String),
}

/// What the trees of one response may still cost.
#[derive(Debug)]
pub struct Budget {
    nodes: usize,
    depth: usize,
}

impl Budget {
    /// All of it.
    pub fn new(limits: &Limits) -> Self {
        Self { nodes: limits.nodes, depth: limits.depth }
    }

    fn spend(&mut self, nodes: usize) -> Result<(), Fault> {
        self.nodes = self.nodes.checked_sub(nodes).ok_or(Fault::TooLarge)?;
        Ok(())
    }
}

/// Reads a resource.
///
/// # Errors
/// If it is not what its type URL says, is too large, or has a type that is not known.
pub fn decode(any: &Any, budget: &mut Budget) -> Result<Decoded, DecodeError> {
    let Some(descriptor) = well_known::message_of(&any.type_url) else {
        let fault = Fault::UnknownResource(shortened(&any.type_url));
        return Err(DecodeError { path: String::new(), fault });
    };
    let mut reader = message::Reader { budget, unknown: Vec::new(), path: Vec::new() };
    match reader.typed(&any.type_url, &descriptor, &any.value) {
        Ok(tree) => Ok(Decoded { tree, unknown: reader.unknown }),
        Err(fault) => Err(DecodeError { path: reader.path_text(), fault }),
    }
}

/// Envoy's messages, those that a gateway can use.
pub fn descriptors() -> &'static DescriptorPool {
    &DESCRIPTORS
}

/// Made by `admin/descriptors`, which says how.
static DESCRIPTORS: LazyLock<DescriptorPool> = LazyLock::new(|| {
    const EMBEDDED: &[u8] = include_bytes!("envoy.descriptors");
    let plain = miniz_oxide::inflate::decompress_to_vec_with_limit(EMBEDDED, 16 << 20);
    let plain = plain.expect("the embedded descriptors were compressed by our own tool");
    DescriptorPool::decode(plain.as_slice()).expect("the embedded descriptors were written by our own tool")
});

/// Type URLs and names of others, for messages.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}
