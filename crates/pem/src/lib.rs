//! PEM files (RFC 7468) with several blocks. A damaged block is an error with its line, wherever it is in the file: a
//! list that ends at the first damage would be accepted without the rest.
//!
//! - `block`: the blocks of a text; `certificates`, `revocation`: certificates and certificate revocation lists.

mod block;
mod certificates;
mod revocation;

pub use block::{Block, Damage, blocks};
pub use certificates::{certificates, has_issuer_url, may_sign, read_certificates, unix_time};
pub use revocation::{RevocationLists, common_name};
