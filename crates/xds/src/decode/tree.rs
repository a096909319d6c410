//! Nodes of the trees that messages are decoded to.

use base64ct::{Base64, Encoding};
use quadrille_config::yaml::{Entry, Node, Position, Value};
use zeroize::Zeroizing;

/// Encodes in constant time, because the bytes may be a private key.
pub(super) fn base64(bytes: &[u8]) -> String {
    Base64::encode_string(bytes)
}

pub(super) fn number_of(number: impl std::fmt::Display) -> Node {
    scalar(number.to_string())
}

pub(super) fn text(text: &str) -> Node {
    scalar(text.to_owned())
}

pub(super) fn scalar(text: String) -> Node {
    bare(Value::Scalar(Zeroizing::new(text)))
}

pub(super) fn mapping(entries: Vec<Entry>) -> Node {
    bare(Value::Mapping(entries))
}

/// Creates a node without a source line.
pub(super) fn bare(value: Value) -> Node {
    Node { position: Position::NONE, value, plain: false }
}

pub(super) fn entry(key: &str, value: Node) -> Entry {
    Entry { key: key.to_owned(), position: Position::NONE, value }
}
