//! One file for each section of the configuration: its keys, and how they become the model.
//!
//! A section is read to its end whatever is wrong with it, so that one reading finds every mistake. Its function
//! returns what the model needs with defaults in place of what was wrong, or `None` where there is no default;
//! what was wrong has been noted, and no model leaves [`parse`](super::parse) after that.

mod admin;
mod certificate;
mod engine;
mod gateway;
mod health;
mod key_policy;
mod keyless;
mod listener;
mod resumption;
mod route;
mod route_actions;
mod route_conditions;
mod sampling;
mod tls;
mod upstream;
mod upstream_tls;

pub(super) use gateway::{EMPTY, gateway};
pub(super) use key_policy::{EMPTY_POLICY, key_policy};

use super::schema::Section;

/// Every section, in the order of the reference.
pub(super) const SECTIONS: &[&Section] = &[
    &gateway::GATEWAY,
    &listener::LISTENER,
    &certificate::CERTIFICATE,
    &keyless::KEY,
    &keyless::KEYLESS,
    &tls::TLS,
    &tls::CLIENT_AUTH,
    &listener::MATCH,
    &route::ROUTE,
    &route_conditions::HEADER,
    &route_actions::SPLIT,
    &route_actions::REDIRECT,
    &route_actions::RETRY,
    &route::RESPOND,
    &listener::TIMEOUTS,
    &listener::LIMITS,
    &upstream::UPSTREAM,
    &upstream::SERVER,
    &health::HEALTH,
    &upstream_tls::UPSTREAM_TLS,
    &upstream::UPSTREAM_TIMEOUTS,
    &engine::ENGINE,
    &resumption::RESUMPTION,
    &sampling::SAMPLING,
    &admin::ADMIN,
];

/// The sections of a key server's policy, which is a file of its own.
pub(super) const POLICY_SECTIONS: &[&Section] = &[&key_policy::KEY_POLICY, &key_policy::CLIENT];

/// The path of the first section that knows this key.
pub(super) fn home_of(key: &str) -> Option<&'static str> {
    SECTIONS.iter().find(|section| section.knows(key)).map(|section| section.path)
}
