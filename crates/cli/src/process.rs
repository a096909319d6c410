//! A gateway in this process, whichever front end its configuration came from.

use crate::logging::Logging;
use quadrille_config::model::Gateway;
use quadrille_gateway::{Bound, Origin};
use std::path::Path;

/// Reads a configuration file.
pub(crate) fn load(file: &Path) -> Result<Gateway, Vec<String>> {
    quadrille_config::load(file).map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

/// Serves until the process is told to stop; `on_ready` is called once the listeners are bound.
pub(crate) fn run(
    model: Gateway,
    origin: Origin,
    logging: &Logging,
    on_ready: impl FnOnce(&Bound),
) -> Result<(), Vec<String>> {
    let _guard = logging.start(&model.access_log)?;
    quadrille_gateway::serve(model, origin, on_ready)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

/// Logs the bound addresses.
pub(crate) fn announce(bound: &Bound) {
    if let Some(address) = bound.admin {
        tracing::info!("metrics at http://{address}/metrics");
    }
    for address in &bound.listeners {
        tracing::info!(%address, "serving HTTPS");
    }
}
