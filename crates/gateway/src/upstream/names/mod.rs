//! Endpoints that are given by name: the table of addresses, and the resolver.
//!
//! - `table`: the addresses; `family`: IPv4 and IPv6; `service`: servers of SRV records.
//! - `resolver`: lookups in `/etc/hosts`, DNS and the system; `dns_query`, `system_settings`: queries to DNS servers, and
//!   resolv.conf(5). `upstream::refresh` repeats the lookups.

mod dns_query;
mod family;
pub(super) mod resolver;
mod service;
mod system_settings;
pub(super) mod table;
