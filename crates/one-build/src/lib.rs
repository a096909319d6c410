//! One build of BoringSSL and AWS-LC for all commands.
//!
//! Cargo compiles a dependency once for each set of features, and the set depends on the packages that a command selects:
//! `cargo check --package X` and `cargo test --workspace` each compiled both C libraries, for minutes. This package requests, as
//! build dependencies, the union of the features that the workspace requests of all dependencies of their build scripts. Every
//! package that links one of the two libraries without depending on another such package has a build dependency on this one.
//! These packages have no build script, so this one is not compiled or linked: it only affects feature selection.
//!
//! `scripts/check-one-build.py`, a part of `make lint`, compares the selections.
