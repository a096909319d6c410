//! Translation of Kubernetes' Ingress objects, with the annotations of ingress-nginx, to the gateway's configuration.
//!
//! ```text
//!  manifests ── object: Ingress, Service, Secret, ... ──> site: hosts with locations, as ingress-nginx claims paths
//!                                                          │
//!  annotation: one module for each family ──> location ──> listeners: routes, upstreams ──> YAML of `config`
//!       └── Ledger: each annotation works, differs, or does not work ──> Report
//! ```
//!
//! It opens no socket and needs no cluster; `quadrille-kubernetes-watch` gives it the objects of one. A setting that guards (passwords, source ranges, client certificates) and
//! cannot be expressed closes the paths of its object: they respond with 503. Every translation is read by the
//! configuration's own reader before it is returned.

#![warn(missing_docs)]

mod annotation;
mod backend;
mod class;
mod config_map;
mod gateway_api;
mod hosts;
mod listeners;
mod location;
mod notes;
mod object;
mod options;
mod reference;
mod report;
mod secret_reference;
mod selection;
mod site;
mod tls;
mod translation;
mod validity;
mod world;

pub use gateway_api::gateway_api;
pub use object::{Objects, SyntaxError, read};
pub use options::Options;
pub use reference::reference;
pub use report::{Entry, ObjectReport, Report, State};
pub use secret_reference::insert_secrets;
pub use translation::{Translation, translate};

#[cfg(test)]
mod tests;
