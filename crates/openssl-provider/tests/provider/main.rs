//! The module as OpenSSL and real servers load it: openssl, nginx, HAProxy, Apache, Node, curl.

mod aborts;
mod bad_key_servers;
mod guides;
mod hybrid;
mod key_exchange;
mod key_servers;
mod nginx_async;
mod operations;
mod program;
mod reload;
mod servers;
mod support;
mod uploaded;
