//! Callbacks of a handshake: certificate selection, private-key operations, key exchange, client authentication.
//!
//! - `before_selection`: asynchronous work before a certificate is selected; `selection`: the choice, and
//!   admission.
//! - `key_method`, `key_exchange`: the bridges to the engine; `client_disconnect`: clients that disconnect
//!   meanwhile.
//! - `credential`: certificates of clients that request a trust anchor.
//! - `client_authentication`: checks of client certificates; `early_data`: 0-RTT.
//! - `alert`: the end of a handshake; `acme_challenge`: handshakes by which a certificate authority validates a name.

pub(crate) mod acme_challenge;
pub(crate) mod alert;
pub(super) mod before_selection;
pub(super) mod client_authentication;
pub(super) mod client_disconnect;
pub(super) mod credential;
pub(crate) mod early_data;
pub(crate) mod key_exchange;
pub(super) mod key_method;
pub(super) mod selection;
