//! `quadrille istio`.

use clap::Subcommand;
use quadrille_envoy::istio;
use std::path::{Path, PathBuf};

/// The effect of Istio's configuration on private keys.
#[derive(Subcommand)]
pub(crate) enum Istio {
    /// Show which private-key provider Istio configures for which proxy, and why.
    ///
    /// Reads IstioOperator, MeshConfig (alone or in Istio's ConfigMap) and pod manifests, in any order and number:
    ///   quadrille istio resolve operator.yaml deployment.yaml
    /// A pod's annotation proxy.istio.io/config replaces the mesh's default entirely.
    #[command(verbatim_doc_comment)]
    Resolve {
        /// Manifests in YAML or JSON; a file may contain several documents.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

impl Istio {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        let Self::Resolve { files, json } = self;
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        let found = istio::resolve(&files)?;
        if json {
            println!("{:#}", found.json());
            return Ok(());
        }
        for warning in found.warnings.lines() {
            println!("warning: {warning}");
        }
        print!("{found}");
        Ok(())
    }
}
