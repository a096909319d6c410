//! Endpoints that are given by name: the table of addresses, and the resolver.
//!
//! `table` holds the addresses, and `resolver` queries DNS or the system; `upstream::refresh` repeats the lookups.

pub(super) mod resolver;
pub(super) mod table;
