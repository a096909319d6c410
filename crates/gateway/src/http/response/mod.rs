//! Responses: local ones, the bodies and headers of upstream responses, compression, and tunnels.
//!
//! - `answer`: local responses; `local_reply` rewrites them, with an Envoy configuration.
//! - `body`, `compression`: bodies of upstream responses; `informational`: 1xx responses.
//! - `epilogue`: the last changes to the header of every response.
//! - `outcome`: the result of a request, a response or a WebSocket `tunnel`.

pub(super) mod answer;
pub(super) mod body;
pub(super) mod compression;
pub(super) mod epilogue;
pub(super) mod informational;
pub(super) mod local_reply;
pub(super) mod outcome;
pub(super) mod tunnel;
