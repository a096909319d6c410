//! The real binary, driven by real clients: curl, openssl s_client, nginx, Chromium.

#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod bad_clients;
mod bad_input;
mod client_auth;
mod observability;
mod pressure;
mod resumption;
mod selection;
mod smoke;
mod support;
mod tls;
