//! X25519 (RFC 7748) for TLS handshakes: key pairs that were made ahead in lanes, and secrets in lanes with those of other
//! handshakes, or by AWS-LC. A program gets it by the property `quadrille.key_exchange=yes`, which openssl.cnf can prefer
//! for all of its handshakes.

mod exchange;
mod group;
mod key;
mod keymgmt;
mod turn;

pub(crate) use exchange::FUNCTIONS as EXCHANGE;
pub(crate) use group::capabilities;
pub(crate) use keymgmt::FUNCTIONS as KEYMGMT;
pub(crate) use turn::compute_turn;
