//! The admin endpoint: the dashboard, metrics, health, and the configuration in force.

mod dashboard;
mod server;

pub(crate) use server::Admin;
pub use server::{AdminPages, AdminView, Page};
