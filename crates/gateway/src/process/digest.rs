//! Digests to compare values for equality.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

/// Hashes a value; equal values have equal digests while this process runs. Not resistant to deliberate collisions.
pub(crate) fn digest(value: &(impl Hash + ?Sized)) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}
