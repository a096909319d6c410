//! X25519MLKEM768: a server encapsulates a secret for the client's key, and the client decapsulates it. The ML-KEM
//! part comes first in keys, ciphertexts and secrets (draft-ietf-tls-ecdhe-mlkem section 4).

mod kem;
mod key;

use super::keymgmt;

pub(crate) use kem::FUNCTIONS as KEM;
pub(super) use key::HybridKey;

pub(crate) static KEYMGMT: keymgmt::Table = keymgmt::table::<HybridKey>();
