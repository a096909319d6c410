//! Checks of a configuration without serving it.

use crate::{
    process::{engine, start_failure},
    reload::snapshot::{ActiveParts, Snapshot},
    tls::resumption_backend,
};
use quadrille_config::{Diagnostic, model::Gateway};

/// Reads and checks all files and settings of a configuration, without serving it. Returns warnings.
///
/// # Errors
/// Every problem that would prevent it from being served, except ports in use.
pub fn check(model: &Gateway) -> Result<Vec<String>, Vec<Diagnostic>> {
    let engine = engine::idle().map_err(start_failure)?;
    let mut problems: Vec<_> = model.acme.iter().flat_map(quadrille_acme::check).collect();
    problems.extend(resumption_backend::check_ca(&model.resumption));
    match Snapshot::new(model, &engine, &ActiveParts::default()) {
        Ok(snapshot) if problems.is_empty() => Ok(snapshot.warnings),
        Ok(_) => Err(problems),
        Err(found) => {
            problems.extend(found);
            Err(problems)
        }
    }
}
