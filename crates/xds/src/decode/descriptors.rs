//! Envoy's messages, embedded.

use crate::resource_type::TYPE_PREFIX;
use prost_reflect::{DescriptorPool, MessageDescriptor};
use std::sync::LazyLock;

/// Envoy's messages, those that a gateway can use.
pub fn descriptors() -> &'static DescriptorPool {
    &DESCRIPTORS
}

/// The type of a URL, if it is known.
pub(super) fn message_of(url: &str) -> Option<MessageDescriptor> {
    descriptors().get_message_by_name(url.strip_prefix(TYPE_PREFIX)?)
}

/// Made by `admin/descriptors`, which says how.
static DESCRIPTORS: LazyLock<DescriptorPool> = LazyLock::new(|| {
    const EMBEDDED: &[u8] = include_bytes!("envoy.descriptors");
    let plain = miniz_oxide::inflate::decompress_to_vec_with_limit(EMBEDDED, 16 << 20);
    let plain = plain.expect("the embedded descriptors were compressed by our own tool");
    DescriptorPool::decode(plain.as_slice()).expect("the embedded descriptors were written by our own tool")
});
