//! The access log, whose files other programs rotate, and the level of the log.

use super::Server;
use crate::telemetry::access_log;
use quadrille_config::model::Gateway;

impl Server {
    /// Applies the log settings of this configuration.
    pub(super) fn follow_logs(&self, model: &Gateway) {
        if let Some(set) = &self.origin.access_log
            && let Err(error) = set(&model.access_log, model.access_log_syslog.as_ref())
        {
            tracing::error!(%error, "cannot change the access log; its destination stays as before");
        }
        access_log::follow(model);
    }

    /// Handles SIGHUP: reopens logs and reloads the configuration, because it is used for both.
    pub(super) async fn hang_up(&mut self) {
        self.reopen_logs();
        // The result is in the log.
        let _ = self.reload("SIGHUP").await;
    }

    /// Sets the configured level of the log, after an operator has changed it.
    pub(super) fn reset_log_level(&self) {
        let Some(level) = &self.origin.log_level else { return };
        let (current, configured) = (level.current(), level.configured());
        if current != configured {
            tracing::info!(level = configured, before = current, "the log has its configured level again");
            if let Err(error) = level.set(None) {
                tracing::error!(%error, "the level of the log stays as before");
            }
        }
    }

    /// Reopens the log files after a rotation, such as by logrotate.
    pub(super) fn reopen_logs(&self) {
        match self.origin.reopen_access_log.as_ref().map_or(Ok(()), |reopen| reopen()) {
            Ok(()) => tracing::debug!("log files reopened"),
            Err(error) => {
                tracing::error!(%error, "cannot reopen the access log; its destination stays as before");
            }
        }
    }
}
