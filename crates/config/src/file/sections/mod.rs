//! One file for each section of the configuration: the table of its keys, and the rules that concern several keys.
//!
//! A section is read to its end even if it has mistakes, so that one reading finds all of them. Its function returns
//! the part of the model, with defaults in place of wrong values, or `None` if there is no default. Mistakes have
//! been noted by then, and [`parse`](super::parse) returns no model after one.

mod access_log;
mod acme;
mod acme_order;
mod admin;
mod authorization;
mod basic_auth;
mod certificate;
mod client_auth;
mod compression;
mod connection_match;
mod cors;
mod engine;
mod error_pages;
mod fault;
mod gateway;
mod header_changes;
mod health;
mod jwt;
mod key_policy;
mod keyless;
mod listener;
mod listener_clients;
mod listener_draft;
mod listener_http3;
mod listener_limits;
mod listener_paths;
mod listener_rules;
mod listener_shown;
mod outlier_detection;
mod own_headers;
mod placeholders;
mod process_limits;
mod rate_limits;
mod resolver;
mod resumption;
mod route;
mod route_actions;
mod route_client_auth;
mod route_conditions;
mod route_draft;
mod route_limits;
mod route_mirror;
mod route_refused;
mod route_respond;
mod route_retry;
mod route_shown;
mod route_sticky;
mod sampling;
mod text_match;
mod tls;
mod tls_parameters;
mod tracing;
mod trust_anchor;
mod upgrades;
mod upstream;
mod upstream_limits;
mod upstream_tls;
mod value_conditions;
mod written_route;

pub(super) use gateway::{EMPTY, GATEWAY, gateway};
pub(super) use key_policy::{EMPTY_POLICY, key_policy};
pub use route::FORWARDING_KEYS;
pub(super) use text_match::without_frame;

use super::schema::Described;

/// Every section, in the order of the reference.
pub(super) const SECTIONS: &[&dyn Described] = &[
    &gateway::GATEWAY,
    &listener::LISTENER,
    &certificate::CERTIFICATE,
    &acme_order::ORDER,
    &keyless::KEY,
    &keyless::KEYLESS,
    &trust_anchor::EXPERIMENTAL,
    &tls::TLS,
    &client_auth::CLIENT_AUTH,
    &connection_match::MATCH,
    &route::ROUTE,
    &route_conditions::HEADER,
    &value_conditions::QUERY,
    &value_conditions::COOKIE,
    &route_actions::SPLIT,
    &route_actions::REDIRECT,
    &route_retry::RETRY,
    &route_sticky::STICKY,
    &route_mirror::MIRROR,
    &route_client_auth::ROUTE_CLIENT_AUTH,
    &cors::CORS,
    &fault::FAULT,
    &route_limits::ROUTE_LIMITS,
    &compression::COMPRESSION,
    &route_respond::RESPOND,
    &header_changes::HEADER_CHANGE,
    &listener_limits::TIMEOUTS,
    &listener_limits::LIMITS,
    &listener_clients::CLIENTS,
    &listener_rules::RULE,
    &listener_rules::WHEN,
    &rate_limits::RATE_LIMIT,
    &basic_auth::BASIC_AUTH,
    &jwt::JWT,
    &authorization::AUTHORIZATION,
    &error_pages::ERROR_PAGE,
    &listener_paths::PATHS,
    &upstream::UPSTREAM,
    &upstream::SERVER,
    &health::HEALTH,
    &outlier_detection::OUTLIER_DETECTION,
    &upstream_limits::UPSTREAM_LIMITS,
    &upstream_tls::UPSTREAM_TLS,
    &upstream::UPSTREAM_TIMEOUTS,
    &resolver::RESOLVER,
    &process_limits::PROCESS_LIMITS,
    &engine::ENGINE,
    &resumption::RESUMPTION,
    &acme::ACME,
    &acme::EXTERNAL_ACCOUNT,
    &acme::ON_DEMAND,
    &sampling::SAMPLING,
    &access_log::ACCESS_LOG,
    &access_log::SYSLOG,
    &tracing::TRACING,
    &admin::ADMIN,
    &admin::ADMIN_SOCKET,
];

/// The sections of a key server's policy, which is a file of its own.
pub(super) const POLICY_SECTIONS: &[&dyn Described] = &[&key_policy::KEY_POLICY, &key_policy::CLIENT];

/// Returns the path of the first section that has this key.
pub(super) fn home_of(key: &str) -> Option<&'static str> {
    let knows = |section: &&&dyn Described| section.keys().iter().any(|known| known.name == key);
    SECTIONS.iter().find(knows).map(|section| section.path())
}
