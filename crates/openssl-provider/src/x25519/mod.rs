//! X25519 (RFC 7748) for TLS handshakes: key pairs that were made ahead in lanes, and secrets by AWS-LC. A program gets
//! it by the property `quadrille.key_exchange=yes`, which openssl.cnf can prefer for all of its handshakes.
//!
//! Nothing waits here: a second pause of a handshake's job costs more than lanes would save
//! (docs/decisions/openssl-provider.md).

mod exchange;
mod group;
mod key;
mod keymgmt;

pub(crate) use exchange::FUNCTIONS as EXCHANGE;
pub(crate) use group::capabilities;
pub(crate) use keymgmt::FUNCTIONS as KEYMGMT;
