//! Envoy's bootstrap as the configuration.

use crate::{
    logging::Logging,
    process::{announce, run},
};
use quadrille_config::{Diagnostics, model::Gateway};
use quadrille_control_plane::{EnvoyPages, Trust, XdsManager};
use quadrille_envoy::Bootstrap;
use quadrille_gateway::{ConfigurationSource, control};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Serves what the bootstrap says, and what its control planes say.
pub(crate) fn serve(file: PathBuf, trust: Trust, logging: &Logging) -> Result<(), Vec<String>> {
    let (bootstrap, model, warnings) = read(&file)?;
    let is_dynamic = bootstrap.is_dynamic();
    let xds = XdsManager::new(bootstrap, trust);
    let (control, updates) = control();
    if is_dynamic {
        // What control planes send before the gateway runs waits for it.
        xds.start(control.clone())?;
    }
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
        pages: Some(Arc::new(EnvoyPages::new(control, xds.clone()))),
        ..ConfigurationSource::reading(Some(file.clone()), Box::new(move || reread(&file, &xds)))
    };
    run(model, origin, logging, |bound| {
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        announce(bound);
    })
}

/// Reads a bootstrap and all that it names, without serving it; its model and its warnings.
pub(crate) fn read(file: &Path) -> Result<(Bootstrap, Gateway, Vec<String>), Diagnostics> {
    let bootstrap = quadrille_envoy::load(file)?;
    let (model, warnings) = bootstrap.model()?;
    Ok((bootstrap, model, warnings.lines()))
}

fn reread(file: &Path, xds: &XdsManager) -> Result<Gateway, Diagnostics> {
    let (bootstrap, _, warnings) = read(file)?;
    let model = xds.prepare_bootstrap(bootstrap)?;
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    Ok(model)
}
