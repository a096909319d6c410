//! How far control planes are trusted.

use std::{path::PathBuf, sync::Arc};

/// What control planes may ask for, and what becomes of what they ask for in vain.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Below which they may name files: certificates and keys that are here already.
    pub directories: Arc<[PathBuf]>,
    /// What becomes of a listener whose rules about who is let in cannot be served.
    pub on_refused_policy: OnRefusedPolicy,
    /// What `/ready` says of what was refused.
    pub refusals_in_ready: RefusalsInReady,
}

/// What becomes of a listener that is to let in others than before, in a way that cannot be served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnRefusedPolicy {
    /// It is closed: whoever may no longer be let in is not.
    #[default]
    Close,
    /// It goes on as it is, as with everything else that is refused.
    Keep,
}

/// What `/ready` says of what was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefusalsInReady {
    /// What it is, a line each; the status is as it would be otherwise.
    #[default]
    Say,
    /// The same, with 503 for as long as something is closed for what was refused.
    Fail,
    /// Nothing.
    Hide,
}
