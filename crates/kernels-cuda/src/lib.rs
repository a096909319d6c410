//! Thousands of RSA private-key operations at once, on an NVIDIA GPU, where there is one.
//!
//! ```text
//!  Components ──> PrivateKey ──upload──> DeviceKey        key memory of the device, wiped on release
//!                                            │
//!  PrivateOperation (key, input, output) ──run──> Lane: pinned memory ──> stream: copy, kernel, copy ──> checked results
//!                                                 several of them, so that some copy while another computes
//! ```
//!
//! The kernels (`kernel/`) are CUDA C++, shipped as PTX, which the driver translates for the device that it finds.
//! The driver's library is loaded at run time: no machine needs CUDA to build, link or start this, and where it is
//! missing, [`Gpu::open`] says so. The same kernel sources compile as plain C++ for the CPU: that is how `tests/` run
//! them, behind a library that takes the driver's place.
//!
//! It does not collect operations (`quadrille-engine` does) and knows nothing of padding or TLS.
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
//! # What stands behind it
//!
//! - **Secrets**: on the CPU the kernels compile with a type that can neither steer a branch nor become an address
//!   (`kernel/word.cuh`), so that nothing secret does; keys and intermediate values are wiped.
//! - **Faults**: a result leaves the device only if raising it to the public exponent gives the input back.
//! - **Bounds**: `docs/kernels/cuda.md` argues why no word overflows.

mod driver;
mod gpu;
mod key;
mod keys;
mod lane;

pub use driver::Unavailable;
pub use gpu::{Arithmetic, Gpu, Options};
pub use key::{KeyError, PrivateKey};
pub use keys::{DeviceKey, UploadError};
pub use quadrille_rsa_numbers::{
    Components, InputError, KeyError as NumbersError, KeySize, PrivateOperation, PrivateOperationError,
};

/// The kernels, as the driver takes them.
const PTX: &str = concat!(include_str!("../kernel/rsa.ptx"), "\0");
