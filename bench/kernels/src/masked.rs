//! The pass without AVX-512, in a process of its own.

use std::error::Error;
use std::process::{Command, Stdio};

use crate::args::Arguments;
use crate::report::{self, Row};

/// OpenSSL, BoringSSL and AWS-LC read this variable at startup. After the colon: the bits of CPUID leaf 7's EBX to
/// clear, here AVX-512 F, DQ, IFMA, CD, BW and VL.
const MASK: (&str, &str) = ("OPENSSL_ia32cap", ":~0xd0230000");

/// Measures `Pass::Masked` in a child of this program, since the libraries read the mask only once.
pub(crate) fn in_a_child(arguments: &Arguments) -> Result<Vec<Row>, Box<dyn Error>> {
    let sizes: Vec<String> = arguments.sizes.iter().map(usize::to_string).collect();
    let child = Command::new(std::env::current_exe()?)
        .env(MASK.0, MASK.1)
        .args(["--masked-pass", "--rounds", &arguments.rounds.to_string()])
        .args(arguments.x25519.then_some("--x25519"))
        .args(arguments.ml_kem.then_some("--ml-kem"))
        .args(arguments.ml_dsa.then_some("--ml-dsa"))
        .args(arguments.p256.then_some("--p256"))
        .args(["--turn-ms", &arguments.turn_ms.to_string(), "--sizes", &sizes.join(",")])
        .stderr(Stdio::inherit())
        .output()?;
    if !child.status.success() {
        return Err(format!("the pass with AVX-512 masked failed: {}", child.status).into());
    }
    report::take_over(&child.stdout)
}
