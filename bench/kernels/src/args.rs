//! Command-line arguments.

use std::path::PathBuf;

use clap::Parser;

/// Measures RSA private operations, every tier of ours at every fill, X25519, ML-KEM-768, ML-DSA, and ECDSA on
/// P-256, compared with OpenSSL, BoringSSL and AWS-LC; at the end a GPU, if available, compared with all cores.
///
/// The contenders alternate in one process on one core; figures are medians over the rounds. Time is the thread's CPU
/// time, so that other programs disturb little. Ours includes the check of every result with the public key; the
/// libraries' includes blinding and a check.
///
/// OpenSSL and AWS-LC use AVX-512 IFMA where the CPU supports it. On such a CPU there are therefore two passes:
/// `ifma` against the unmodified libraries, and `avx2` against the same libraries with AVX-512 masked
/// (OPENSSL_ia32cap, which all three read at startup). The second shows the result on a CPU without AVX-512; the
/// libraries are called openssl-avx2 and so on there.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  make bench-kernels                                       all of it, two to three minutes
  make bench-kernels ARGS='--sizes 2048 --rounds 101'      RSA-2048 alone, more carefully
  make bench-kernels ARGS=--x25519                         X25519 alone
  make bench-kernels ARGS=--ml-kem                         ML-KEM-768 alone
  make bench-kernels ARGS=--ml-dsa                         ML-DSA alone
  make bench-kernels ARGS=--p256                           ECDSA and ECDH on P-256 alone
  make bench-kernels ARGS='--leak 6000'                    does time depend on inputs? (dudect's method)

OpenSSL is the system's libcrypto.so.3; LD_LIBRARY_PATH chooses another."
)]
pub(crate) struct Arguments {
    /// Turns of every contender.
    #[arg(long, default_value_t = 31, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Minimum length of one turn in milliseconds.
    #[arg(long, default_value_t = 20)]
    pub(crate) turn_ms: u64,
    /// Key sizes in bits.
    #[arg(long, value_delimiter = ',', default_values_t = [2048, 3072, 4096])]
    pub(crate) sizes: Vec<usize>,
    /// Measure X25519 alone.
    #[arg(long)]
    pub(crate) x25519: bool,
    /// Measure ML-KEM-768 alone.
    #[arg(long, conflicts_with = "x25519")]
    pub(crate) ml_kem: bool,
    /// Measure ML-DSA alone.
    #[arg(long, conflicts_with_all = ["x25519", "ml_kem"])]
    pub(crate) ml_dsa: bool,
    /// Measure ECDSA and ECDH on P-256 alone.
    #[arg(long, conflicts_with_all = ["x25519", "ml_kem", "ml_dsa"])]
    pub(crate) p256: bool,
    /// Seconds for each of four measurements of each size on a GPU, if there is one.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) gpu_seconds: u64,
    /// Measure the GPU alone, also by batch size and streams, after comparing this many random operations of each
    /// size (in thousands) with the lanes'.
    #[arg(long, value_name = "THOUSANDS")]
    pub(crate) gpu_only: Option<usize>,
    /// Measure ML-DSA on the GPU alone, by batch size, for as many seconds as `--gpu-seconds` says at each point.
    #[arg(long)]
    pub(crate) gpu_ml_dsa: bool,
    /// Measure the lanes on all cores that this process may use (chosen with taskset), and nothing else.
    #[arg(long)]
    pub(crate) all_cores: bool,
    /// Test whether time depends on inputs, instead of measuring speed, with this many batches per tier.
    #[arg(long, value_name = "BATCHES")]
    pub(crate) leak: Option<usize>,
    /// Path of the JSON output.
    #[arg(long, value_name = "FILE", default_value = "bench/out/kernels.json")]
    pub(crate) out: PathBuf,
    /// Measure the pass with AVX-512 masked, and pass the rows to the parent process.
    #[arg(long, hide = true)]
    pub(crate) masked_pass: bool,
}

impl Arguments {
    /// Returns whether one operation other than RSA's is requested alone.
    pub(crate) fn one_operation(&self) -> bool {
        self.x25519 || self.ml_kem || self.ml_dsa || self.p256
    }
}
