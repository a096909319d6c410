//! The independent generator: h2load, of nghttp2, on OpenSSL.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;

/// h2load, and its version.
#[derive(Clone, Debug)]
pub struct H2load {
    program: PathBuf,
    /// Version reported by h2load.
    pub version: String,
}

/// The summary that h2load prints.
#[derive(Debug, PartialEq)]
pub(crate) struct Summary {
    /// Requests per second, with the handshakes of their connections.
    pub(crate) per_second: f64,
    /// Total length of all bodies, without framing.
    pub(crate) body_bytes: u64,
    succeeded: u64,
}

impl H2load {
    /// Checks that `program` runs, and reads its version.
    pub fn find(program: &Path) -> Result<Self> {
        let output = Command::new(program)
            .arg("--version")
            .output()
            .with_context(|| format!("{} does not run (package nghttp2-client)", program.display()))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        ensure!(version.starts_with("h2load"), "{} is not h2load", program.display());
        Ok(Self { program: program.into(), version })
    }

    /// Builds a command with one thread that makes `requests` requests on `connections` connections.
    pub(crate) fn command(&self, connections: usize, requests: u64) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["--threads", "1"]);
        command.args(["--clients", &connections.to_string(), "--requests", &requests.to_string()]);
        command
    }
}

/// Runs h2load; all `requests` must succeed.
pub(crate) fn run(h2load: &mut Command, requests: u64) -> Result<Summary> {
    let output = h2load.output().context("h2load does not run")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(summary) = summary(&text) else {
        bail!("h2load says: {}", text.lines().last().unwrap_or("nothing"));
    };
    ensure!(summary.succeeded == requests, "h2load: {} of {requests} requests succeeded", summary.succeeded);
    Ok(summary)
}

fn summary(text: &str) -> Option<Summary> {
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let part = |line: &'_ str, end: &str| {
        line.split(", ").find_map(|part| part.trim().strip_suffix(end)).map(str::to_owned)
    };
    let body = part(line("traffic: ")?, ") data")?;
    Some(Summary {
        per_second: part(line("finished in ")?, " req/s")?.parse().ok()?,
        body_bytes: body.rsplit_once('(')?.1.parse().ok()?,
        succeeded: part(line("requests: ")?, " succeeded")?.parse().ok()?,
    })
}

/// Reads from the file of `--log-file` the microseconds from the start of each request to the end of its response.
pub(crate) fn latencies(log: &Path) -> Result<Histogram<u64>> {
    let text = fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
    let mut all = Histogram::new(3)?;
    for line in text.lines() {
        let latency = line.split('\t').nth(2).and_then(|us| us.parse().ok());
        all.record(latency.with_context(|| format!("h2load logs: {line}"))?)?;
    }
    ensure!(!all.is_empty(), "h2load logs no request");
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_h2load_prints() {
        let text = "starting benchmark...\nfinished in 6.07s, 329.68 req/s, 2.1KB/s\n\
                    requests: 2000 total, 2000 started, 2000 done, 1999 succeeded, 1 failed, 0 errored, 0 timeout\n\
                    traffic: 3.94KB (4032) total, 1.75KB (1792) headers (space savings 70.53%), 128B (128) data\n";
        let expected = Summary { per_second: 329.68, body_bytes: 128, succeeded: 1999 };
        assert_eq!(summary(text), Some(expected));
        assert_eq!(summary("starting benchmark...\n"), None);
    }

    #[test]
    fn what_h2load_logs() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        fs::write(
            &log,
            "1795379821752705\t200\t300\n1795379821752706\t200\t100\n1795379821752709\t200\t200\n",
        )
        .unwrap();
        let seen = latencies(&log).unwrap();
        assert_eq!((seen.value_at_percentile(50.0), seen.len()), (200, 3));
        fs::write(&log, "").unwrap();
        assert!(latencies(&log).is_err(), "an empty log is not a latency of 0");
    }
}
