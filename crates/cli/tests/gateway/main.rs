//! The real binary, driven by real clients: curl, openssl s_client, nginx, Chromium.

#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod balance;
mod browser;
mod commands;
mod drain;
mod http;
mod proxy_protocol;
mod reload;
mod smoke;
mod support;
mod tcp;
mod timeouts;
mod transfer;
mod upstream_tls;
mod websocket;
