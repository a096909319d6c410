//! The state of the process, as Envoy tells it.

/// `envoy.admin.v3.ServerInfo.State`, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerState {
    Live = 0,
    Draining = 1,
    /// Control planes have not sent listeners and clusters yet.
    Initializing = 3,
}

impl ServerState {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Live => "LIVE",
            Self::Draining => "DRAINING",
            Self::Initializing => "INITIALIZING",
        }
    }
}
