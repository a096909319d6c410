//! HTTP: pingora-proxy does the proxying; this decides where to, and does the accounting.

mod app;
mod deadline;
mod filter_chain;
mod forwarded_headers;
mod header_changes;
mod proxy;
mod request;
mod request_view;
mod retry;
mod rewrite;
mod router;
#[cfg(test)]
mod router_tests;

pub(crate) use app::App;
pub(crate) use filter_chain::{HttpConnection, HttpFilterChain, HttpSettings};
pub(crate) use proxy::{Proxy, new_proxy};
pub(crate) use router::Router;
