//! The Quadrille gateway.

pub mod config;
pub mod model;
