//! X25519: key pairs, and the shared secret of a private key and the peer's public key.

mod exchange;
mod key;

use super::keymgmt;

pub(crate) use exchange::FUNCTIONS as EXCHANGE;
pub(super) use key::X25519Key;

pub(crate) static KEYMGMT: keymgmt::Table = keymgmt::table::<X25519Key>();
