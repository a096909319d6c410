//! Logs and the access log, by tracing: text or JSON.

use clap::ValueEnum;
use quadrille_config::model::AccessLog;
use quadrille_gateway::ACCESS_LOG_TARGET;
use std::{fs::OpenOptions, io};
use tracing_appender::non_blocking::{NonBlocking, WorkerGuard};
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::{FilterExt, LevelFilter, filter_fn},
    fmt,
    layer::SubscriberExt,
    registry::LookupSpan,
    util::SubscriberInitExt,
};

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, for machines.
    Json,
}

/// What is logged, and how.
#[derive(clap::Args, Clone)]
pub(crate) struct Logging {
    /// What to log: error, warn, info, debug, trace, or tracing's filter syntax.
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "QUADRILLE_LOG")]
    log_level: String,
    /// How log lines look; the access log's too.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: Format,
}

/// Lines are written by a thread of their own; dropping this writes what is left.
#[must_use]
pub(crate) struct Guard(#[expect(dead_code, reason = "held to be dropped")] Vec<WorkerGuard>);

impl Logging {
    /// Sets up logging for this process.
    pub(crate) fn start(&self, access: &AccessLog) -> Result<Guard, Vec<String>> {
        let level = EnvFilter::try_new(&self.log_level).map_err(|error| {
            vec![format!("--log-level: {error}; write one of error, warn, info, debug, trace")]
        })?;
        let (errors, errors_guard) = tracing_appender::non_blocking(io::stderr());
        // Without hints, every span of every library would be made, of which h2 has one for each frame, and then
        // dropped.
        let not_access =
            filter_fn(|event| event.target() != ACCESS_LOG_TARGET).with_max_level_hint(LevelFilter::TRACE);
        let log = self.layer(errors).with_filter(level.and(not_access));
        let (access, access_guard) = match access_writer(access)? {
            None => (None, None),
            Some((writer, guard)) => {
                let only_access = filter_fn(|event| event.target() == ACCESS_LOG_TARGET)
                    .with_max_level_hint(LevelFilter::INFO);
                (Some(self.layer(writer).with_filter(only_access)), Some(guard))
            }
        };
        tracing_subscriber::registry().with(log).with(access).init();
        Ok(Guard(std::iter::once(errors_guard).chain(access_guard).collect()))
    }

    fn layer<S>(&self, writer: NonBlocking) -> Box<dyn Layer<S> + Send + Sync>
    where
        S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    {
        match self.log_format {
            Format::Text => fmt::layer().with_ansi(false).with_target(false).with_writer(writer).boxed(),
            Format::Json => fmt::layer().json().flatten_event(true).with_writer(writer).boxed(),
        }
    }
}

fn access_writer(access: &AccessLog) -> Result<Option<(NonBlocking, WorkerGuard)>, Vec<String>> {
    Ok(match access {
        AccessLog::Off => None,
        AccessLog::Stdout => Some(tracing_appender::non_blocking(io::stdout())),
        AccessLog::File(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file = file
                .map_err(|error| vec![format!("cannot open the access log {}: {error}", path.display())])?;
            Some(tracing_appender::non_blocking(file))
        }
    })
}
