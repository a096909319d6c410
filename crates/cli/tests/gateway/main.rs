//! The real binary, driven by real clients: curl, openssl s_client, nginx, Chromium.

#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod admin;
mod authority;
mod bad_clients;
mod bad_input;
mod balance;
mod bench;
mod browser;
mod client_auth;
mod commands;
mod cpu;
mod dashboard;
mod descriptors;
mod drain;
mod envoy;
mod fleet;
mod from_memory;
mod gpu;
mod http;
mod key_exchange;
mod keyless;
mod messages;
mod metrics_reference;
mod observability;
mod paths;
mod pressure;
mod profile_system;
mod proxy_protocol;
mod reload;
mod requests;
mod resets;
mod resumption;
mod routes;
mod selection;
mod smoke;
mod support;
mod tcp;
mod tiers;
mod tightening;
mod timeouts;
mod tls;
mod transfer;
mod upstream_tls;
mod websocket;
mod xds;
