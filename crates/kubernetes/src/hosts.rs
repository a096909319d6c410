//! Hosts of rules.

/// Checks that routes can have this host; an empty one stands for every host.
///
/// # Errors
/// With the reason.
pub(crate) fn usable(host: &str) -> Result<(), String> {
    if host.is_empty() {
        return Ok(());
    }
    match quadrille_config::values::route_host(host) {
        Ok(_) => Ok(()),
        Err(problem) => Err(problem.to_string()),
    }
}
