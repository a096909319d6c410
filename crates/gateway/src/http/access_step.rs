//! What is asked about a request before it is routed, ready to be asked.

use super::jwt::Authentication;
use quadrille_config::{
    Diagnostic,
    model::{AccessRules, AccessStep},
};

/// A step, ready to be asked.
pub(crate) enum Step {
    Rules(AccessRules),
    Jwt(Authentication),
}

impl Step {
    /// Makes a step of what the configuration says.
    ///
    /// # Errors
    /// Says what of it cannot be had.
    pub(crate) fn new(model: &AccessStep, warnings: &mut Vec<String>) -> Result<Self, Diagnostic> {
        match model {
            AccessStep::Rules(rules) => Ok(Self::Rules(rules.clone())),
            AccessStep::Jwt(model) => Authentication::new(model, warnings).map(Self::Jwt),
        }
    }
}
