//! Envoy's bootstrap as the configuration.

use crate::{
    logging::Logging,
    serve::{announce, run},
};
use quadrille_config::model::Gateway;
use quadrille_dynamic::Dynamic;
use quadrille_envoy::{Bootstrap, admin::EnvoyPages};
use quadrille_gateway::{Origin, control};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// The last bootstrap that was read; what it does not say holds no key.
type Current = Arc<Mutex<Arc<Bootstrap>>>;

/// Serves what the bootstrap says, and what its control planes say.
pub(crate) fn serve(file: PathBuf, logging: &Logging) -> Result<(), Vec<String>> {
    let (bootstrap, model, warnings) = read(&file)?;
    let dynamic = Dynamic::new(&bootstrap);
    let (control, updates) = control();
    if bootstrap.is_dynamic() {
        // What control planes say before the gateway runs waits for it.
        dynamic.follow(&bootstrap, control.clone())?;
    }
    let current: Current = Arc::new(Mutex::new(Arc::new(bootstrap)));
    let pages = EnvoyPages::new(control, Box::new(in_force(&current, &dynamic)));
    let origin = Origin {
        more_files: Some(Box::new({
            let current = Arc::clone(&current);
            move || last(&current).files.clone()
        })),
        updates: Some(updates),
        pages: Some(Arc::new(pages)),
        ..Origin::reading(Some(file.clone()), Box::new(move || reread(&file, &current, &dynamic)))
    };
    run(model, origin, logging, |bound| {
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        announce(bound);
    })
}

/// Reads a bootstrap and all that it names, without serving it; its model and its warnings.
pub(crate) fn read(file: &Path) -> Result<(Bootstrap, Gateway, Vec<String>), Vec<String>> {
    let bootstrap = load(file)?;
    let (model, warnings) = bootstrap.model()?;
    Ok((bootstrap, model, warnings.lines()))
}

fn load(file: &Path) -> Result<Bootstrap, Vec<String>> {
    quadrille_envoy::load(file).map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn reread(file: &Path, current: &Current, dynamic: &Dynamic) -> Result<Gateway, Vec<String>> {
    let (bootstrap, _, warnings) = read(file)?;
    let model = dynamic.renew(&bootstrap)?;
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    *current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(bootstrap);
    Ok(model)
}

/// The bootstrap with what control planes have sent.
fn in_force(current: &Current, dynamic: &Dynamic) -> impl Fn() -> Arc<Bootstrap> + use<> {
    let (current, dynamic) = (Arc::clone(current), dynamic.clone());
    move || {
        let mut bootstrap = Bootstrap::clone(&last(&current));
        bootstrap.resources = dynamic.resources();
        Arc::new(bootstrap)
    }
}

fn last(current: &Current) -> Arc<Bootstrap> {
    Arc::clone(&current.lock().unwrap_or_else(PoisonError::into_inner))
}
