//! Checks of a configuration without serving it.

use crate::{
    process::{engine, start_failure},
    reload::snapshot::{ActiveParts, Snapshot},
    tls::{certificate::known_clients, resumption_backend},
};
use quadrille_config::{Diagnostic, model::Gateway};

/// Results of a check that found no error.
#[derive(Debug)]
pub struct Checked {
    /// Warnings for the operator.
    pub warnings: Vec<String>,
    /// Certificates that well-known clients receive, for names whose clients do not all receive the same one, or one
    /// with ML-DSA.
    pub selections: Vec<String>,
}

/// Reads and checks all files and settings of a configuration, without serving it.
///
/// # Errors
/// Every problem that would prevent it from being served, except ports in use.
pub fn check(model: &Gateway) -> Result<Checked, Vec<Diagnostic>> {
    let engine = engine::idle().map_err(start_failure)?;
    let mut problems: Vec<_> = model.acme.iter().flat_map(quadrille_acme::check).collect();
    problems.extend(resumption_backend::check_ca(&model.resumption));
    match Snapshot::new(model, &engine, &ActiveParts::default()) {
        Ok(snapshot) if problems.is_empty() => {
            let selections = selections(&snapshot);
            Ok(Checked { warnings: snapshot.warnings, selections })
        }
        Ok(_) => Err(problems),
        Err(found) => {
            problems.extend(found);
            Err(problems)
        }
    }
}

fn selections(snapshot: &Snapshot) -> Vec<String> {
    let mut selections = Vec::new();
    for listener in &snapshot.listeners {
        for tls in listener.chains.iter().filter_map(|chain| chain.config.tls.as_ref()) {
            let address = listener.model.address;
            let lines = known_clients::describe(tls.certificates());
            selections.extend(lines.into_iter().map(|line| format!("{address}, {line}")));
        }
    }
    selections
}
