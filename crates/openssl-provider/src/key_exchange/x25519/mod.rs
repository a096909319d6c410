//! X25519: a key pair, and the secret of one's own key and the peer's.

mod exchange;
mod key;

use super::keymgmt;

pub(crate) use exchange::FUNCTIONS as EXCHANGE;
pub(super) use key::X25519Key;

pub(crate) static KEYMGMT: keymgmt::Table = keymgmt::table::<X25519Key>();
