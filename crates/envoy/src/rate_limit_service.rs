//! The rate limit filter with an external service.

use crate::{
    common::time_limit,
    descriptor::{descriptors_of_filter, host_descriptors, read_stage},
    fraction::runtime_fraction,
    grpc_service::envoy_grpc,
    header_changes::additions,
    reader::{Field, Message, ReadMessage},
    schema,
    status_code::status_code,
    values::enumeration,
};
use quadrille_config::{
    Problem, fraction,
    model::{Descriptor, RateLimitService, RateLimitedClients, RouteRateLimitService},
};
use std::time::Duration;

/// Envoy's default timeout.
const TIMEOUT: Duration = Duration::from_millis(20);
const STATUS: u16 = 429;
const STATUS_ON_ERROR: u16 = 500;

/// Reads `envoy.extensions.filters.http.ratelimit.v3.RateLimit` of the filter with this name. A disabled filter can
/// be enabled by routes.
pub(crate) fn rate_limit_service(field: &Field<'_>, filter: &str, on: bool) -> Option<RateLimitService> {
    const RFC: &[(&str, u32, bool)] = &[("OFF", 0, false), ("DRAFT_VERSION_03", 1, true)];
    let message = field.message(&schema::RATE_LIMIT_SERVICE)?;
    let (upstream, authority) = service(&message.require("rate_limit_service")?)?;
    let denied = if message.flag("failure_mode_deny") { fraction::ALL } else { 0 };
    let status = status(&message, "rate_limited_status", STATUS)?;
    let own = descriptors_of_filter(&message)?;
    if own.iter().any(Descriptor::tells_upstream) {
        return field.fail(Problem::new(
            "`destination_cluster` is refused within the filter: routes may name several clusters",
            "write it in the `rate_limits` of routes",
        ));
    }
    Some(RateLimitService {
        filter: filter.to_owned(),
        on,
        upstream,
        authority,
        timeout: time_limit(&message, TIMEOUT)?,
        domain: message.require("domain")?.text()?.to_owned(),
        stage: message.get("stage").map_or(Some(0), |stage| stage.parse(read_stage))?,
        descriptors: own,
        clients: message
            .get("request_type")
            .map_or(Some(RateLimitedClients::All), |kind| kind.parse(clients))?,
        asked: part(&message, "filter_enabled", fraction::ALL)?,
        enforced: part(&message, "filter_enforced", fraction::ALL)?,
        denied_on_failure: part(&message, "failure_mode_deny_percent", denied)?,
        // As in Envoy, a status that is not an error is replaced.
        status: if status < 400 { STATUS } else { status },
        status_on_error: self::status(&message, "status_on_error", STATUS_ON_ERROR)?,
        resource_exhausted: message.flag("rate_limited_as_resource_exhausted"),
        response_headers: additions(&message, "response_headers_to_add")?,
        tells_limited: !message.flag("disable_x_envoy_ratelimited_header"),
        tells_left: match message.get("enable_x_ratelimit_headers") {
            Some(version) => version.parse(enumeration(RFC))?,
            None => false,
        },
        place: field.place(),
    })
}

/// Reads `envoy.config.ratelimit.v3.RateLimitServiceConfig`: the cluster, and its authority.
fn service(field: &Field<'_>) -> Option<(String, String)> {
    const V3: &[(&str, u32, ())] = &[("V3", 2, ()), ("AUTO", 0, ())];
    let message = field.message(&schema::RATE_LIMIT_SERVICE_CONFIG)?;
    if let Some(version) = message.get("transport_api_version") {
        version.parse(enumeration(V3))?;
    }
    let service = message.require("grpc_service")?;
    envoy_grpc(&service.message(&schema::RATE_LIMIT_GRPC_SERVICE)?)
}

fn status(message: &Message<'_>, name: &'static str, preset: u16) -> Option<u16> {
    message.get(name).map_or(Some(preset), |status| status_code(&status))
}

fn part(message: &Message<'_>, name: &'static str, preset: u32) -> Option<u32> {
    message.get(name).map_or(Some(preset), |fraction| runtime_fraction(&fraction))
}

fn clients(text: &str) -> Result<RateLimitedClients, Problem> {
    match text {
        "internal" => Ok(RateLimitedClients::Internal),
        "external" => Ok(RateLimitedClients::External),
        "both" | "" => Ok(RateLimitedClients::All),
        _ => Err(Problem::new(
            format!("{} is not a request type", quadrille_config::quote(text)),
            "write `internal`, `external` or `both`",
        )),
    }
}

/// Reads `envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute`.
pub(crate) fn on_route(field: &Field<'_>) -> Option<RouteRateLimitService> {
    let message = field.message(&schema::RATE_LIMIT_PER_ROUTE)?;
    let domain = message.string("domain");
    Some(RouteRateLimitService {
        domain: (!domain.is_empty()).then_some(domain),
        host: host_descriptors(&message)?,
        descriptors: descriptors_of_filter(&message)?,
    })
}
