//! Which failures are tried again.

use crate::{
    common::duration,
    reader::{Field, ReadMessage},
    schema,
    values::number,
};
use quadrille_config::model::{RetryOn, RetryPolicy};

pub(super) fn policy(field: &Field<'_>) -> Option<RetryPolicy> {
    let message = field.message(&schema::RETRY_POLICY)?;
    let statuses = message.list("retriable_status_codes");
    let status = |field: &Field<'_>| {
        field.parse(|text| number(text).map(|code| u16::try_from(code).unwrap_or(u16::MAX)))
    };
    let statuses = statuses.iter().map(status).collect::<Option<Vec<_>>>()?;
    let mut on = RetryOn::default();
    if let Some(conditions) = message.get("retry_on") {
        for condition in
            conditions.text()?.split(',').map(str::trim).filter(|condition| !condition.is_empty())
        {
            read(condition, &mut on, &statuses, &conditions);
        }
    }
    let per_try_timeout = match message.get("per_try_timeout") {
        Some(field) => Some(duration(&field)?).filter(|time| !time.is_zero()),
        None => None,
    };
    let retries = match message.get("num_retries") {
        Some(field) => field.parse(number)?,
        None => 1,
    };
    Some(RetryPolicy { on, retries, per_try_timeout, idempotent_only: false })
}

fn read(condition: &str, on: &mut RetryOn, statuses: &[u16], field: &Field<'_>) {
    let no_answer = |on: &mut RetryOn| {
        on.reset = true;
        on.connect_failure = true;
        on.refused_stream = true;
    };
    match condition {
        "5xx" => {
            on.server_error = true;
            no_answer(on);
        }
        "gateway-error" => {
            on.gateway_error = true;
            no_answer(on);
        }
        "reset" => no_answer(on),
        "connect-failure" | "reset-before-request" => on.connect_failure = true,
        "refused-stream" => on.refused_stream = true,
        "retriable-4xx" => on.conflict = true,
        "retriable-status-codes" => on.statuses.extend(statuses),
        // Istio writes statuses among the conditions.
        _ if condition.parse::<u16>().is_ok() => on.statuses.extend(condition.parse::<u16>()),
        _ => field.warn(
            &format!("retry_on {condition}"),
            format!("`{condition}` is no failure that is seen here; the other conditions hold"),
        ),
    }
}
