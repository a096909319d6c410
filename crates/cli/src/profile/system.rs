//! `quadrille profile system`.

use super::{
    flame,
    sample_load::{OwnLoad, SampleLoad},
};
use quadrille_profile::system::{
    Class, Perf, Sampling, Shares, Stack, Step, Steps, Tree, listening_on, program_of,
};
use std::{
    fmt::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

/// Samples a running gateway, or any process, and prints its CPU time by algorithm and by TLS step.
///
/// Without --pid and --listens-on it starts a built-in gateway on a free port, puts a load on it and samples that.
/// Sampling uses Linux's perf (Debian: linux-perf), as root or the process's own user. The process needs no changes.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  quadrille profile system --svg flame.svg                            a built-in gateway and load
  quadrille profile system --key rsa2048 --tls 1.2 --backend scalar   RSA without lanes
  quadrille profile system --listens-on 127.0.0.1:9901 --seconds 30   the gateway with this admin address
  quadrille profile system --pid 1234 --svg flame.svg                 any process")]
pub(super) struct System {
    /// The process to sample. May be repeated.
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
    /// The process or processes that listen on this local address, such as a gateway's admin address.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "pid")]
    listens_on: Option<SocketAddr>,
    /// Duration in seconds.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=600))]
    seconds: u16,
    /// Samples for each second of CPU time.
    #[arg(long, value_name = "N", default_value_t = 499, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    frequency: u32,
    /// Draw a flame graph into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON: the samples, and the shares of each class and each step.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    own: OwnLoad,
}

impl System {
    pub(super) fn run(self) -> Result<(), String> {
        let perf = Perf::find().map_err(|error| error.to_string())?;
        let directory =
            tempfile::tempdir().map_err(|error| format!("cannot make a temporary directory: {error}"))?;
        let (stacks, what) = match self.processes()? {
            Some(processes) => {
                let name = processes.first().and_then(|pid| program_of(*pid)).unwrap_or_default();
                let stacks = self.sample(&perf, processes.clone(), directory.path())?;
                (stacks, format!("{name} (process {})", numbers(&processes)))
            }
            None => {
                let load = SampleLoad::start(&self.own, directory.path())?;
                let stacks = self.sample(&perf, vec![load.process()], directory.path());
                (stacks?, load.finish()?)
            }
        };
        if let Some(file) = &self.svg {
            let picture = flame::graph(&Tree::from_stacks(&stacks), &what);
            std::fs::write(file, picture)
                .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        }
        let shares = Shares::from_stacks(&stacks);
        println!(
            "{}",
            if self.json { json(&shares, &stacks, &what) } else { self.text(&shares, &stacks, &what) }
        );
        Ok(())
    }

    /// Returns the processes given by flags, if any.
    fn processes(&self) -> Result<Option<Vec<u32>>, String> {
        match self.listens_on {
            Some(address) => listening_on(address).map(Some).map_err(|error| error.to_string()),
            None if self.pid.is_empty() => Ok(None),
            None => Ok(Some(self.pid.clone())),
        }
    }

    fn sample(&self, perf: &Perf, processes: Vec<u32>, directory: &Path) -> Result<Vec<Stack>, String> {
        let time = Duration::from_secs(u64::from(self.seconds));
        let sampling = Sampling { processes, time, frequency: self.frequency };
        perf.sample(&sampling, directory).map_err(|error| error.to_string())
    }

    fn text(&self, shares: &Shares, stacks: &[Stack], what: &str) -> String {
        let cpu = shares.samples() as f64 / f64::from(self.frequency);
        let mut text = format!(
            "{what}\n{} samples in {} s: about {:.0} % of one core\n\n",
            shares.samples(),
            self.seconds,
            100.0 * cpu / f64::from(self.seconds)
        );
        for class in Class::ALL {
            let share = shares.share(class);
            // Classes without samples are omitted, except `Unknown`: its 0 % shows that all samples were classified.
            if share > 0.0 || class == Class::Unknown {
                let _ = writeln!(text, "  {class:24} {:>5.1} %  {}", 100.0 * share, bar(share));
            }
        }
        text.push('\n');
        let steps = Steps::from_stacks(stacks);
        for step in Step::ALL {
            let share = steps.share(step);
            if share > 0.0 {
                let _ = writeln!(text, "  {step:24} {:>5.1} %  {}", 100.0 * share, bar(share));
            }
        }
        if !kernel_seen(stacks) {
            text.push_str("\nThe kernel was not sampled: this requires root, or kernel.perf_event_paranoid at 1 or below.\n");
        }
        text.push_str(&few(shares.samples()));
        if shares.share(Class::Unknown) > 0.1 {
            text.push_str(
                "\nMany functions have no name: the program or a library is stripped, or its file has been replaced since it started.\n",
            );
        }
        text.trim_end().to_owned()
    }
}

/// Number of samples for shares that are accurate to about three points.
const ENOUGH: u64 = 1000;

/// Returns a note if there are few samples.
fn few(samples: u64) -> String {
    if samples >= ENOUGH {
        return String::new();
    }
    let points = 100.0 * margin(samples);
    format!(
        "\n{samples} samples are few: a share may be {points:.0} points off. Use more --seconds, more load or a higher \
         --frequency for more.\n"
    )
}

/// Returns the margin of error of a share of one half at 95 % confidence: two standard deviations.
fn margin(samples: u64) -> f64 {
    1.0 / (samples.max(1) as f64).sqrt()
}

fn bar(share: f64) -> String {
    "#".repeat((share * 50.0).round() as usize)
}

fn kernel_seen(stacks: &[Stack]) -> bool {
    stacks.iter().any(|stack| stack.frames.first().is_some_and(quadrille_profile::system::Frame::in_kernel))
}

fn json(shares: &Shares, stacks: &[Stack], what: &str) -> String {
    let steps = Steps::from_stacks(stacks);
    let by_class =
        by_name(Class::ALL.iter().map(|class| (serde_json::to_value(class), shares.share(*class))));
    let by_step = by_name(Step::ALL.iter().map(|step| (serde_json::to_value(step), steps.share(*step))));
    let report = serde_json::json!({
        "what": what,
        "samples": shares.samples(),
        "margin": margin(shares.samples()),
        "kernel_sampled": kernel_seen(stacks),
        "shares": by_class,
        "steps": by_step,
    });
    serde_json::to_string_pretty(&report).unwrap_or_default()
}

fn by_name(
    shares: impl Iterator<Item = (serde_json::Result<serde_json::Value>, f64)>,
) -> serde_json::Map<String, serde_json::Value> {
    shares.filter_map(|(name, share)| Some((name.ok()?.as_str()?.to_owned(), share.into()))).collect()
}

fn numbers(processes: &[u32]) -> String {
    let numbers: Vec<String> = processes.iter().map(u32::to_string).collect();
    numbers.join(", ")
}

#[cfg(test)]
mod tests {
    use super::few;

    #[test]
    fn few_samples_are_said_to_be_few() {
        assert!(few(100).starts_with("\n100 samples are few: a share may be 10 points off."), "{}", few(100));
        assert_eq!(few(1000), "");
        assert!(few(0).contains("100 points"), "{}", few(0));
    }
}
