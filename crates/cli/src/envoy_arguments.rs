//! Envoy's command line, so that whatever starts Envoy, such as Istio's agent, can start this instead.

use crate::{check::Check, envoy::ServedBootstrap, logging::Logging};
use clap::{Parser, ValueEnum};
use quadrille_control_plane::Trust;
use std::{ffi::OsStr, num::NonZeroUsize, path::PathBuf, time::Duration};

/// Serves Envoy's bootstrap, started as Envoy is.
#[derive(Parser)]
#[command(name = "quadrille", disable_version_flag = true, max_term_width = 110)]
pub(crate) struct EnvoyArguments {
    /// The bootstrap, in YAML or JSON.
    #[arg(short, long, value_name = "FILE")]
    config_path: PathBuf,
    /// How many event loops there are [default: as many as CPUs].
    #[arg(long, value_name = "COUNT")]
    concurrency: Option<NonZeroUsize>,
    /// How long listeners still accept connections after `/drain_listeners?graceful`, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    drain_time_s: u64,
    /// What to log.
    #[arg(short, long, value_name = "LEVEL", value_enum, ignore_case = true, default_value_t)]
    log_level: Level,
    /// Only `serve` and `validate`.
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    mode: Mode,
    #[command(flatten)]
    without_effect: WithoutEffect,
}

/// What Envoy is told and needs no telling here.
#[derive(clap::Args)]
struct WithoutEffect {
    /// Clients are told at once that a drain has begun.
    #[arg(long, value_name = "STRATEGY")]
    drain_strategy: Option<String>,
    /// There is no parent process.
    #[arg(long, value_name = "SECONDS")]
    parent_shutdown_time_s: Option<u64>,
    /// The bootstrap says which addresses are used.
    #[arg(long, value_name = "VERSION")]
    local_address_ip_version: Option<String>,
    /// Lines are written as they come.
    #[arg(long, value_name = "MILLISECONDS")]
    file_flush_interval_msec: Option<u64>,
    /// Lines are written as they come.
    #[arg(long, value_name = "KILOBYTES")]
    file_flush_min_size_kb: Option<u64>,
    /// There is no hot restart.
    #[arg(long)]
    disable_hot_restart: bool,
    /// Unknown fields are ignored or refused as docs/reference/envoy.md says.
    #[arg(long)]
    allow_unknown_static_fields: bool,
    /// As `--allow-unknown-static-fields`.
    #[arg(long)]
    ignore_unknown_dynamic_fields: bool,
    /// There is one level for all.
    #[arg(long, value_name = "LEVELS")]
    component_log_level: Option<String>,
    /// Lines have their own form.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Lines have their own form.
    #[arg(long)]
    log_format_escaped: bool,
    /// What is deprecated is not logged.
    #[arg(long)]
    skip_deprecated_logs: bool,
    /// The system decides on core dumps.
    #[arg(long)]
    enable_core_dump: bool,
    /// There are as many event loops as CPUs that the process may use.
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
    /// The arguments of this process, if they are Envoy's: they begin with the bootstrap's path.
    pub(crate) fn of_process() -> Option<Self> {
        let first = std::env::args_os().nth(1)?;
        is_envoys(&first).then(|| Self::parse_from(std::env::args_os()))
    }

    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        let level = match self.log_level {
            Level::Trace => "trace",
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warning => "warn",
            Level::Error | Level::Critical => "error",
            Level::Off => "off",
        };
        match self.mode {
            Mode::Serve => ServedBootstrap {
                file: self.config_path,
                trust: Trust::default(),
                threads: self.concurrency,
                drain: Duration::from_secs(self.drain_time_s),
            }
            .serve(&Logging::at(level)),
            Mode::Validate => Check::of_bootstrap(self.config_path).run(),
        }
    }
}

fn is_envoys(first: &OsStr) -> bool {
    let first = first.to_string_lossy();
    first == "-c" || first == "--config-path" || first.starts_with("--config-path=")
}
