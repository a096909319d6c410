//! `quadrille serve`.

use crate::{
    envoy::ServedBootstrap,
    flags::Flags,
    logging::Logging,
    process::{announce, run},
};
use quadrille_control_plane::{OnRefusedPolicy, RefusalsInReady, Trust};
use quadrille_gateway::ConfigurationSource;
use std::{path::PathBuf, time::Duration};

/// Terminate TLS and forward requests to upstreams.
///
/// With flags for one listener:
///   quadrille serve --listen 0.0.0.0:8443 --cert chain.pem --key key.pem --upstream 127.0.0.1:8080
/// With a file for more (see docs/reference/configuration.md):
///   quadrille serve --config quadrille.yaml
/// With Envoy's bootstrap, as it is (see docs/guide/envoy.md):
///   quadrille serve --envoy-config bootstrap.yaml
///
/// SIGHUP, or a change to the file or to a certificate, reloads without dropping a connection; SIGTERM drains.
///
/// RSA operations are computed in batches where the CPU can (AVX2: 4, AVX-512 IFMA: 8). To restrict that, set
/// QUADRILLE_CPU to avx2 or portable.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Serve {
    /// Configuration file in YAML; replaces all flags below except those for logging.
    #[arg(long, value_name = "FILE", conflicts_with = "listen")]
    config: Option<PathBuf>,
    /// Envoy's bootstrap, in YAML or JSON (see docs/reference/envoy.md); replaces all flags below likewise.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "config"])]
    envoy_config: Option<PathBuf>,
    /// Allow the bootstrap's control planes to name files below this directory [default: none]. May be repeated.
    #[arg(long, value_name = "DIRECTORY", requires = "envoy_config")]
    control_plane_files: Vec<PathBuf>,
    /// What to do with a listener when its control plane sends an access policy that is not supported.
    #[arg(long, value_name = "WHAT", requires = "envoy_config", default_value = "close")]
    on_refused_policy: RefusedPolicy,
    /// What the admin page /ready reports of rejected updates from control planes.
    #[arg(long, value_name = "WHAT", requires = "envoy_config", default_value = "say")]
    refusals_in_ready: Refusals,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    logging: Logging,
}

/// See [`OnRefusedPolicy`].
#[derive(Clone, Copy, clap::ValueEnum)]
enum RefusedPolicy {
    /// Close it until a supported one is received.
    Close,
    /// Keep serving with the policy before it.
    Keep,
}

/// See [`RefusalsInReady`].
#[derive(Clone, Copy, clap::ValueEnum)]
enum Refusals {
    /// One line for each; the status does not change.
    Say,
    /// The same, with status 503 while a listener is closed for that reason.
    Fail,
    /// Nothing.
    Hide,
}

impl From<Refusals> for RefusalsInReady {
    fn from(refusals: Refusals) -> Self {
        match refusals {
            Refusals::Say => Self::Say,
            Refusals::Fail => Self::Fail,
            Refusals::Hide => Self::Hide,
        }
    }
}

impl From<RefusedPolicy> for OnRefusedPolicy {
    fn from(policy: RefusedPolicy) -> Self {
        match policy {
            RefusedPolicy::Close => Self::Close,
            RefusedPolicy::Keep => Self::Keep,
        }
    }
}

impl Serve {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        if let Some(file) = self.envoy_config {
            let directories = self.control_plane_files.into();
            let trust = Trust {
                directories,
                on_refused_policy: self.on_refused_policy.into(),
                refusals_in_ready: self.refusals_in_ready.into(),
            };
            return ServedBootstrap { file, trust, threads: None, drain: DRAIN }.serve(&self.logging);
        }
        let (model, origin) = match self.config {
            Some(file) => (
                quadrille_config::load(&file)?,
                ConfigurationSource::reading(Some(file.clone()), rereader(file)),
            ),
            None => {
                let model = self.flags.into_gateway()?;
                let origin = ConfigurationSource::fixed(&model);
                (model, origin)
            }
        };
        run(model, origin, &self.logging, announce)
    }
}

/// Envoy's default.
const DRAIN: Duration = Duration::from_secs(600);

fn rereader(file: PathBuf) -> quadrille_gateway::ReadConfiguration {
    Box::new(move || quadrille_config::load(&file))
}
