//! `quadrille check`.

use crate::{
    failure::Failure,
    findings::{self, Finding},
    logging,
};
use quadrille_config::{ConfigurationFile, Diagnostic, Diagnostics, Loaded, model::Gateway};
use std::path::{Path, PathBuf};

/// Check a configuration file and the files that it references, without serving it.
///
/// Reads the file, its certificates and keys, and the files of `acme`, and resolves its upstreams. Prints every error
/// and warning with its line, and for listeners with certificates of several kinds which one five well-known clients
/// receive. The exit status is 0 without errors, 1 with errors, and 2 if the arguments are invalid.
///
/// `quadrille -t FILE` is equivalent.
#[derive(clap::Args)]
pub(crate) struct Check {
    /// The configuration file; `-` is standard input.
    #[arg(required_unless_present_any = ["config", "envoy_config"])]
    file: Option<PathBuf>,
    /// The configuration file, as for `quadrille serve`.
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
    /// Check an Envoy bootstrap instead.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "config"])]
    envoy_config: Option<PathBuf>,
    /// Directory at which relative paths in standard input begin [default: the current one].
    #[arg(long, value_name = "DIRECTORY")]
    base_directory: Option<PathBuf>,
    /// Check the configuration alone: read no certificates and keys, resolve no names, and use no devices.
    #[arg(long)]
    offline: bool,
    /// Treat warnings as errors.
    #[arg(long)]
    strict: bool,
    /// Print errors and warnings as a JSON list of {file, line, column, level, key, message}.
    #[arg(long)]
    json: bool,
    /// Print errors and warnings as SARIF 2.1.0, for code scanning.
    #[arg(long, conflicts_with = "json")]
    sarif: bool,
}

impl Check {
    /// Checks an Envoy bootstrap.
    pub(crate) fn of_bootstrap(file: PathBuf) -> Self {
        Self { envoy_config: Some(file), ..Self::of_file(PathBuf::new()) }
    }

    /// Checks a configuration file.
    pub(crate) fn of_file(file: PathBuf) -> Self {
        Self {
            file: Some(file),
            config: None,
            envoy_config: None,
            base_directory: None,
            offline: false,
            strict: false,
            json: false,
            sarif: false,
        }
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        let file = self.envoy_config.as_ref().or(self.file.as_ref()).or(self.config.as_ref());
        let file = file.cloned().unwrap_or_default();
        let (mut found, mut selections) = (Vec::new(), Vec::new());
        let model = self.checked(&file, &mut found, &mut selections);
        let is_error = |finding: &Finding| self.strict || matches!(finding, Finding::Error(_));
        let failed = found.iter().any(is_error);
        let is_report = self.json || self.sarif;
        if is_report {
            let located: Vec<_> = found.iter().map(|finding| finding.located(&file, self.strict)).collect();
            let report = if self.sarif { findings::sarif(&located) } else { findings::list(&located) };
            println!("{report:#}");
        } else {
            for finding in &found {
                match is_error(finding) {
                    true => eprintln!("quadrille: {}", finding.text()),
                    false => eprintln!("warning: {}", finding.text()),
                }
            }
        }
        match model {
            Some(model) if !failed => {
                if !is_report {
                    announce(&file, &model, &selections, self.offline);
                }
                Ok(())
            }
            _ => Err(Failure::mistakes(Vec::new())),
        }
    }

    /// Reads and checks the configuration; `None` if it cannot be served.
    fn checked(
        &self,
        file: &Path,
        found: &mut Vec<Finding>,
        selections: &mut Vec<String>,
    ) -> Option<Gateway> {
        let model = match &self.envoy_config {
            Some(_) => crate::envoy::read(file).map(|(model, warnings)| {
                found.extend(warnings.into_iter().map(Finding::OfPart));
                model
            }),
            None => self.read(file).map(|loaded| {
                found.extend(loaded.warnings.iter().cloned().map(Finding::Warning));
                if let (false, Some(place)) = (self.offline, &loaded.access_log)
                    && let Err(problem) = logging::check(&loaded.gateway.access_log)
                {
                    found.push(Finding::Error(Diagnostic::new(place, problem)));
                }
                loaded.gateway
            }),
        };
        let model = model.map_err(|mistakes| found.extend(mistakes.into_iter().map(Finding::Error))).ok()?;
        if !self.offline {
            match quadrille_gateway::check(&model) {
                Ok(checked) => {
                    found.extend(checked.warnings.into_iter().map(Finding::OfPart));
                    selections.extend(checked.selections);
                }
                Err(mistakes) => found.extend(mistakes.into_iter().map(Finding::Error)),
            }
        }
        Some(model)
    }

    fn read(&self, file: &Path) -> Result<Loaded, Diagnostics> {
        ConfigurationFile::open(file, self.base_directory.as_deref())?.read()
    }
}

fn announce(file: &Path, model: &Gateway, selections: &[String], offline: bool) {
    if !offline {
        quadrille_acme::Plan::of(model).iter().for_each(crate::cert::explain);
    }
    for selection in selections {
        println!("certificates of {selection}");
    }
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let shown = if file == Path::new("-") { "standard input".into() } else { file.display().to_string() };
    let listeners = counted(model.listeners.len(), "listener");
    println!("{shown}: ok ({listeners}, {})", counted(model.upstreams.len(), "upstream"));
}
