//! Limits on trust in control planes.

use std::{path::PathBuf, sync::Arc};

/// Permissions of control planes, and the handling of rejected resources.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Directories below which control planes may reference files, for certificates and keys on this machine.
    pub directories: Arc<[PathBuf]>,
    /// Handling of a listener whose access rules cannot be enforced.
    pub on_refused_policy: OnRefusedPolicy,
    /// Whether and how `/ready` reports rejected resources.
    pub refusals_in_ready: RefusalsInReady,
}

/// Handling of an active listener whose new access rules cannot be enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRefusedPolicy {
    /// Closes the listener, so that a client that the new rules may exclude is not allowed.
    #[default]
    Close,
    /// Keeps the active version, as for every other rejection.
    Keep,
}

/// Whether and how `/ready` reports rejected resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefusalsInReady {
    /// Lists them, one per line; the status code is not affected.
    #[default]
    Say,
    /// Lists them, with status 503 while a resource is closed because of a rejection.
    Fail,
    /// Does not report them.
    Hide,
}
