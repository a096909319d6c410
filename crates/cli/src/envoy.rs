//! Envoy bootstraps as the configuration.

use crate::{
    logging::Logging,
    process::{announce, run},
};
use quadrille_config::{Diagnostics, model::Gateway};
use quadrille_control_plane::{EnvoyPages, Trust, XdsManager};
use quadrille_envoy::Bootstrap;
use quadrille_gateway::{ConfigurationSource, control};
use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// A bootstrap to serve.
pub(crate) struct ServedBootstrap {
    pub(crate) file: PathBuf,
    pub(crate) trust: Trust,
    /// Number of event loops; `None` means one for each CPU.
    pub(crate) threads: Option<NonZeroUsize>,
    /// Time for which a draining listener still accepts connections while the process keeps running.
    pub(crate) drain: Duration,
}

impl ServedBootstrap {
    /// Serves the bootstrap's configuration and that of its control planes.
    pub(crate) fn serve(self, logging: &Logging) -> Result<(), Vec<String>> {
        let (bootstrap, model, warnings) = self.read()?;
        let is_dynamic = bootstrap.is_dynamic();
        let xds = XdsManager::new(bootstrap, self.trust.clone());
        let (control, updates) = control();
        if is_dynamic {
            // Updates that control planes send before the gateway runs are queued.
            xds.start(control.clone())?;
        }
        let (drain, file) = (self.drain, self.file.clone());
        let origin = ConfigurationSource {
            watched_files: Some(Box::new({
                let xds = xds.clone();
                move || xds.files()
            })),
            in_service: Some(Box::new({
                let xds = xds.clone();
                move || xds.commit_bootstrap()
            })),
            updates: Some(updates),
            pages: Some(Arc::new(EnvoyPages::new(control, xds.clone(), drain))),
            ..ConfigurationSource::reading(Some(file), Box::new(move || self.reread(&xds)))
        };
        run(model, origin, logging, |bound| {
            warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
            announce(bound);
        })
    }

    fn read(&self) -> Result<(Bootstrap, Gateway, Vec<String>), Diagnostics> {
        let mut bootstrap = quadrille_envoy::load(&self.file)?;
        bootstrap.process.threads = self.threads;
        let (model, warnings) = bootstrap.model()?;
        Ok((bootstrap, model, warnings.lines()))
    }

    fn reread(&self, xds: &XdsManager) -> Result<Gateway, Diagnostics> {
        let (bootstrap, _, warnings) = self.read()?;
        let model = xds.prepare_bootstrap(bootstrap)?;
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        Ok(model)
    }
}

/// Reads a bootstrap and the files that it references, without serving it. Returns its model and warnings.
pub(crate) fn read(file: &Path) -> Result<(Gateway, Vec<String>), Diagnostics> {
    let (model, warnings) = quadrille_envoy::load(file)?.model()?;
    Ok((model, warnings.lines()))
}
