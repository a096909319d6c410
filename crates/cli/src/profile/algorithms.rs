//! `quadrille profile algorithms`.

use quadrille_profile::{
    algorithms::{Effort, Purpose, Rate, measure},
    gpu,
    handshake::{self, HandshakeKind, Suite},
};
use std::{
    fmt::Write as _,
    io::{IsTerminal, Write as _},
    time::Duration,
};

/// Measures this machine's rates by algorithm.
///
/// Rates are of one core by CPU time, as medians over interleaved rounds. RSA operations in lanes are measured with
/// all lanes filled, as under load. An NVIDIA GPU, if there is one, is measured by wall-clock time, and compared with
/// all cores.
#[derive(clap::Args)]
pub(super) struct Algorithms {
    /// Interleaved rounds.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// CPU milliseconds for each algorithm in each round.
    #[arg(long, value_name = "MS", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    turn: u16,
    /// Print JSON: a list of rates; a GPU's rates have a `device`.
    #[arg(long)]
    json: bool,
}

impl Algorithms {
    pub(super) fn run(self) -> Result<(), String> {
        let effort =
            Effort { rounds: usize::from(self.rounds), turn: Duration::from_millis(u64::from(self.turn)) };
        let terminal = std::io::stderr().is_terminal();
        let rates = measure(effort, |round| {
            if terminal {
                eprint!("\r\x1b[Kround {} of {}", round + 1, effort.rounds);
                let _ = std::io::stderr().flush();
            }
        })
        .map_err(|error| format!("BoringSSL: {error}"))?;
        if terminal {
            eprint!("\r\x1b[K");
        }
        let gpu = on_gpu(effort);
        if self.json {
            let all = (rates.iter().map(serde_json::to_value))
                .chain(gpu.iter().flatten().map(serde_json::to_value))
                .collect::<Result<Vec<_>, _>>();
            let text =
                all.and_then(|all| serde_json::to_string_pretty(&all)).map_err(|error| error.to_string())?;
            println!("{text}");
        } else {
            print!("{}{}\n{}", table(&rates), gpu_table(&gpu), meaning(&rates)?);
        }
        Ok(())
    }
}

/// Measures the GPU for as long as one CPU algorithm in all rounds. The error is the reason why there is no GPU.
fn on_gpu(effort: Effort) -> Result<Vec<gpu::Rates>, String> {
    let opened = gpu::open().map_err(|reason| reason.to_string())?;
    let turn = effort.turn * u32::try_from(effort.rounds).unwrap_or(u32::MAX);
    gpu::measure(&opened, &gpu::KeySize::ALL, turn.max(Duration::from_millis(500)))
}

fn gpu_table(measured: &Result<Vec<gpu::Rates>, String>) -> String {
    let rates = match measured {
        Ok(rates) => rates,
        Err(reason) => return format!("Signing on a GPU: {reason}\n"),
    };
    let device = rates.first().map_or("the GPU", |rate| rate.device.as_str());
    let mut text = format!(
        "Signing on {device}, by wall-clock time, whole GPU; latency at half of that rate\n  {:18} {:>12} {:>8} {:>18} {:>20} {:>10}\n",
        "", "a second", "batch", "ms median, p99", "of multiply bound", "all cores"
    );
    for rate in rates {
        let latency = format!("{:.1}, {:.1}", rate.milliseconds_median, rate.milliseconds_p99);
        let bound = format!("{:.0} %", rate.part_of_multiply_bound * 100.0);
        let _ = writeln!(
            text,
            "  {:18} {:>12.0} {:>8} {latency:>18} {bound:>20} {:>10.0}",
            rate.algorithm, rate.per_second, rate.batch, rate.cpu_per_second
        );
    }
    text
}

fn table(rates: &[Rate]) -> String {
    let mut text = String::new();
    let sections = [
        (Purpose::Sign, "Signing: the private-key operation of each full handshake"),
        (Purpose::Verify, "Verifying"),
        (Purpose::Exchange, "Key exchange, the server's side"),
    ];
    for (purpose, title) in sections {
        let _ = writeln!(text, "{title}\n  {:18} {:8} {:>12} {:>10}", "", "by", "a second", "us each");
        for rate in rates.iter().filter(|rate| rate.purpose == purpose) {
            let Rate { algorithm, by, microseconds, .. } = rate;
            let _ =
                writeln!(text, "  {algorithm:18} {by:8} {:>12.0} {microseconds:>10.1}", rate.per_second());
        }
    }
    for (purpose, title) in [(Purpose::Record, "Records"), (Purpose::Hash, "Hashes")] {
        text.push_str(&bulk(rates, purpose, title));
    }
    text
}

