//! Runs a gateway in this process, for all front ends of the configuration.

use crate::{allocator, logging::Logging};
use quadrille_config::{Diagnostics, model::Gateway};
use quadrille_gateway::{Bound, ConfigurationSource};

/// Serves until a signal stops the process; `on_ready` is called once the listeners are bound.
pub(crate) fn run(
    model: Gateway,
    mut origin: ConfigurationSource,
    logging: &Logging,
    on_ready: impl FnOnce(&Bound),
) -> Result<(), Vec<String>> {
    let guard = logging.start(&model.access_log, model.access_log_syslog.as_ref())?;
    let (access_log, reopened) = (guard.access_log(), guard.access_log());
    origin.access_log = Some(Box::new(move |log, syslog| access_log.set(log, syslog)));
    origin.log_level = Some(guard.level());
    origin.release_memory = Some(allocator::release);
    origin.reopen_access_log = Some(Box::new(move || reopened.reopen()));
    Ok(quadrille_gateway::serve(model, origin, on_ready).map_err(Diagnostics::from)?)
}

/// Logs the bound addresses.
pub(crate) fn announce(bound: &Bound) {
    if let Some(address) = bound.admin {
        tracing::info!("metrics at http://{address}/metrics");
    }
    if let Some(path) = &bound.admin_socket {
        tracing::info!("admin socket at {}", path.display());
    }
    for address in &bound.listeners {
        match bound.plain.contains(address) {
            true => tracing::info!(%address, "serving plain text"),
            false => tracing::info!(%address, "serving HTTPS"),
        }
    }
}
