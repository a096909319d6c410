//! Whether two values are the same, as a number that can be kept in their place.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

/// The same for equal values, for as long as this process runs. It tells configurations apart, and keeps no enemy out.
pub(crate) fn digest(value: &(impl Hash + ?Sized)) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}
