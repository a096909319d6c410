//! Reloads: the configuration is read again, or only the files that it references.

use super::Server;
use crate::{
    admin::ReloadResult,
    reload::control::Applied,
    telemetry::{configuration_warnings, last_reload},
};
use quadrille_config::{Diagnostic, model::Gateway};

impl Server {
    /// Reads the configuration again and replaces the old one completely, or keeps it and logs the errors.
    pub(super) async fn reload(&mut self, cause: &str) -> ReloadResult {
        if let Some(successor) = &mut self.successor {
            successor.reload = Some(cause.to_owned());
            let waits = "the reload waits for the new process that is starting";
            tracing::info!(cause, "{waits}");
            return Ok(waits.to_owned());
        }
        match self.reread().await {
            Ok(()) => {
                last_reload::note(&[]);
                tracing::info!(cause, "configuration reloaded");
                self.reset_log_level();
                Ok(self.reloaded())
            }
            Err(problems) => {
                last_reload::note(&problems);
                for problem in &problems {
                    tracing::error!(cause, %problem, "not reloaded; the old configuration stays in service");
                }
                Err(problems.iter().map(ToString::to_string).collect())
            }
        }
    }

    /// Returns the result of a reload that has succeeded, with the warnings.
    fn reloaded(&self) -> String {
        let warnings = self.configuration_warnings.iter().map(|warning| format!("\nwarning: {warning}"));
        format!("configuration reloaded{}", warnings.collect::<String>())
    }

    async fn reread(&mut self) -> Result<(), Vec<Diagnostic>> {
        // Watched files are read before they are used, so that a change in between is detected.
        let before = self.origin.contents();
        let read = (self.origin.reread)();
        let before = self.origin.contents().and(before);
        let applied = match read {
            Ok(model) => {
                let before = before.with_sources(&model);
                self.apply(model).await.map(|applied| (applied, before))
            }
            Err(problems) => {
                // A mistake may be in a file that is included for the first time: it is watched until it is corrected.
                let watched = before.and(self.files.contents().clone());
                self.files.follow(watched);
                return Err(problems.into());
            }
        };
        let (applied, before) = applied?;
        self.configuration_warnings = self.origin.warnings();
        self.log_warnings();
        self.note_warnings(&applied.warnings);
        self.origin.in_service.iter().for_each(|tell| tell());
        self.files.follow(before);
        Ok(())
    }

    /// Logs the warnings of the configuration file.
    pub(super) fn log_warnings(&self) {
        for warning in &self.configuration_warnings {
            tracing::warn!("{warning}");
        }
    }

    /// Shows the warnings of the configuration file, and these about its parts, on the admin pages.
    pub(super) fn note_warnings(&self, of_parts: &[String]) {
        configuration_warnings::note([&self.configuration_warnings, of_parts].concat());
    }

    /// Reads again the files that the active configuration references, but not the configuration file, which may be
    /// half written.
    pub(super) async fn refresh(&mut self, cause: &str) {
        let model = Gateway::clone(&self.configuration.load());
        match self.apply_as_it_is(model).await {
            Ok(_) => tracing::info!(cause, "certificates reloaded"),
            Err(problems) => {
                for problem in problems {
                    tracing::error!(cause, %problem, "not reloaded; the old certificates stay in service");
                }
            }
        }
    }

    /// Applies a model that was not read from the front end's files, which count as unchanged.
    pub(super) async fn apply_as_it_is(&mut self, model: Gateway) -> Result<Applied, Vec<Diagnostic>> {
        let origin = self.origin.contents().remembering(self.files.contents());
        let before = origin.with_sources(&model);
        let applied = self.apply(model).await;
        last_reload::note(applied.as_ref().err().map_or(&[], Vec::as_slice));
        if let Ok(applied) = &applied {
            self.note_warnings(&applied.warnings);
            self.files.follow(before);
        }
        applied
    }
}
