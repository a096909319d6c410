//! `quadrille serve`.

use crate::{
    envoy::ServedBootstrap,
    flags::Flags,
    logging::Logging,
    process::{announce, run},
};
use quadrille_config::{ConfigurationFile, Diagnostics, Loaded, model::Gateway};
use quadrille_control_plane::{OnRefusedPolicy, RefusalsInReady, Trust};
use quadrille_gateway::ConfigurationSource;
use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    rc::Rc,
    time::Duration,
};

/// Terminate TLS and forward requests to upstreams.
///
/// Flags for one listener:
///   quadrille serve --listen 0.0.0.0:8443 --cert chain.pem --key key.pem --upstream 127.0.0.1:8080
/// A configuration file for more (see docs/reference/configuration.md):
///   quadrille serve quadrille.yaml
/// An unmodified Envoy bootstrap (see docs/guide/envoy.md):
///   quadrille serve --envoy-config bootstrap.yaml
///
/// SIGHUP or a change to the file or a certificate reloads without dropping a connection; SIGTERM drains.
///
/// RSA operations are computed in batches if the CPU supports it (AVX2: 4, AVX-512 IFMA: 8). To restrict the
/// instruction set, set QUADRILLE_CPU to avx2 or portable.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Serve {
    /// Configuration file in YAML, or `-` for standard input; replaces all flags below except the logging flags.
    #[arg(conflicts_with = "listen")]
    file: Option<PathBuf>,
    /// The configuration file, as a flag.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["file", "listen"])]
    config: Option<PathBuf>,
    /// Directory at which relative paths in standard input begin [default: the current one].
    #[arg(long, value_name = "DIRECTORY")]
    base_directory: Option<PathBuf>,
    /// Refuse a configuration file with warnings, at start and on reloads.
    #[arg(long)]
    strict: bool,
    /// Envoy bootstrap in YAML or JSON (see docs/reference/envoy.md); replaces the same flags as --config.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "config", "file"])]
    envoy_config: Option<PathBuf>,
    /// Directory whose files the bootstrap's control planes may reference [default: none]. May be repeated.
    #[arg(long, value_name = "DIRECTORY", requires = "envoy_config")]
    control_plane_files: Vec<PathBuf>,
    /// Action for a listener when its control plane sends an unsupported access policy.
    #[arg(long, value_name = "WHAT", requires = "envoy_config", default_value = "close")]
    on_refused_policy: RefusedPolicy,
    /// Reporting of rejected control-plane updates on the admin page /ready.
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
    /// Keep serving with the previous policy.
    Keep,
}

/// See [`RefusalsInReady`].
#[derive(Clone, Copy, clap::ValueEnum)]
enum Refusals {
    /// Report one line for each; the status does not change.
    Say,
    /// Report them, with status 503 while a listener is closed because of one.
    Fail,
    /// Do not report them.
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
        let (model, origin) = match self.file.or(self.config) {
            Some(file) => read(&file, self.base_directory.as_deref(), self.strict)?,
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

/// Serves a configuration file, with these settings of the log.
pub(crate) fn serve_file(file: &Path, logging: &Logging) -> Result<(), Vec<String>> {
    let (model, origin) = read(file, None, false)?;
    run(model, origin, logging, announce)
}

/// Reads a configuration file, and returns it with its source, which reads it again.
fn read(
    file: &Path,
    base_directory: Option<&Path>,
    strict: bool,
) -> Result<(Gateway, ConfigurationSource), Diagnostics> {
    let file = Rc::new(ConfigurationFile::open(file, base_directory)?);
    let warnings = Rc::new(RefCell::new(Vec::new()));
    let reread = {
        let (file, warnings) = (Rc::clone(&file), Rc::clone(&warnings));
        move || -> Result<Gateway, Diagnostics> {
            let loaded = file.read()?;
            let loaded = if strict { loaded.without_warnings()? } else { loaded };
            let Loaded { gateway, warnings: found, .. } = loaded;
            warnings.replace(found.iter().map(ToString::to_string).collect());
            Ok(gateway)
        }
    };
    let model = reread()?;
    let source = ConfigurationSource {
        included_files: Some(Box::new({
            let file = Rc::clone(&file);
            move || file.files()
        })),
        warnings: Some(Box::new(move || warnings.borrow().clone())),
        ..ConfigurationSource::reading(file.path().map(Path::to_owned), Box::new(reread))
    };
    Ok((model, source))
}
