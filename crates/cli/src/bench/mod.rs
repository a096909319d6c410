//! `quadrille bench`.

mod picture;
mod report;
mod target;

use quadrille_profile::load::{
    KeyChoice, Live, Load, Offer, Outcome, Pace, TlsVersion,
    preflight::{Refusal, Trust, preflight},
};
use std::{
    io::{IsTerminal, Write},
    num::{NonZeroU64, NonZeroUsize},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use target::Target;

/// Measure TLS handshakes against any HTTPS server.
///
/// Full handshakes at the server's maximum rate, for ten seconds:
///   quadrille bench https://localhost:8443/ --duration 10 --connections 32 --insecure
/// Latency at 500 new connections a second, nine of ten resumed:
///   quadrille bench https://example.com/ --rate 500 --resumed 0.9 --duration 30 --svg latency.svg
///
/// Each connection performs a handshake, sends its requests, and is closed. With --rate, connections start on
/// schedule even if the server does not keep up, and latency counts from the scheduled time; without it, a new
/// connection starts when one ends. Ctrl-C ends the run and prints the results so far.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Bench {
    /// https://HOST[:PORT][/PATH]
    url: Target,
    /// Duration, for instance 10, 10s or 2m. This or --count is required, so that every run ends.
    #[arg(long, short, value_name = "TIME", value_parser = duration, required_unless_present = "count")]
    duration: Option<Duration>,
    /// Number of connections to make.
    #[arg(long, short = 'n', value_name = "N")]
    count: Option<NonZeroU64>,
    /// Maximum number of concurrent connections [default: 16, and 1024 with --rate]
    #[arg(long, short, value_name = "N")]
    connections: Option<NonZeroUsize>,
    /// New connections a second (open loop), instead of the server's maximum rate (closed loop).
    #[arg(long, short, value_name = "N", value_parser = rate)]
    rate: Option<f64>,
    /// Sequential requests on each connection; 0 measures only the handshake.
    #[arg(long, value_name = "N", default_value_t = 1)]
    requests: u32,
    /// Share of connections that offer to resume an earlier session, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    resumed: f64,
    /// Offer this version only: 1.2 or 1.3.
    #[arg(long, value_name = "VERSION")]
    tls: Option<TlsVersion>,
    /// Key exchange groups, colon-separated, the first with the key share: X25519, P-256, X25519MLKEM768.
    #[arg(long, value_name = "LIST")]
    groups: Option<String>,
    /// Cipher suites of TLS 1.2, as OpenSSL names them.
    #[arg(long, value_name = "LIST")]
    ciphers: Option<String>,
    /// Request a certificate with this type of key.
    #[arg(long, value_name = "KIND")]
    key_type: Option<KeyType>,
    /// Server names to send in turn as SNI and Host, instead of the URL's.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    sni: Vec<String>,
    /// Connect to this address instead of the URL's.
    #[arg(long, value_name = "HOST:PORT")]
    connect: Option<String>,
    /// Do not verify the server's certificate.
    #[arg(long, short = 'k')]
    insecure: bool,
    /// Trust the authorities in this PEM file instead of the system's.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    ca: Option<PathBuf>,
    /// Threads; each keeps one core busy.
    #[arg(long, value_name = "N", default_value = "1")]
    threads: NonZeroUsize,
    /// Timeout for each connection.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "10s")]
    timeout: Duration,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Draw the distribution of latencies into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum KeyType {
    Rsa,
    Ecdsa,
    Mldsa44,
    Mldsa65,
    Mldsa87,
}

impl Bench {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        let load = self.load().map_err(|problem| vec![problem])?;
        let agreed = preflight(&load, &self.trust()).map_err(|refusal| vec![explain(&refusal, &load)])?;
        if !self.json {
            println!("{} at {}: {agreed}", self.url, load.target);
        }
        raise_file_limit();
        let stop = stop_on_interrupt().map_err(|error| vec![format!("cannot watch for Ctrl-C: {error}")])?;
        let live = Live::default();
        let outcome = watched(&load, &live, !self.json, || load.on_threads(self.threads, &live, &stop))
            .map_err(|error| vec![error.to_string()])?;
        self.show(&outcome)?;
        if outcome.ok == 0 {
            let why = outcome.failure().unwrap_or_else(|| "the run was too short".to_owned());
            return Err(vec![format!("no connection succeeded: {why}")]);
        }
        Ok(())
    }

    fn load(&self) -> Result<Load, String> {
        if self.resumed > 0.0 && self.requests == 0 {
            return Err(
                "--resumed needs --requests 1 or more: in TLS 1.3, tickets arrive with the first response"
                    .into(),
            );
        }
        let versions = match self.tls {
            Some(version) => version..=version,
            None => TlsVersion::V1_2..=TlsVersion::V1_3,
        };
        let key = self.key_type.map(|key_type| match key_type {
            KeyType::Rsa => KeyChoice::Rsa,
            KeyType::Ecdsa => KeyChoice::Ecdsa,
            KeyType::Mldsa44 => KeyChoice::MlDsa44,
            KeyType::Mldsa65 => KeyChoice::MlDsa65,
            KeyType::Mldsa87 => KeyChoice::MlDsa87,
        });
        let at_once = if self.rate.is_some() { 1024 } else { 16 };
        Ok(Load {
            names: if self.sni.is_empty() { vec![self.url.host.clone()] } else { self.sni.clone() },
            path: self.url.path.clone(),
            offer: Offer { versions, groups: self.groups.clone(), ciphers: self.ciphers.clone(), key },
            resumed: self.resumed,
            pace: self.rate.map_or(Pace::Closed, |per_second| Pace::Open { per_second }),
            connections: self.connections.map_or(at_once, NonZeroUsize::get),
            requests: self.requests,
            count: self.count.map_or(u64::MAX, NonZeroU64::get),
            time_limit: self.duration.unwrap_or(LONGEST),
            connection_timeout: self.timeout,
            ..Load::new(self.url.resolve(self.connect.as_deref())?, &self.url.host)
        })
    }

    fn trust(&self) -> Trust {
        match &self.ca {
            _ if self.insecure => Trust::Any,
            Some(file) => Trust::File(file.clone()),
            None => Trust::System,
        }
    }

    fn show(&self, outcome: &Outcome) -> Result<(), Vec<String>> {
        let text = if self.json { report::json(outcome) } else { report::text(outcome) };
        println!("{text}");
        if let Some(file) = &self.svg {
            let picture = picture::latencies(&self.url.to_string(), outcome);
            std::fs::write(file, picture)
                .map_err(|error| vec![format!("cannot write {}: {error}", file.display())])?;
        }
        Ok(())
    }
}

