//! Drafts of configurations that are made from the settings of other servers, with an outcome for each setting.
//!
//! ```text
//!  settings ──> Draft (listeners, routes, upstreams) ── yaml::document ──> text that the configuration's reader accepts
//!      └──────> Ledger: each setting is converted, differs, or is not converted
//! ```
//!
//! The converters of files and the translation of Kubernetes objects share it. [`expression`], [`variables`] and
//! [`target`] express what nginx writes: regular expressions, variables, and targets of redirects.

#![warn(missing_docs)]

pub mod draft;
pub mod expression;
pub mod ledger;
pub mod target;
pub mod tls_lists;
pub mod values;
pub mod variables;
pub mod yaml;
