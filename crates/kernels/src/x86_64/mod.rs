//! The instruction sets of x86-64. The kernels are assembly that `build.rs` generates; this is their safe
//! wrapping.

pub(crate) mod ifma;
