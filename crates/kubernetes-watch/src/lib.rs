//! Watches a Kubernetes API server, and gives the gateway the configuration that its objects describe.
//!
//! ```text
//!  API server ── transport (BoringSSL, token) ── kube's watcher, one for each kind ──> Watched: what changed
//!                                                                                           │ settles for some ms
//!  gateway <── Control <── Updater: the cluster's Objects ── quadrille_kubernetes::translate
//!                             └──> Outcome ──> writer: holder of a Lease, which writes Events and status
//! ```
//!
//! The last configuration stays in service while the API server cannot be reached, and if a new one cannot be applied.
//! Private keys stay in memory: neither the text of a configuration nor a file contains them. All work runs on one
//! thread with a low priority.
//!
//! - `access`, `stream`, `connector`, `transport`: the address and the credentials, read again for each request, and
//!   connections.
//! - `kind`, `secret`, `watched`: the watched objects; `backoff`: pauses after errors.
//! - `updater`, `progress`: applies changes; what is known and applied, for the pages and the metrics.
//! - `outcome`, `writer`, `lease`, `events`, `address`: what the holder of the Lease writes to the objects.

mod access;
mod address;
mod backoff;
mod connector;
mod events;
mod kind;
mod lease;
mod outcome;
mod pages;
mod progress;
mod secret;
mod settings;
mod start;
mod stream;
mod transport;
mod updater;
mod watched;
mod watches;
mod writer;

pub use pages::KubernetesPages;
pub use settings::{NamespacedName, Settings};
pub use start::Kubernetes;