/// Maximum duration of a run that is limited only by --count.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Returns the error with advice for the user.
fn explain(refusal: &Refusal, load: &Load) -> String {
    let target = load.target;
    match refusal {
        Refusal::Connect(_) => format!("{target}: {refusal}"),
        Refusal::Untrusted(_) => {
            format!(
                "{target}: {refusal}; give its authority with --ca FILE, or skip verification with --insecure"
            )
        }
        Refusal::Handshake(_) => {
            let versions = &load.offer.versions;
            let offered = format!("TLS {} to {}", versions.start(), versions.end());
            let groups = load.offer.groups.as_deref().unwrap_or("default groups");
            format!(
                "{target}: {refusal}. Offered: {offered}, {groups}. Does the server speak TLS there, and any of these?"
            )
        }
        Refusal::Authorities { .. } | Refusal::Load(_) => refusal.to_string(),
    }
}

/// Runs `measure`, and on a terminal shows its progress each second in one line.
fn watched<T: Send>(load: &Load, live: &Live, shown: bool, measure: impl FnOnce() -> T + Send) -> T {
    let terminal = shown && std::io::stderr().is_terminal();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let running = scope.spawn(measure);
        let mut seconds = 0;
        while !running.is_finished() {
            std::thread::sleep(Duration::from_millis(50));
            if terminal && begun.elapsed().as_secs() > seconds {
                seconds = begun.elapsed().as_secs();
                eprint!("\r\x1b[K{}", report::progress(load, live, begun.elapsed()));
                let _ = std::io::stderr().flush();
            }
        }
        if terminal {
            eprint!("\r\x1b[K");
        }
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The first Ctrl-C ends the measurement, the second the process.
fn stop_on_interrupt() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if seen.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .map_err(std::io::Error::other)?;
    Ok(stop)
}

/// Raises the limit of file descriptors to the maximum that the system allows.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration above zero; write seconds (10), or 500ms, 10s, 2m");
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let seconds: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(seconds * factor).ok().filter(|time| !time.is_zero()).ok_or_else(wrong)
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| format!("`{text}` is not a number of connections a second"))
}

pub(crate) fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("`{text}` is not a share from 0 to 1"))
}
