//! The admin endpoint: dashboard, metrics, health, and the active configuration.
//!
//! - `server`: the socket and its limits; `host_check`: accepted hosts; `pages`: contents; `actions`: what `POST`
//!   requests change.
//! - `dashboard`: JavaScript modules of the dashboard, embedded in the binary.

mod actions;
mod dashboard;
mod host_check;
mod pages;
mod server;

pub(crate) use actions::DrainEndpoint;
pub(crate) use pages::Admin;
pub use pages::{AdminPages, AdminView, Page};
pub(crate) use server::AdminEndpoint;
