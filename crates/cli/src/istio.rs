//! `quadrille istio`.

use clap::Subcommand;
use quadrille_envoy::istio;
use std::path::{Path, PathBuf};

/// What Istio's configuration means for private keys.
#[derive(Subcommand)]
pub(crate) enum Istio {
    /// Show which private-key provider Istio configures for which proxy, and why.
    ///
    /// Reads IstioOperator, MeshConfig (alone or in Istio's ConfigMap) and manifests of pods, in any order and number:
    ///   quadrille istio resolve operator.yaml deployment.yaml
    /// A pod's annotation proxy.istio.io/config replaces the mesh's default whole.
    #[command(verbatim_doc_comment)]
    Resolve {
        /// Manifests in YAML or JSON; a file may hold several documents.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// For programs.
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
