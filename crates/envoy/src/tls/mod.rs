//! Downstream and upstream TLS, and their secrets.

mod certificate;
mod downstream;
mod parameters;
mod secret;
mod upstream;
mod validation;

pub(crate) use downstream::{DownstreamTls, Resolved, Sessions, downstream};
pub(crate) use secret::secret;
pub use secret::{Secret, SecretReference};
pub use upstream::ClusterTls;
pub(crate) use upstream::upstream;
