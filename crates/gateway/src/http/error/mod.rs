//! Errors as clients receive them: pages, gRPC statuses, and refusals with their reasons.
//!
//! - `refusal`: a rejected request, and the response to it.
//! - `error_page`: bodies of local errors; `error_pages`: replacements from the configuration.
//! - `grpc_error`: the gRPC status that replaces a page for gRPC clients.

pub(super) mod error_page;
pub(super) mod error_pages;
pub(super) mod grpc_error;
pub(super) mod refusal;
