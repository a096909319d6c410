//! Thousands of RSA private-key operations or ML-DSA signatures at once, on an NVIDIA GPU.
//!
//! ```text
//!  Components ──> PrivateKey ──upload──> DeviceKey        key memory of the device, wiped on release
//!                                            │
//!  PrivateOperation (key, input, output) ──run──> Lane: pinned memory ──> stream: copy, kernel, copy ──> checked results
//!                                                 several of them, so that some copy while another computes
//! ```
//!
//! The kernels (`kernel/`) are CUDA C++, shipped as PTX, which the driver translates for the device. The driver's
//! library is loaded at run time: building, linking and starting need no CUDA, and if it is missing, [`Gpu::open`]
//! reports that. The same kernel sources compile as plain C++ for the CPU: `tests/` run them that way, behind a
//! library that replaces the driver.
//!
//! It does not collect operations (`quadrille-engine` does) and implements neither padding nor TLS.
//!
//! ```no_run
//! # fn example(components: &quadrille_kernels_cuda::Components<'_>, input: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
//! use quadrille_kernels_cuda::{Gpu, Options, PrivateKey, PrivateOperation};
//!
//! let gpu = Gpu::open(&Options::default())?; // once a process
//! let key = gpu.upload(&PrivateKey::new(components)?)?; // once a key
//! let mut output = vec![0; key.size().bytes()];
//! let mut batch = [PrivateOperation::new(&key, input, &mut output)]; // best: thousands
//! gpu.run(&mut batch)?;
//! batch[0].outcome()?;
//! # Ok(output)
//! # }
//! ```
//!
//! # Guarantees
//!
//! - **Secrets**: on the CPU the kernels compile with a type that can neither control a branch nor become an address
//!   (`kernel/word.cuh`), so secrets cannot either; keys and intermediate values are wiped.
//! - **Faults**: a result is released from the device only if raising it to the public exponent yields the input.
//! - **Bounds**: `docs/kernels/cuda.md` proves that no word overflows.
//!
//! # Files
//!
//! - `kernel/number.cuh`, `kernel/rsa.cuh`: integer arithmetic, for all devices.
//! - `kernel/digits.cuh`, `kernel/rsa52.cuh`: arithmetic on FP64 units, for devices with many of them, between
//!   integer kernels that prepare and check.
//! - `kernel/keccak.cuh`, `kernel/modular.cuh`, `kernel/polynomial.cuh`, `kernel/ml_dsa.cuh`: ML-DSA.
//! - `src/driver`: all calls of NVIDIA's library; `keys`, `pool`, `lane`, `batch_memory`, `gpu`: keys on the device, batches,
//!   the interface; `ml_dsa`: the same for ML-DSA.
//! - `tests/fake` replaces the driver, also for tests of other crates; `tests/interpreter` runs PTX.

mod batch_memory;
mod driver;
mod gpu;
mod key;
mod keys;
mod lane;
mod ml_dsa;
mod pool;

pub use driver::Unavailable;
pub use gpu::{Arithmetic, Gpu, Options};
pub use key::{KeyError, PrivateKey};
pub use keys::{DeviceKey, UploadError};
#[doc(hidden)]
pub use ml_dsa::constants as ml_dsa_constants_for_tests;
pub use ml_dsa::{MlDsaDeviceKey, MlDsaKeyNumbers, MlDsaOperation, MlDsaPrivateKey, MlDsaSet, MlDsaSigner};
pub use quadrille_rsa_numbers::{
    Components, InputError, KeyError as NumbersError, KeySize, PrivateOperation, PrivateOperationError,
};

/// Kernels, in the form that the driver accepts.
const PTX: &str = concat!(include_str!("../kernel/rsa.ptx"), "\0");
