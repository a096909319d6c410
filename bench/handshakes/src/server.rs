//! A server running on its core for the duration of the experiment.

use std::{
    ffi::OsString,
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    ops::Range,
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    cpu::CpuClock,
    rival::{Beside, Rival, Setup},
    scenario::Scenario,
};

const START_TIME: Duration = Duration::from_secs(15);
const STOP_TIME: Duration = Duration::from_secs(3);
/// Ports that servers listen on.
const PORTS: Range<u16> = 20_000..30_000;
const PAUSE: Duration = Duration::from_millis(20);
/// Number of log lines quoted when a server does not start.
const LOG_LINES: usize = 5;

/// A running server, terminated on drop.
#[derive(Debug)]
pub struct Server {
    /// Address that it listens on.
    pub address: SocketAddr,
    /// Second address that it, or its companion, listens on, if any.
    pub beside: SocketAddr,
    child: Child,
    companion: Option<Companion>,
    /// Whether the companion's work counts as the server's.
    companion_counts: bool,
}

impl Server {
    /// Starts `rival` on the first of `cores`, and its companion on the second, or on the first if it counts; waits
    /// until it completes the handshake of `scenario`.
    pub fn start(
        rival: Rival,
        program: &Path,
        cores: [usize; 2],
        scenario: &Scenario,
        setup: &Setup<'_>,
    ) -> Result<Self> {
        let [core, other] = cores;
        let beside = rival.beside(setup, program)?;
        let companion_counts = beside.as_ref().is_some_and(|beside| beside.counts);
        let companion_log = setup.directory.join(format!("{rival}-companion.log"));
        let companion = beside
            .map(|Beside { program, arguments, counts }| {
                let core = if counts { core } else { other };
                Companion::start(core, &program, &arguments, &companion_log)
            })
            .transpose()?;
        let log = setup.directory.join(format!("{rival}.log"));
        let mut command = on_core(core, program);
        let child = start(command.args(rival.arguments(setup)?).envs(rival.environment(setup)?), &log)?;
        let (address, beside) = (setup.address, setup.beside);
        let mut server = Self { address, beside, child, companion, companion_counts };
        match server.wait_until_ready(scenario) {
            Ok(()) => Ok(server),
            Err(error) => bail!("{error:#}; its log ends: {}", last_lines(&log)),
        }
    }

    /// Returns its first process.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Returns the CPU clock of all its processes, and of the companion if it counts.
    pub fn cpu_clock(&self) -> Result<CpuClock> {
        let companion = self.companion.as_ref().filter(|_| self.companion_counts).map(Companion::pid);
        let roots: Vec<Pid> = [self.pid()].into_iter().chain(companion).collect();
        CpuClock::of_trees(&roots).context("the server has ended")
    }

    fn wait_until_ready(&mut self, scenario: &Scenario) -> Result<()> {
        let deadline = Instant::now() + START_TIME;
        let trial = Scenario { clients: 1, ..scenario.clone() }.load(self.address, 1, PAUSE * 50);
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("exited at once ({status})");
            }
            let outcome = trial.run()?;
            if outcome.ok == 1 {
                return Ok(());
            }
            if Instant::now() > deadline {
                let reason = outcome.failure().unwrap_or_else(|| "no response".into());
                bail!("not ready after {} s: {reason}", START_TIME.as_secs());
            }
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// A companion process of a server, terminated with it.
#[derive(Debug)]
pub(crate) struct Companion(Child);

impl Companion {
    pub(crate) fn start(core: usize, program: &Path, arguments: &[OsString], log: &Path) -> Result<Self> {
        start(on_core(core, program).args(arguments), log).map(Self)
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id().cast_signed())
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

/// Terminates the process with SIGTERM, so that it can end its children, and kills it if it does not exit.
fn end(child: &mut Child) {
    // It may have exited already: then there is no process to signal, and waiting returns at once.
    let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
    let deadline = Instant::now() + STOP_TIME;
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(PAUSE);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Builds a command for a program on one core. setpriv terminates it when this process ends for any reason.
fn on_core(core: usize, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "taskset", "--cpu-list", &core.to_string()]).arg(program);
    command
}

fn start(command: &mut Command, log: &Path) -> Result<Child> {
    let output = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .context("cannot run setpriv and taskset (package util-linux)")
}

/// Returns a free address of this machine, a different one at each call.
///
/// Its port is below the range of outgoing connections: thousands of those are in TIME_WAIT while servers start and
/// stop here, and a port that is free now may be taken when the server binds it.
pub fn free_address() -> Result<SocketAddr> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = PORTS.start + (std::process::id() % u32::from(PORTS.end - PORTS.start)) as u16;
    for _ in PORTS {
        let turn = NEXT.fetch_add(1, Ordering::Relaxed) % (PORTS.end - PORTS.start);
        let port = PORTS.start + (first - PORTS.start + turn) % (PORTS.end - PORTS.start);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    bail!("no free port from {} to {}", PORTS.start, PORTS.end)
}

fn last_lines(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    match lines.len() {
        0 => "(empty)".into(),
        count => lines[count.saturating_sub(LOG_LINES)..].join(" | "),
    }
}
