//! HTTP inside TLS: pingora-proxy does the proxying, this decides where to and keeps the books.

mod app;
mod forwarded;
mod proxy;
mod route;

pub(crate) use app::App;
pub(crate) use proxy::{Proxy, new_proxy};
pub(crate) use route::Routes;
