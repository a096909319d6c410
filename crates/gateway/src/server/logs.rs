//! The access log, whose files somebody else moves away.

use super::Server;
use crate::telemetry::access_log;
use quadrille_config::model::{AccessLog, Gateway};

impl Server {
    /// From now on as this configuration says.
    pub(super) fn follow_logs(&self, model: &Gateway) {
        if let Some(set) = &self.origin.access_log
            && let Err(error) = set(&model.access_log)
        {
            tracing::error!(%error, "the access log could not be changed; lines go where they went before");
        }
        access_log::enable(model.access_log != AccessLog::Off, model.access_log_fields);
    }

    /// On SIGHUP, which means both to whoever sends it.
    pub(super) async fn hang_up(&mut self) {
        self.reopen_logs();
        self.reload("SIGHUP").await;
    }

    /// Opens them anew: what logrotate has moved away gets no more lines.
    pub(super) fn reopen_logs(&self) {
        match self.origin.reopen_access_log.as_ref().map_or(Ok(()), |reopen| reopen()) {
            Ok(()) => tracing::debug!("log files are reopened"),
            Err(error) => {
                tracing::error!(%error, "the access log could not be reopened; lines go where they went before");
            }
        }
    }
}
