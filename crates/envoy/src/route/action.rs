//! Route actions.

use super::{
    redirect::{direct_response, prefix_rewrite, redirect, regex_rewrite},
    retry,
};
use crate::{
    common::duration,
    hash_policy::hash_policies,
    header_changes::{Changes, Order},
    mirror::mirrors,
    per_route::{PerRoute, per_route},
    reader::{Field, Message, ReadMessage},
    schema,
    upgrades::upgrades,
    values::{enumeration, number},
};
use quadrille_config::{
    Problem,
    model::{
        Action, AttemptCounts, Descriptor, Forward, HostRewrite, Mirror, PathMatch, RetryPolicy, Weighted,
    },
};
use std::{num::NonZeroU32, time::Duration};

/// Envoy's default timeout.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Settings that a route inherits from its virtual host and its route configuration.
pub(super) struct Inherited<'a> {
    /// Header mutations of its virtual host and of the route configuration.
    pub(super) changes: [&'a Changes; 2],
    /// Filter settings of both.
    pub(super) filters: &'a PerRoute,
    /// Descriptors of its virtual host.
    pub(super) descriptors: &'a [Descriptor],
    pub(super) order: Order,
    pub(super) retry: Option<&'a RetryPolicy>,
    /// Mirrors of its virtual host, or else of the route configuration.
    pub(super) mirrors: &'a [Mirror],
    /// Attempt counts of its virtual host.
    pub(super) attempts: AttemptCounts,
    /// Maximum size of a direct response, in bytes.
    pub(super) largest_body: usize,
}

pub(super) fn action(message: &Message<'_>, path: &PathMatch, inherited: &Inherited<'_>) -> Option<Action> {
    match message.one_of(&["route", "redirect", "direct_response"]) {
        Some(("route", field)) => forward(&field, path, inherited).map(|to| Action::Forward(Box::new(to))),
        Some(("redirect", field)) => redirect(&field, path).map(|to| Action::Redirect(Box::new(to))),
        Some((_, field)) => direct_response(&field, inherited.largest_body).map(Action::Respond),
        None => message
            .field()
            .fail(Problem::new("no action is set", "write `route`, `redirect` or `direct_response`")),
    }
}

fn forward(field: &Field<'_>, path: &PathMatch, inherited: &Inherited<'_>) -> Option<Forward> {
    let message = field.message(&schema::ROUTE_ACTION)?;
    let to = match message.one_of(&["cluster", "weighted_clusters"]) {
        Some(("cluster", cluster)) => vec![Weighted::all(cluster.text()?)],
        Some((_, clusters)) => weighted(&clusters)?,
        None => return field.fail("`cluster` is missing"),
    };
    if let Some(code) = message.get("cluster_not_found_response_code") {
        const CODES: &[(&str, u32, ())] = &[("SERVICE_UNAVAILABLE", 0, ())];
        code.parse(enumeration(CODES))?;
    }
    let rewrite = match message.one_of(&["prefix_rewrite", "regex_rewrite"]) {
        Some(("prefix_rewrite", prefix)) => match prefix.text()? {
            "" => None,
            _ => Some(prefix_rewrite(&prefix, path)?),
        },
        Some((_, regex)) => Some(regex_rewrite(&regex)?),
        None => None,
    };
    let retry = match message.get("retry_policy") {
        Some(policy) => Some(retry::policy(&policy)?),
        None => inherited.retry.cloned(),
    };
    Some(Forward {
        to,
        rewrite,
        host: host(&message)?,
        timeout: timeout(&message)?,
        idle: message.duration("idle_timeout").filter(|time| !time.is_zero()),
        retry,
        hash: hash_policies(&message)?,
        mirrors: mirrors(&message)?.unwrap_or_else(|| inherited.mirrors.to_vec()),
        request_trailers: false,
        attempts: inherited.attempts,
        upgrades: upgrades(&message, &schema::ROUTE_UPGRADE)?,
    })
}

fn host(message: &Message<'_>) -> Option<Option<HostRewrite>> {
    match message.one_of(&["host_rewrite_literal", "auto_host_rewrite", "host_rewrite_header"]) {
        Some(("host_rewrite_literal", host)) => Some(Some(HostRewrite::Literal(host.text()?.to_owned()))),
        Some(("auto_host_rewrite", _)) => {
            Some(message.flag("auto_host_rewrite").then_some(HostRewrite::Server))
        }
        Some((_, header)) => Some(Some(HostRewrite::Header(header.text()?.to_ascii_lowercase()))),
        None => Some(None),
    }
}

/// Returns the shorter of the two limits on a whole request; zero is unlimited.
fn timeout(message: &Message<'_>) -> Option<Option<Duration>> {
    let limit = match message.get("timeout") {
        Some(field) => duration(&field)?,
        None => TIMEOUT,
    };
    let stream = match message.get("max_stream_duration") {
        Some(field) => {
            let message = field.message(&schema::MAX_STREAM_DURATION)?;
            match message.get("max_stream_duration") {
                Some(field) => duration(&field)?,
                None => Duration::ZERO,
            }
        }
        None => Duration::ZERO,
    };
    Some([limit, stream].into_iter().filter(|time| !time.is_zero()).min())
}

fn weighted(field: &Field<'_>) -> Option<Vec<Weighted>> {
    let message = field.message(&schema::WEIGHTED_CLUSTER)?;
    let mut to = Vec::new();
    let mut sum = 0u64;
    for item in message.list("clusters") {
        let cluster = item.message(&schema::CLUSTER_WEIGHT)?;
        let filters = per_route(&cluster)?;
        if filters.limits() {
            return item.fail(Problem::new(
                "refused: a limit applies to all clusters of a route, and ignoring it would lift it",
                "set it on the route",
            ));
        }
        if !filters.is_empty() {
            item.warn("typed_per_filter_config", "ignored: settings apply to all clusters of a route");
        }
        let name = cluster.require("name")?.text()?.to_owned();
        let weight = match cluster.get("weight") {
            Some(weight) => weight.parse(number)?,
            None => 0,
        };
        sum += u64::from(weight);
        let changes = Changes::read(&cluster)?;
        if let Some(weight) = NonZeroU32::new(weight) {
            to.push(Weighted {
                weight,
                request_headers: changes.request,
                response_headers: changes.response,
                ..Weighted::all(name)
            });
        }
    }
    if to.is_empty() {
        return field.fail("all weights are zero, so requests cannot be forwarded");
    }
    if let Some(total) = message.get("total_weight") {
        let written = u64::from(total.parse(number)?);
        if written != 0 && written != sum {
            return total.fail(format!("the sum of the weights is {sum}"));
        }
    }
    Some(to)
}
