//! What HTTP knows of the filter chain that a connection came through.

use super::Router;
use crate::connection::Connection;
use std::{ops::Deref, sync::Arc};

/// A filter chain as the requests of its connections see it. While a connection is open, a reload may change what the
/// chain serves, or take it away.
pub(crate) trait HttpFilterChain: Send + Sync {
    /// What it serves now; `None` if that is no longer HTTP.
    fn http(&self) -> Option<Arc<HttpSettings>>;

    /// Whether the configuration has it no longer: its connections end when they can.
    fn is_removed(&self) -> bool;

    /// Counts a request with the status of its answer; 0 stands for none.
    fn count_response(&self, status: u16);
}

/// What a filter chain serves to HTTP clients.
pub(crate) struct HttpSettings {
    pub(crate) router: Arc<Router>,
    /// Whether `.` and `..` are taken out of paths before they are routed (RFC 3986 section 6.2.2.3).
    pub(crate) normalize_path: bool,
    /// Whether several slashes in a row count as one.
    pub(crate) merge_slashes: bool,
}

/// A connection over which HTTP is spoken, with its chain.
#[derive(Clone)]
pub(crate) struct HttpConnection {
    pub(crate) connection: Arc<Connection>,
    pub(crate) chain: Arc<dyn HttpFilterChain>,
}

impl Deref for HttpConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}
