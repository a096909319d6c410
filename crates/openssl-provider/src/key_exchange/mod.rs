//! Key exchange for TLS handshakes: X25519 (RFC 7748), and X25519MLKEM768 (draft-ietf-tls-ecdhe-mlkem) also for
//! OpenSSL before 3.5, which lacks it. Key pairs are generated ahead in lanes; operations of several handshakes are
//! computed together in lanes, or by AWS-LC. A program selects it with the property `quadrille.key_exchange=yes`,
//! which openssl.cnf can prefer for all handshakes.

mod group;
mod group_key;
mod hybrid;
mod keymgmt;
mod turn;
mod x25519;

pub(crate) use group::capabilities;
pub(crate) use hybrid::{KEM as HYBRID_KEM, KEYMGMT as HYBRID_KEYMGMT};
pub(crate) use turn::compute_turn;
pub(crate) use x25519::{EXCHANGE as X25519_EXCHANGE, KEYMGMT as X25519_KEYMGMT};
