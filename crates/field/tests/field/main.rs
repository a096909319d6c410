//! Black-box tests of field encryption: envelopes, key rings, blind indexes, the legacy format.

mod envelopes;
mod files;
mod legacy;
mod mcrypt;
mod rings;
mod text;
