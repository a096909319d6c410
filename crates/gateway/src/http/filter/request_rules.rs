//! Rules on the request itself, which hold for all routes.

use super::call::Call;
use crate::http::{error::refusal::Refusal, request::request_view::RequestView};
use quadrille_config::model::{Doubt, RequestMatch, RequestRule, RuleAction};

/// Applies the first rule whose conditions hold.
///
/// # Errors
/// Returns the refusal if the rule denies the request.
pub(super) fn check(rules: &[RequestRule], call: &Call<'_>) -> Result<(), Refusal> {
    let view = call.view();
    match rules.iter().find(|rule| holds(&rule.when, &view)).map(|rule| rule.action) {
        Some(RuleAction::Deny(status)) => {
            Err(Refusal::page("denied by a rule", status, "", &call.request().headers).counted_as("request"))
        }
        None => Ok(()),
    }
}

fn holds(when: &RequestMatch, request: &RequestView<'_>) -> bool {
    (when.methods.is_empty() || when.methods.iter().any(|method| method.as_str() == request.method))
        && when.path.matches(request.path)
        && when.headers.iter().all(|header| request.header_holds(header, Doubt::Holds))
}
