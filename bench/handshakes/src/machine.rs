//! Description of the machine.

use std::fs;

use serde::Serialize;

/// The machine, without its host name.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's model name.
    pub processor: String,
    /// CPU features that determine the implementation of private-key operations.
    pub features: Vec<&'static str>,
    /// Number of cores that Linux reports.
    pub cores: usize,
    /// Version of the kernel.
    pub kernel: String,
    /// Load average over the last minute, before the measurements.
    pub load_average: String,
}

const FEATURES: [&str; 5] = ["aes", "avx2", "adx", "avx512f", "avx512ifma"];

impl Machine {
    /// Describes this machine.
    pub fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let value = |name: &str| {
            let line = cpuinfo.lines().find_map(|line| line.strip_prefix(name)?.split_once(": "));
            line.map(|(_, value)| value.to_owned())
        };
        let flags = value("flags").unwrap_or_default();
        let has = |feature: &&str| flags.split(' ').any(|flag| flag == *feature);
        Self {
            processor: value("model name").unwrap_or_else(|| "unknown processor".to_owned()),
            features: FEATURES.into_iter().filter(has).collect(),
            cores: cpuinfo.lines().filter(|line| line.starts_with("processor")).count(),
            kernel: read("/proc/sys/kernel/osrelease")
                .trim()
                .split('-')
                .next()
                .unwrap_or_default()
                .to_owned(),
            load_average: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { processor, features, cores, kernel, load_average } = self;
        let features = features.join(" ");
        write!(
            f,
            "{processor} ({features}), {cores} cores, Linux {kernel}, load average {load_average} at the start"
        )
    }
}
