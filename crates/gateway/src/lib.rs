//! The Quadrille gateway.

pub mod model;
