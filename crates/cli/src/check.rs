//! `quadrille check`.

use quadrille_gateway::config;
use std::path::PathBuf;

/// Reads the file, the certificates and keys that it names, and resolves its upstreams. Prints every mistake with its
/// line and exits with 2 if there is one.
#[derive(clap::Args)]
pub(crate) struct Check {
    /// The configuration file.
    file: PathBuf,
}

impl Check {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        let model = config::load(&self.file)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let warnings = quadrille_gateway::check(&model)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        for warning in warnings {
            println!("warning: {warning}");
        }
        println!(
            "{}: ok ({} listeners, {} upstreams)",
            self.file.display(),
            model.listeners.len(),
            model.upstreams.len()
        );
        Ok(())
    }
}
