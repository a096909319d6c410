//! Rules on the request itself, which hold for all routes.

use super::{call::Call, rate_limits};
use crate::{
    host_map::lower_case,
    http::{
        error::refusal::Refusal,
        rate_limit::{Limiter, Limiters},
        request::request_view::RequestView,
        route::{
            header_changes::{self, Variables},
            rewrite,
        },
    },
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use quadrille_config::model::{
    Doubt, HeaderChange, Redirect, RequestMatch, RequestRule, Respond, RuleAction,
};
use std::sync::Arc;

/// A rule, ready for use.
pub(crate) struct Rule {
    model: RequestRule,
    limiters: Box<[Arc<Limiter>]>,
}

impl Rule {
    pub(super) fn new(model: &RequestRule, limiters: &Limiters) -> Self {
        let limiters = match &model.action {
            RuleAction::Limit(limits) => limiters.of(limits),
            _ => Box::default(),
        };
        Self { model: model.clone(), limiters }
    }
}

/// Applies the rules whose conditions hold, up to one that responds.
///
/// # Errors
/// Returns the response of a rule.
pub(super) fn check(rules: &[Rule], call: &mut Call<'_>) -> Result<(), Refusal> {
    for Rule { model, limiters } in rules {
        if !holds(&model.when, &call.view()) {
            continue;
        }
        match &model.action {
            RuleAction::Deny(status) => {
                let headers = &call.request().headers;
                return Err(Refusal::page("denied by a rule", *status, "", headers).counted_as("request"));
            }
            RuleAction::Respond(respond) => return Err(response(respond)),
            RuleAction::Redirect(to) => return Err(redirect(to, &model.when, &call.view())),
            RuleAction::Set(changes) => change(changes, call),
            RuleAction::Limit(_) => rate_limits::check(limiters, None, call.connection, call.request())?,
        }
    }
    Ok(())
}

fn response(respond: &Respond) -> Refusal {
    let refusal = Refusal::defined("response of a rule", respond.status, respond.body.clone());
    match HeaderValue::from_str(&respond.content_type) {
        Ok(value) if !respond.body.is_empty() => {
            refusal.with_headers(HeaderMap::from_iter([(header::CONTENT_TYPE, value)]))
        }
        _ => refusal,
    }
}

fn redirect(to: &Redirect, when: &RequestMatch, request: &RequestView<'_>) -> Refusal {
    let location = HeaderValue::try_from(rewrite::location(to, &when.path, request));
    let location = location.ok().map(|location| (header::LOCATION, location));
    Refusal::defined("redirect of a rule", to.status, Bytes::new())
        .with_headers(location.into_iter().collect())
}

fn change(changes: &[HeaderChange], call: &mut Call<'_>) {
    let mut headers = call.request().headers.clone();
    let values = Variables::new(call.request(), call.connection, "");
    header_changes::apply(&mut headers, false, changes, &values);
    let request = call.request_mut();
    request.headers = headers;
    request.owned_headers.extend(changes.iter().map(HeaderChange::name).cloned());
}

/// Returns whether all conditions hold.
pub(crate) fn holds(when: &RequestMatch, request: &RequestView<'_>) -> bool {
    request.has_method(&when.methods)
        && when.path.matches(request.path)
        && when.headers.iter().all(|header| request.header_holds(header, Doubt::Holds))
        && when.query.iter().all(|query| request.query_holds(query, Doubt::Holds))
        && when.cookies.iter().all(|cookie| request.cookie_holds(cookie, Doubt::Holds))
        && (when.hosts.is_empty() || {
            let host = lower_case(request.host(false));
            when.hosts.iter().any(|domain| domain.matches(&host))
        })
}
