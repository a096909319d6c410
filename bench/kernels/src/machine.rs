//! The machine that the figures were measured on.

use std::error::Error;
use std::fs;

use quadrille_kernels::{Ceiling, Lanes};

use crate::rival;

/// Describes the CPU, its tiers, its load, and the libraries' versions.
pub(crate) fn describe() -> Result<String, Box<dyn Error>> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
        line.and_then(|line| line.split_once(": ")).map_or("unknown", |(_, value)| value).to_owned()
    };
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("unknown");
    let tiers = [Ceiling::Avx2, Ceiling::Ifma].map(|ceiling| {
        let present = Lanes::up_to(ceiling).name() == ceiling.to_string();
        format!("{ceiling} {}", if present { "yes" } else { "NO" })
    });
    let mut lines = vec![
        format!(
            "{} (family {}, model {}), {} CPUs, load {load}; tiers: {}",
            field("model name"),
            field("cpu family"),
            field("model"),
            cpuinfo.lines().filter(|line| line.starts_with("processor")).count(),
            tiers.join(", "),
        ),
        rival::versions()?.join("; "),
    ];
    if let Some(mask) = std::env::var_os("OPENSSL_ia32cap") {
        lines.push(format!("WARNING: OPENSSL_ia32cap={} limits the libraries in every pass", mask.display()));
    }
    Ok(lines.join("\n"))
}

/// Pins this thread, and the child's, to the current core: caches stay warm, and cores are not compared with each
/// other.
pub(crate) fn stay_on_this_core() {
    // SAFETY: the call has no preconditions.
    let here = unsafe { libc::sched_getcpu() }.max(0) as usize;
    allow(|core| core == here);
}

/// Unpins this thread, and threads that it starts later.
pub(crate) fn leave_this_core() {
    allow(|_| true);
}

fn allow(core: impl Fn(usize) -> bool) {
    // SAFETY: a zeroed set is an empty one; the calls read and write only what is passed.
    let allowed = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for number in (0..libc::CPU_SETSIZE as usize).filter(|&number| core(number)) {
            libc::CPU_SET(number, &mut set);
        }
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    if allowed != 0 {
        eprintln!("cannot choose the core: {}", std::io::Error::last_os_error());
    }
}
