//! Private keys of ML-DSA.
//!
//! - `form`: their three forms in PKCS #8 (RFC 9881 section 6).
//! - `private`: a key whose parts belong together.
//! - `library`: a key of AWS-LC, for CPUs without lanes.

mod form;
mod library;
mod private;

pub(crate) use form::{name, read};
pub(crate) use private::{MlDsaPrivate, parameter_set};
