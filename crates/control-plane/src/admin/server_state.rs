//! State of the process, in Envoy's terms.

/// `envoy.admin.v3.ServerInfo.State`, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerState {
    Live = 0,
    Draining = 1,
    /// Waiting for the first listeners and clusters from control planes.
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
