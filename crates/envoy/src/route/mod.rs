//! Route configurations: virtual hosts with their routes in order.

mod action;
mod closed;
mod domains;
mod redirect;
mod retry;

use crate::{
    descriptor::descriptors,
    header_changes::{Changes, Order},
    mirror::mirrors,
    per_route::{PerRoute, per_route},
    reader::{Field, Message, ReadMessage},
    request_condition::{header_matchers, path_match, query_matchers},
    schema,
    tracing::route_tracing,
    values::enumeration,
};
use ::http::HeaderName;
use action::Inherited;
use closed::{closed_host, closed_route, read_or_close};
use domains::domains;
use quadrille_config::{
    Problem,
    model::{
        Action, AttemptCounts, Descriptor, Domain, Mirror, Route, RouteDescriptors, RouteTable, VirtualHost,
    },
};
use std::{collections::HashMap, sync::Arc};

/// `envoy.config.route.v3.RouteConfiguration`.
#[derive(Clone, Debug)]
pub struct RouteConfiguration {
    pub(crate) table: Arc<RouteTable>,
}

/// Envoy's default for direct responses, in bytes.
const LARGEST_BODY: usize = 4096;

/// Reads a route configuration, with its name.
pub(crate) fn route_configuration(field: &Field<'_>) -> Option<(String, RouteConfiguration)> {
    let message = field.message(&schema::ROUTE_CONFIGURATION)?;
    let filters = per_route(&message)?;
    let changes = Changes::read(&message)?;
    let order = if message.flag("most_specific_header_mutations_wins") {
        Order::SpecificLast
    } else {
        Order::SpecificFirst
    };
    let largest_body = message.number("max_direct_response_body_size_bytes");
    let largest_body = largest_body.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(LARGEST_BODY);
    let copied = mirrors(&message)?.unwrap_or_default();
    let above = Above { changes: &changes, filters: &filters, mirrors: &copied, order, largest_body };
    let mut good = true;
    let mut hosts = Vec::new();
    let mut known = HashMap::new();
    for item in message.list("virtual_hosts") {
        match read_or_close(&item, || virtual_host(&item, &above), closed_host) {
            Some(host) => {
                good &= unique(&item, &host, &mut known);
                hosts.push(host);
            }
            None => good = false,
        }
    }
    let name = message.string("name");
    let table = RouteTable {
        name: name.clone(),
        hosts,
        fall_through: false,
        unreachable_is_503: true,
        match_port: !message.flag("ignore_port_in_host_matching"),
        internal_headers: internal_headers(&message)?,
    };
    good.then(|| (name, RouteConfiguration { table: Arc::new(table) }))
}

/// Reads the headers that are removed from external clients' requests.
fn internal_headers(message: &Message<'_>) -> Option<Vec<HeaderName>> {
    let names = message.list("internal_only_headers");
    names
        .iter()
        .map(|field| match HeaderName::try_from(field.text()?) {
            Ok(name) => Some(name),
            Err(_) => field.fail("not a header name"),
        })
        .collect()
}

/// Reports domains that another virtual host already has.
fn unique(field: &Field<'_>, host: &VirtualHost, known: &mut HashMap<Domain, String>) -> bool {
    let mut good = true;
    for domain in &host.domains {
        if let Some(first) = known.insert(domain.clone(), host.name.clone()) {
            field.error(Problem::new(
                format!("the domain `{domain}` already belongs to `{first}`"),
                "a request can match only one of them",
            ));
            good = false;
        }
    }
    good
}

/// Settings that virtual hosts inherit from their route configuration.
struct Above<'a> {
    changes: &'a Changes,
    filters: &'a PerRoute,
    mirrors: &'a [Mirror],
    order: Order,
    largest_body: usize,
}

fn virtual_host(field: &Field<'_>, above: &Above<'_>) -> Option<VirtualHost> {
    const TLS: &[(&str, u32, bool)] = &[("NONE", 0, false), ("EXTERNAL_ONLY", 1, true), ("ALL", 2, true)];
    let message = field.message(&schema::VIRTUAL_HOST)?;
    let filters = per_route(&message)?.or(above.filters);
    let changes = Changes::read(&message)?;
    let domains = domains(&message)?;
    let counted = descriptors(&message)?;
    let retry = match message.get("retry_policy") {
        Some(policy) => Some(retry::policy(&policy)?),
        None => None,
    };
    let own = mirrors(&message)?;
    let require_tls = match message.get("require_tls") {
        Some(kind) => kind.parse(enumeration(TLS))?,
        None => false,
    };
    let inherited = Inherited {
        changes: [&changes, above.changes],
        filters: &filters,
        descriptors: &counted,
        order: above.order,
        retry: retry.as_ref(),
        mirrors: own.as_deref().unwrap_or(above.mirrors),
        attempts: AttemptCounts {
            in_requests: message.flag("include_request_attempt_count"),
            in_responses: message.flag("include_attempt_count_in_response"),
        },
        largest_body: above.largest_body,
    };
    let mut good = true;
    let mut routes = Vec::new();
    for item in message.list("routes") {
        match read_or_close(&item, || route(&item, &inherited), closed_route) {
            Some(route) => routes.push(route),
            None => good = false,
        }
    }
    good.then(|| VirtualHost {
        name: message.string("name"),
        require_tls,
        ..VirtualHost::new(domains, routes, field.place())
    })
}

fn route(field: &Field<'_>, inherited: &Inherited<'_>) -> Option<Route> {
    let message = field.message(&schema::ROUTE)?;
    let filters = per_route(&message)?.or(inherited.filters);
    let condition_field = message.require("match")?;
    let condition = condition_field.message(&schema::ROUTE_MATCH)?;
    let path = path_match(&condition)?;
    let headers = header_matchers(&condition)?;
    let query = query_matchers(&condition)?;
    let action = action::action(&message, &path, inherited)?;
    let told = told(&message, &action, &filters, inherited.descriptors)?;
    let changes = Changes::read(&message)?;
    let [host, above] = inherited.changes;
    let (request_headers, response_headers) = Changes::together([&changes, host, above], inherited.order);
    Some(Route {
        name: message.string("name"),
        headers,
        query,
        request_headers,
        response_headers,
        rate_limits: filters.rate_limits(),
        descriptors: told.map(Arc::new),
        body_limit: filters.body_limit(),
        compression: filters.compression(),
        fault: filters.fault.flatten(),
        cors: filters.cors.flatten(),
        tracing: route_tracing(&message)?.map(Arc::new),
        ..Route::new(path, action, field.place())
    })
}

/// Returns the descriptors that rate limit services receive for a route. As in Envoy, requests without an upstream
/// are not counted.
fn told(
    message: &Message<'_>,
    action: &Action,
    filters: &PerRoute,
    host: &[Descriptor],
) -> Option<Option<RouteDescriptors>> {
    let (Action::Forward(forward), Some(field)) = (action, message.get("route")) else { return Some(None) };
    let to = field.message(&schema::ROUTE_ACTION)?;
    let told = RouteDescriptors {
        own: descriptors(&to)?,
        host: host.to_vec(),
        includes_host: to.flag("include_vh_rate_limits"),
        filters: filters.services().to_vec(),
    };
    if forward.to.len() > 1 && told.all().any(Descriptor::tells_upstream) {
        return field.fail(Problem::new(
            "`destination_cluster` is refused for a route with several clusters: it is selected later",
            "use a route for each, or `generic_key`",
        ));
    }
    Some((!told.is_empty()).then_some(told))
}
