//! Log files, which somebody else moves away.

use super::Server;

impl Server {
    /// On SIGHUP, which means both to whoever sends it.
    pub(super) async fn hang_up(&mut self) {
        self.reopen_logs();
        self.reload("SIGHUP").await;
    }

    /// Opens them anew: what logrotate has moved away gets no more lines.
    pub(super) fn reopen_logs(&self) {
        match self.origin.reopen_access_log.as_ref().map_or(Ok(()), |reopen| reopen()) {
            Ok(()) => tracing::debug!("log files are opened anew"),
            Err(error) => tracing::error!(%error, "the access log goes on where it went"),
        }
    }
}
