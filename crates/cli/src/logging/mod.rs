//! Logs and the access log, as text or JSON, written with `tracing`.
//!
//! - `access_format`: lines of the access log with their own format; `append_file`, `rotated_file`, `syslog`: its
//!   destinations.

mod access_format;
mod append_file;
mod rotated_file;
mod syslog;

use access_format::AccessFormat;
use append_file::open_file;
use clap::ValueEnum;
use quadrille_config::model::{AccessLog, RotatedFile, Syslog};
use quadrille_gateway::{ACCESS_LOG_TARGET, LogLevel};
use rotated_file::RotatingWriter;
use std::{
    io::{self, Write},
    path::Path,
    str::FromStr,
    sync::{Arc, Mutex, PoisonError, RwLock},
};
use syslog::SyslogWriter;
use tracing_appender::non_blocking::{NonBlocking, WorkerGuard};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{Directive, FilterExt, LevelFilter, filter_fn},
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    registry::LookupSpan,
    reload,
    util::SubscriberInitExt,
};

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    /// Human-readable text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Log level and format.
#[derive(clap::Args, Clone)]
pub(crate) struct Logging {
    /// Log level: error, warn, info, debug, trace, or a filter in tracing's syntax.
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "QUADRILLE_LOG")]
    log_level: String,
    /// Format of the log and of the access log.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: Format,
}

/// Keeps the writer threads of the logs alive. Dropping it writes the remaining lines.
#[must_use]
pub(crate) struct Guard {
    _errors: WorkerGuard,
    access: AccessTarget,
    level: Arc<RunningLevel>,
}

impl Guard {
    /// Returns the target of the access log, which can be changed while the process runs.
    pub(crate) fn access_log(&self) -> AccessTarget {
        self.access.clone()
    }

    /// Returns the level of the log, which can be changed while the process runs.
    pub(crate) fn level(&self) -> Arc<dyn LogLevel> {
        Arc::clone(&self.level) as _
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The other clones are part of the process's subscriber, which is never dropped.
        self.access.close();
    }
}

/// The level of the process's log.
struct RunningLevel {
    configured: String,
    current: Mutex<String>,
    filter: reload::Handle<EnvFilter, Registry>,
}

impl LogLevel for RunningLevel {
    fn current(&self) -> String {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn configured(&self) -> String {
        self.configured.clone()
    }

    fn set(&self, level: Option<&str>) -> Result<(), String> {
        let level = level.unwrap_or(&self.configured);
        let filter = filter(level)?;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        self.filter.reload(filter).map_err(|error| error.to_string())?;
        level.clone_into(&mut current);
        Ok(())
    }
}

/// The target of the access log. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct AccessTarget(Arc<RwLock<Target>>);

#[derive(Default)]
struct Target {
    log: AccessLog,
    syslog: Option<Syslog>,
    /// Writers to the local destination and to the syslog server.
    writers: [Option<(NonBlocking, WorkerGuard)>; 2],
}

impl AccessTarget {
    /// Writes lines to `log` and to `syslog` from now on.
    ///
    /// # Errors
    /// If a target cannot be opened; the previous ones stay in use.
    pub(crate) fn set(&self, log: &AccessLog, syslog: Option<&Syslog>) -> Result<(), String> {
        let target = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_same = target.log == *log && target.syslog.as_ref() == syslog;
        drop(target);
        if is_same { Ok(()) } else { self.open(log, syslog) }
    }

    /// Reopens the access log's file, for log rotation.
    ///
    /// # Errors
    /// If the file cannot be opened; the previous one stays in use.
    pub(crate) fn reopen(&self) -> Result<(), String> {
        let target = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (log, syslog) = (target.log.clone(), target.syslog.clone());
        drop(target);
        match log {
            AccessLog::Off | AccessLog::Stdout => Ok(()),
            AccessLog::File(_) | AccessLog::RotatedFile(_) => self.open(&log, syslog.as_ref()),
        }
    }

    fn open(&self, log: &AccessLog, syslog: Option<&Syslog>) -> Result<(), String> {
        let writers = [access_writer(log)?, syslog.map(syslog_writer).transpose()?];
        let next = Target { log: log.clone(), syslog: syslog.cloned(), writers };
        let mut target = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *target, next);
        // The lock is released first: dropping the previous writer flushes it, which must not block other writers.
        drop(target);
        drop(before);
        Ok(())
    }

    fn close(&self) {
        let last = std::mem::take(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner));
        drop(last);
    }
}

impl MakeWriter<'_> for AccessTarget {
    type Writer = LineWriter;

    fn make_writer(&self) -> Self::Writer {
        let target = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let writer = |index: usize| target.writers[index].as_ref().map(|(writer, _)| writer.clone());
        LineWriter([writer(0), writer(1)])
    }
}

