//! Certificates: their files, selection by SNI and client capabilities, names, compression, and OCSP stapling.
//!
//! - `files`: certificates with their keys, loaded and checked.
//! - `selection`: the choice by SNI, then by `client_capabilities`.
//! - `known_clients`: the certificates that well-known clients receive.
//! - `ml_dsa_sets`: the parameter sets of ML-DSA in a chain, or that a client can verify.
//! - `trust_anchor`: trust anchor identifiers of chains, and those that a client requests.
//! - `compression`: compressed Certificate messages.
//! - `alt_names`: matching of the peer's names; `stapling`: certificates whose OCSP responses are fetched.

pub(crate) mod alt_names;
pub(super) mod client_capabilities;
pub(super) mod compression;
pub(crate) mod files;
pub(crate) mod known_clients;
mod ml_dsa_sets;
pub(crate) mod selection;
pub(crate) mod stapling;
pub(super) mod trust_anchor;
