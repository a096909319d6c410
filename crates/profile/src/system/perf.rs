//! Sampling with Linux's `perf`.

use super::stacks::{Stack, parse};
use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

/// An installed `perf` that can be run.
#[derive(Clone, Debug)]
pub struct Perf {
    program: PathBuf,
}

/// Parameters of sampling.
#[derive(Clone, Debug)]
pub struct Sampling {
    /// Processes to sample, with all their threads.
    pub processes: Vec<u32>,
    /// Duration of sampling.
    pub time: Duration,
    /// Samples for each second of CPU time of each thread.
    pub frequency: u32,
}

/// Reason that sampling failed.
#[derive(Debug, thiserror::Error)]
pub enum PerfError {
    /// perf is not installed.
    #[error(
        "perf is not installed: `apt-get install linux-perf` on Debian, `linux-tools-$(uname -r)` on Ubuntu, `perf` elsewhere"
    )]
    Missing,
    /// perf cannot be started.
    #[error("perf cannot be run: {0}")]
    Run(#[source] io::Error),
    /// The system denies permission.
    #[error(
        "perf may not watch process {process}: run this as root or as the process's own user, and where \
         kernel.perf_event_paranoid is above 2, as root `sysctl kernel.perf_event_paranoid=1` (in a container it needs CAP_PERFMON, \
         and a seccomp profile that allows perf_event_open). perf says: {says}"
    )]
    NotPermitted {
        /// The process.
        process: u32,
        /// perf's own message.
        says: String,
    },
    /// The process has ended, or never existed.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// perf failed for another reason.
    #[error("perf {step} failed: {says}")]
    Failed {
        /// `record` or `script`.
        step: &'static str,
        /// perf's own message.
        says: String,
    },
    /// perf ran, but took no samples.
    #[error(
        "no samples in {0:?}: the process used no CPU; generate load (for example with `quadrille bench`)"
    )]
    Idle(Duration),
}

impl Perf {
    /// Looks for `perf` in `PATH`.
    pub fn find() -> Result<Self, PerfError> {
        let perf = Self { program: "perf".into() };
        match perf.command(&["--version"]).output() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(PerfError::Missing),
            Err(error) => Err(PerfError::Run(error)),
            // Ubuntu's is a script that fails if the kernel's own package is missing.
            Ok(output) if !output.status.success() => Err(PerfError::Missing),
            Ok(_) => Ok(perf),
        }
    }

    /// Samples the processes and parses the result; `directory` receives perf's data, some MB.
    pub fn sample(&self, sampling: &Sampling, directory: &Path) -> Result<Vec<Stack>, PerfError> {
        if let Some(gone) = sampling.gone() {
            return Err(PerfError::NoProcess(gone));
        }
        let data = directory.join("perf.data");
        let recorded = self.record(sampling, &data)?;
        if !recorded.status.success() {
            return Err(explained(sampling, &recorded));
        }
        let stacks = self.script(&data)?;
        if stacks.is_empty() { Err(PerfError::Idle(sampling.time)) } else { Ok(stacks) }
    }

    fn record(&self, sampling: &Sampling, data: &Path) -> Result<Output, PerfError> {
        let processes: Vec<String> = sampling.processes.iter().map(u32::to_string).collect();
        let mut command = self.command(&["record", "--quiet"]);
        // A clock event, since virtual machines often have no cycle counters. Release builds have no frame pointers,
        // so perf copies a piece of the stack and unwinds it with the exception tables.
        command.args(["--event", "cpu-clock", "--call-graph", "dwarf,16384", "--freq"]);
        command.arg(sampling.frequency.to_string()).arg("--pid").arg(processes.join(","));
        command.arg("--output").arg(data);
        command.args(["--", "sleep", &sampling.time.as_secs_f64().to_string()]);
        command.output().map_err(PerfError::Run)
    }

    fn script(&self, data: &Path) -> Result<Vec<Stack>, PerfError> {
        let mut command =
            self.command(&["script", "--no-inline", "--fields", "comm,tid,ip,sym,dso", "--input"]);
        let output = command.arg(data).output().map_err(PerfError::Run)?;
        if !output.status.success() {
            return Err(PerfError::Failed { step: "script", says: words(&output) });
        }
        Ok(parse(&String::from_utf8_lossy(&output.stdout)))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        // The output is parsed by a program, and perf must not prompt on a terminal.
        command.args(arguments).env("LC_ALL", "C").env("PAGER", "cat").stdin(Stdio::null());
        command
    }
}

impl Sampling {
    /// Returns one of the processes that does not exist, if any.
    fn gone(&self) -> Option<u32> {
        self.processes.iter().copied().find(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    }
}

fn explained(sampling: &Sampling, output: &Output) -> PerfError {
    let says = words(output);
    let process = sampling.processes.first().copied().unwrap_or_default();
    let denied = [
        "permission",
        "Permission",
        "perf_event_paranoid",
        "Operation not permitted",
        "Access to performance",
    ];
    if denied.iter().any(|word| says.contains(word)) {
        PerfError::NotPermitted { process, says }
    } else if let Some(gone) = sampling.gone() {
        PerfError::NoProcess(gone)
    } else {
        PerfError::Failed { step: "record", says }
    }
}

/// Returns the first lines of perf's output, joined into one.
fn words(output: &Output) -> String {
    let text = [String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout)].concat();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
    lines.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn sampling() -> Sampling {
        Sampling { processes: vec![std::process::id()], time: Duration::from_millis(100), frequency: 99 }
    }

    fn output(says: &str) -> Output {
        let status = std::process::ExitStatus::from_raw(0x100);
        Output { status, stdout: Vec::new(), stderr: says.into() }
    }

    #[test]
    fn what_is_not_permitted_comes_with_the_remedy() {
        let error = explained(
            &sampling(),
            &output("Error:\nAccess to performance monitoring and observability operations is limited.\n"),
        );
        let text = error.to_string();
        assert!(matches!(error, PerfError::NotPermitted { .. }), "{text}");
        assert!(
            text.contains("sysctl kernel.perf_event_paranoid=1") && text.contains("CAP_PERFMON"),
            "{text}"
        );
    }

    #[test]
    fn other_errors_are_perfs_own_words() {
        let error = explained(&sampling(), &output("event syntax error\n"));
        assert_eq!(error.to_string(), "perf record failed: event syntax error");
    }

    #[test]
    fn a_missing_perf_comes_with_the_install_command() {
        assert!(PerfError::Missing.to_string().contains("apt-get install linux-perf"));
    }

    #[test]
    fn a_process_that_is_not_there() {
        let none = Sampling { processes: vec![u32::MAX], ..sampling() };
        let perf = Perf { program: "perf".into() };
        let error = perf.sample(&none, Path::new("/nowhere")).unwrap_err();
        assert!(matches!(error, PerfError::NoProcess(u32::MAX)), "{error}");
    }
}
