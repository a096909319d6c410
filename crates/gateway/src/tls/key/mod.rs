//! Private keys on key servers, and the overflow of operations that would wait too long on this machine.
//!
//! - `remote_key`: keys on key servers, with one pool for each set of key servers.
//! - `key_overflow`: operations that would be queued too long here; `overflow_policy`: the decision, which is pure.

pub(super) mod key_overflow;
pub(super) mod overflow_policy;
pub(crate) mod remote_key;