/// Writes a line to all destinations.
pub(crate) struct LineWriter([Option<NonBlocking>; 2]);

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.iter_mut().flatten().try_for_each(|writer| writer.write_all(line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Logging {
    /// Text lines of this level and above.
    pub(crate) fn at(level: &str) -> Self {
        Self { log_level: level.to_owned(), log_format: Format::Text }
    }

    /// Sets up logging for this process.
    pub(crate) fn start(&self, access: &AccessLog, syslog: Option<&Syslog>) -> Result<Guard, Vec<String>> {
        let level = filter(&self.log_level).map_err(|problem| vec![format!("--log-level: {problem}")])?;
        let (level, handle) = reload::Layer::new(level);
        let (errors, errors_guard) = tracing_appender::non_blocking(io::stderr());
        // Without level hints, every span of every library would be created and then dropped; h2 has one for each
        // frame.
        let not_access =
            filter_fn(|event| event.target() != ACCESS_LOG_TARGET).with_max_level_hint(LevelFilter::TRACE);
        let log = self.layer(errors).with_filter(level.and(not_access));
        let target = AccessTarget::default();
        target.set(access, syslog).map_err(|problem| vec![problem])?;
        let only_access =
            filter_fn(|event| event.target() == ACCESS_LOG_TARGET).with_max_level_hint(LevelFilter::INFO);
        let access = self.access_layer(target.clone()).with_filter(only_access);
        tracing_subscriber::registry().with(log).with(access).init();
        let (configured, current) = (self.log_level.clone(), Mutex::new(self.log_level.clone()));
        let level = Arc::new(RunningLevel { configured, current, filter: handle });
        Ok(Guard { _errors: errors_guard, access: target, level })
    }

    fn layer<S, W>(&self, writer: W) -> Box<dyn Layer<S> + Send + Sync>
    where
        S: tracing::Subscriber + for<'a> LookupSpan<'a>,
        W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
    {
        match self.log_format {
            Format::Text => fmt::layer().with_ansi(false).with_target(false).with_writer(writer).boxed(),
            Format::Json => {
                fmt::layer().json().flatten_event(true).with_target(false).with_writer(writer).boxed()
            }
        }
    }

    /// Returns a layer like [`Self::layer`] that writes lines with their own format unchanged.
    fn access_layer<S>(&self, writer: AccessTarget) -> Box<dyn Layer<S> + Send + Sync>
    where
        S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    {
        match self.log_format {
            Format::Text => {
                let layer = fmt::layer().with_ansi(false).with_target(false).with_writer(writer);
                layer.map_event_format(AccessFormat).boxed()
            }
            Format::Json => {
                let layer = fmt::layer().json().flatten_event(true).with_target(false).with_writer(writer);
                layer.map_event_format(AccessFormat).boxed()
            }
        }
    }
}

/// kube's client would log the whole text of a response that it cannot read, which may be a list of Secrets; its watches
/// would log each attempt.
const QUIET: [&str; 2] = ["kube_client=error", "kube_runtime=error"];

/// Parses a level, or a filter in tracing's syntax. A single word that is not a level is refused: in that syntax it
/// is the name of a module, and everything else would be left out.
fn filter(text: &str) -> Result<EnvFilter, String> {
    let remedy = "write error, warn, info, debug, trace or off, or a filter such as `info,h2=debug`";
    let is_word = text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    if text.is_empty() || is_word && text.parse::<LevelFilter>().is_err() {
        return Err(format!("`{}` is not a level; {remedy}", text.escape_debug()));
    }
    let quiet = |filter: EnvFilter| {
        QUIET.iter().try_fold(filter, |filter, quiet| Ok(filter.add_directive(Directive::from_str(quiet)?)))
    };
    EnvFilter::try_new(text).and_then(quiet).map_err(|error| format!("{error}; {remedy}"))
}

fn syslog_writer(syslog: &Syslog) -> Result<(NonBlocking, WorkerGuard), String> {
    let writer = SyslogWriter::open(syslog).map_err(|error| format!("cannot send to syslog: {error}"))?;
    Ok(tracing_appender::non_blocking(writer))
}

fn access_writer(access: &AccessLog) -> Result<Option<(NonBlocking, WorkerGuard)>, String> {
    Ok(match access {
        AccessLog::Off => None,
        AccessLog::Stdout => Some(tracing_appender::non_blocking(io::stdout())),
        AccessLog::File(path) => {
            Some(tracing_appender::non_blocking(open_file(path).map_err(|error| unopened(path, &error))?))
        }
        AccessLog::RotatedFile(settings) => {
            let writer = RotatingWriter::open(settings).map_err(|error| unopened(&settings.path, &error))?;
            Some(tracing_appender::non_blocking(writer))
        }
    })
}

fn unopened(path: &Path, error: &io::Error) -> String {
    format!("cannot open the access log {}: {error}", path.display())
}

/// Returns whether the access log can be opened, without creating its file.
///
/// # Errors
/// The reason why it cannot be opened.
pub(crate) fn check(access: &AccessLog) -> Result<(), String> {
    let (AccessLog::File(path) | AccessLog::RotatedFile(RotatedFile { path, .. })) = access else {
        return Ok(());
    };
    let failed = |error: io::Error| unopened(path, &error);
    if path.exists() {
        return open_file(path).map(drop).map_err(failed);
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(parent, access).map_err(|error| failed(error.into()))
}

#[cfg(test)]
mod tests {
    use super::filter;

    #[test]
    fn a_mistyped_level_is_refused() {
        for text in ["info", "DEBUG", "off", "warn,h2=debug", "quadrille_gateway=trace"] {
            assert!(filter(text).is_ok(), "{text}");
        }
        for text in ["dbug", "", "info,h2=loud", "h2"] {
            assert!(filter(text).is_err(), "{text}");
        }
    }
}
