//! Retry policies.

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
            if !on.add(condition, &statuses) {
                conditions.warn(
                    &format!("retry_on {condition}"),
                    format!("`{condition}` is not supported as a retry condition; the others apply"),
                );
            }
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
    Some(RetryPolicy { on, retries, per_try_timeout, idempotent_only: false, backoff: true })
}
