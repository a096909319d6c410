//! The admin endpoint: dashboard, metrics, health, and the active configuration.
//!
//! - `server`: the socket and its limits; `host_check`: accepted hosts; `pages`: contents.
//! - `dashboard`: JavaScript modules of the dashboard, embedded in the binary.

mod dashboard;
mod host_check;
mod pages;
mod server;

pub(crate) use pages::Admin;
pub use pages::{AdminPages, AdminView, Page};
pub(crate) use server::AdminEndpoint;
