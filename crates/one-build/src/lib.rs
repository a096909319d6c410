//! One build of BoringSSL and AWS-LC for all commands.
//!
//! Cargo compiles a dependency again for each set of features, and the set depends on the packages that a command selects:
//! `cargo check --package X` and `cargo test --workspace` each compiled both C libraries, for minutes. This package requests, as
//! build dependencies, the union of the features that the workspace requests of everything that their build scripts use. Every
//! package that links one of the two without depending on another that does has a build dependency on this one. None of them has
//! a build script, so nothing is compiled or linked for it: it only takes part in the choice of features.
//!
//! `scripts/check-one-build.py`, a part of `make lint`, compares the selections.