/// Returns a table with one line for each algorithm and one column for each size.
fn bulk(rates: &[Rate], purpose: Purpose, title: &str) -> String {
    let of_purpose: Vec<&Rate> = rates.iter().filter(|rate| rate.purpose == purpose).collect();
    let mut sizes: Vec<usize> = of_purpose.iter().filter_map(|rate| rate.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut names: Vec<&str> = Vec::new();
    for rate in &of_purpose {
        if !names.contains(&rate.algorithm.as_str()) {
            names.push(&rate.algorithm);
        }
    }
    let mut text = format!("{title}, MB/s by size\n  {:22}", "");
    for size in &sizes {
        let _ = write!(text, "{:>9}", format!("{size} B"));
    }
    let _ = writeln!(text, "{:>16}", "4 KiB in us");
    for name in names {
        let find = |size| of_purpose.iter().find(|rate| rate.algorithm == name && rate.bytes == Some(size));
        let _ = write!(text, "  {name:22}");
        for size in &sizes {
            let rate = find(*size).map_or(f64::NAN, |rate| *size as f64 / rate.microseconds);
            let _ = write!(text, "{rate:>9.0}");
        }
        let _ = writeln!(text, "{:>16.1}", find(4096).map_or(f64::NAN, |rate| rate.microseconds));
    }
    text
}

/// Returns the handshakes a second that the rates imply for each certificate, and recommendations.
fn meaning(rates: &[Rate]) -> Result<String, String> {
    let kind = HandshakeKind { suite: Suite::EcdheEcdsa, tls13: true, resumed: false };
    let whole = handshake::measure(kind, handshake::Side::Server, 100).map_err(|error| error.to_string())?;
    let rest = whole.total - whole.key_operation;
    let mut text = format!(
        "Handshakes: TLS 1.3 with X25519 takes {rest:.0} us on the server in addition to the signature (without sockets and HTTP)\n  {:30} {:>12} {:>20}\n",
        "certificate", "us in all", "handshakes/s a core"
    );
    let mut options: Vec<(f64, String)> = Vec::new();
    for rate in rates.iter().filter(|rate| rate.purpose == Purpose::Sign) {
        let name = if rate.by == "scalar" {
            rate.algorithm.clone()
        } else {
            format!("{} in lanes ({})", rate.algorithm, rate.by)
        };
        let all = rest + rate.microseconds;
        let _ = writeln!(text, "  {name:30} {all:>12.0} {:>20.0}", 1e6 / all);
        options.push((all, name));
    }
    let find = |algorithm: &str, by: fn(&str) -> bool| {
        let matching = rates
            .iter()
            .filter(|rate| rate.purpose == Purpose::Sign && rate.algorithm == algorithm && by(rate.by));
        matching.map(|rate| rest + rate.microseconds).fold(f64::INFINITY, f64::min)
    };
    let (scalar, lanes) = (find("RSA-2048", |by| by == "scalar"), find("RSA-2048", |by| by != "scalar"));
    let ecdsa = find("ECDSA P-256", |_| true);
    text.push_str("Recommendations\n");
    if lanes.is_finite() {
        let _ = writeln!(
            text,
            "  - RSA certificates: `engine: {{backend: auto}}` (the default) computes them in lanes: {:.1} times the handshakes.",
            scalar / lanes
        );
    } else {
        text.push_str("  - This CPU has no lanes for RSA (AVX2 with FMA, or AVX-512 IFMA): use a key server on a machine that has them.\n");
    }
    let _ = writeln!(
        text,
        "  - A P-256 certificate in addition to RSA, for the clients that accept it (all current ones): {:.1} times the handshakes of the fastest RSA-2048 here.",
        scalar.min(lanes) / ecdsa
    );
    text.push_str(
        "  - Resumption avoids the signature entirely: `quadrille profile handshake` shows the remaining cost.\n",
    );
    let at_16k = |name: &str| {
        rates
            .iter()
            .find(|rate| rate.algorithm == name && rate.bytes == Some(16_384))
            .map_or(f64::NAN, |rate| rate.microseconds)
    };
    let ratio = at_16k("ChaCha20-Poly1305") / at_16k("AES-128-GCM");
    let _ = writeln!(
        text,
        "  - {}",
        if ratio > 1.0 {
            format!(
                "AES-GCM is {ratio:.1} times as fast as ChaCha20-Poly1305 here; let clients without AES instructions choose the latter (the gateway follows the client)."
            )
        } else {
            format!("ChaCha20-Poly1305 is {:.1} times as fast as AES-GCM here.", 1.0 / ratio)
        }
    );
    Ok(text)
}
