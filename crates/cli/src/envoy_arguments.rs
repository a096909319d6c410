//! Envoy's command line, so that a program that starts Envoy, such as Istio's agent, can start this one instead.

use crate::{check::Check, envoy::ServedBootstrap, failure::Failure, logging::Logging, serve};
use clap::{Parser, ValueEnum};
use quadrille_control_plane::Trust;
use std::{ffi::OsStr, num::NonZeroUsize, path::PathBuf, time::Duration};

/// Serves an Envoy bootstrap, or a configuration of Quadrille, with Envoy's arguments.
#[derive(Parser)]
#[command(name = "quadrille", disable_version_flag = true, max_term_width = 110)]
pub(crate) struct EnvoyArguments {
    /// The bootstrap, in YAML or JSON, or a configuration file of Quadrille; its keys tell them apart.
    #[arg(short, long, value_name = "FILE")]
    config_path: PathBuf,
    /// Number of event loops [default: one for each CPU].
    #[arg(long, value_name = "COUNT")]
    concurrency: Option<NonZeroUsize>,
    /// Seconds for which listeners still accept connections after `/drain_listeners?graceful`.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    drain_time_s: u64,
    /// The log level.
    #[arg(short, long, value_name = "LEVEL", value_enum, ignore_case = true, default_value_t)]
    log_level: Level,
    /// `serve` or `validate`.
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    mode: Mode,
    #[command(flatten)]
    without_effect: WithoutEffect,
}

/// Arguments of Envoy that have no effect here.
#[derive(clap::Args)]
struct WithoutEffect {
    /// Clients are notified of a drain at once.
    #[arg(long, value_name = "STRATEGY")]
    drain_strategy: Option<String>,
    /// There is no parent process.
    #[arg(long, value_name = "SECONDS")]
    parent_shutdown_time_s: Option<u64>,
    /// The bootstrap determines the addresses.
    #[arg(long, value_name = "VERSION")]
    local_address_ip_version: Option<String>,
    /// Lines are written immediately.
    #[arg(long, value_name = "MILLISECONDS")]
    file_flush_interval_msec: Option<u64>,
    /// Lines are written immediately.
    #[arg(long, value_name = "KILOBYTES")]
    file_flush_min_size_kb: Option<u64>,
    /// There is no hot restart.
    #[arg(long)]
    disable_hot_restart: bool,
    /// Unknown fields are ignored or rejected as described in docs/reference/envoy.md.
    #[arg(long)]
    allow_unknown_static_fields: bool,
    /// See `--allow-unknown-static-fields`.
    #[arg(long)]
    ignore_unknown_dynamic_fields: bool,
    /// All components have the same level.
    #[arg(long, value_name = "LEVELS")]
    component_log_level: Option<String>,
    /// The format of log lines is fixed.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// The format of log lines is fixed.
    #[arg(long)]
    log_format_escaped: bool,
    /// The use of deprecated fields is not logged.
    #[arg(long)]
    skip_deprecated_logs: bool,
    /// Core dumps are left to the system.
    #[arg(long)]
    enable_core_dump: bool,
    /// There is one event loop for each CPU that the process may use.
    #[arg(long)]
    cpuset_threads: bool,
    /// There is no hot restart.
    #[arg(long, value_name = "NUMBER")]
    restart_epoch: Option<u32>,
    /// There is no hot restart.
    #[arg(long, value_name = "NUMBER")]
    base_id: Option<u32>,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Level {
    Trace,
    Debug,
    #[default]
    Info,
    #[value(alias = "warn")]
    Warning,
    #[value(alias = "err")]
    Error,
    Critical,
    Off,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum Mode {
    #[default]
    Serve,
    Validate,
}

impl EnvoyArguments {
    /// Returns the arguments of this process if they are Envoy's, which start with the bootstrap's path.
    pub(crate) fn of_process() -> Option<Self> {
        let first = std::env::args_os().nth(1)?;
        is_envoys(&first).then(|| Self::parse_from(std::env::args_os()))
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        let level = match self.log_level {
            Level::Trace => "trace",
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warning => "warn",
            Level::Error | Level::Critical => "error",
            Level::Off => "off",
        };
        let is_native = quadrille_config::is_native(&self.config_path);
        if is_native && self.concurrency.is_some() {
            return Err(vec!["--concurrency: set `threads` in the configuration file".to_owned()].into());
        }
        match self.mode {
            Mode::Serve if is_native => Ok(serve::serve_file(&self.config_path, &Logging::at(level))?),
            Mode::Validate if is_native => Check::of_file(self.config_path).run(),
            Mode::Serve => Ok(ServedBootstrap {
                file: self.config_path,
                trust: Trust::default(),
                threads: self.concurrency,
                drain: Duration::from_secs(self.drain_time_s),
            }
            .serve(&Logging::at(level))?),
            Mode::Validate => Check::of_bootstrap(self.config_path).run(),
        }
    }
}

fn is_envoys(first: &OsStr) -> bool {
    let first = first.to_string_lossy();
    first == "-c" || first == "--config-path" || first.starts_with("--config-path=")
}
