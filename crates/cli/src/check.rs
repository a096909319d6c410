//! `quadrille check`.

use quadrille_config::Diagnostics;
use std::path::PathBuf;

/// Check a configuration file and the files that it references, without serving it.
///
/// Reads the file, its certificates and keys, and the files of `acme`, and resolves its upstreams. Prints every error with
/// its line, and exits with status 2 if there is one. For listeners with certificates of several kinds, prints which one
/// five well-known clients receive.
///
/// `quadrille -t FILE` is equivalent.
#[derive(clap::Args)]
pub(crate) struct Check {
    /// The configuration file.
    #[arg(required_unless_present = "envoy_config")]
    file: Option<PathBuf>,
    /// Check an Envoy bootstrap instead.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    envoy_config: Option<PathBuf>,
}

impl Check {
    /// Checks an Envoy bootstrap.
    pub(crate) fn of_bootstrap(file: PathBuf) -> Self {
        Self { file: None, envoy_config: Some(file) }
    }

    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        let (file, model, mut warnings) = match (self.file, self.envoy_config) {
            (_, Some(file)) => {
                let (model, warnings) = crate::envoy::read(&file)?;
                (file, model, warnings)
            }
            (file, None) => {
                let file = file.unwrap_or_default();
                (file.clone(), quadrille_config::load(&file)?, Vec::new())
            }
        };
        let checked = quadrille_gateway::check(&model).map_err(Diagnostics::from)?;
        warnings.extend(checked.warnings);
        quadrille_acme::Plan::of(&model).iter().for_each(crate::cert::explain);
        for warning in warnings {
            println!("warning: {warning}");
        }
        for selection in checked.selections {
            println!("certificates of {selection}");
        }
        println!(
            "{}: ok ({} listeners, {} upstreams)",
            file.display(),
            model.listeners.len(),
            model.upstreams.len()
        );
        Ok(())
    }
}
