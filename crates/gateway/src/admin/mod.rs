//! The admin endpoint: dashboard, metrics, health, and the active configuration.
//!
//! - `endpoint`: its sockets; `server`: connections and their limits; `host_check`: accepted hosts; `peer`: users of
//!   the Unix socket.
//! - `page`, `pages`: contents; `actions`: what `POST` requests change.
//! - `dashboard`: JavaScript modules of the dashboard, embedded in the binary.

mod actions;
mod dashboard;
mod endpoint;
mod host_check;
mod page;
mod pages;
mod peer;
mod server;

pub(crate) use actions::{Actions, DrainEndpoint, ReloadResult};
pub(crate) use endpoint::AdminEndpoint;
pub use page::Page;
pub(crate) use pages::Admin;
pub use pages::{AdminPages, AdminView};
