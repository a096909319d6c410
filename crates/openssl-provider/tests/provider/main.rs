//! The module loaded by OpenSSL and real servers: openssl, nginx, HAProxy, Apache, Node, curl.

mod aborts;
mod as_openssl;
mod bad_key_servers;
mod guides;
mod hybrid;
mod key_exchange;
mod key_servers;
#[path = "../../../cli/tests/gateway/support/logs.rs"]
#[allow(dead_code, unreachable_pub, reason = "the gateway's tests use all of it, from a public module")]
mod logs;
mod nginx_async;
mod operations;
#[path = "../../../cli/tests/gateway/support/ports.rs"]
#[allow(unreachable_pub, reason = "the gateway's tests have it in a public module")]
mod ports;
mod program;
mod reload;
mod servers;
mod support;
mod uploaded;
