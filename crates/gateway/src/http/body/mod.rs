//! Request bodies: as received from the client, buffered for another attempt, and copied for mirrors.
//!
//! - `client_body`: the body as received, with its timeouts and limits.
//! - `read_ahead`: its beginning, for steps that inspect it before the request is forwarded.
//! - `replay`: its beginning, kept for a retry; `mirrored_body`: the copy for a mirror.

pub(super) mod client_body;
pub(super) mod mirrored_body;
pub(super) mod read_ahead;
pub(super) mod replay;
