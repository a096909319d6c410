//! HTTP: pingora-proxy does the proxying, this decides where to and keeps the books.

mod app;
mod deadline;
mod forwarded;
mod headers;
mod incoming;
mod proxy;
mod request;
mod retry;
mod rewrite;
mod table;
#[cfg(test)]
mod table_tests;

pub(crate) use app::App;
pub(crate) use proxy::{Proxy, new_proxy};
pub(crate) use table::Routes;
