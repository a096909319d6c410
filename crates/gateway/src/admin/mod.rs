//! The admin endpoint: the dashboard, metrics, health, and the configuration in force.

mod dashboard;
mod host_check;
mod pages;
mod server;

pub(crate) use pages::Admin;
pub use pages::{AdminPages, AdminView, Page};
pub(crate) use server::AdminEndpoint;
