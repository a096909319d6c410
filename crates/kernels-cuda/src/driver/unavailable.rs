//! Reasons for an unavailable device.

/// Reason for which no GPU is available, or not any more. The other backends continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The driver's library cannot be loaded: most machines do not have it.
    #[error("no NVIDIA driver ({0})")]
    NoDriver(String),
    /// The driver's library lacks this function.
    #[error("the NVIDIA driver is too old: it lacks {0}; CUDA 11 or later is required")]
    OldDriver(&'static str),
    /// The driver reports no device.
    #[error("the NVIDIA driver reports no device")]
    NoDevice,
    /// The device's compute capability is below 7.0 (Volta).
    #[error("the GPU {name} is too old: its compute capability is {major}.{minor}, and 7.0 is required")]
    OldDevice {
        /// Name of the device, from the driver.
        name: String,
        /// Major number of its compute capability.
        major: i32,
        /// Minor number of its compute capability.
        minor: i32,
    },
    /// Other processes use the device's memory.
    #[error("not enough free memory on the GPU: {free} MiB, {needed} MiB required")]
    Memory {
        /// Memory required at start, in MiB.
        needed: usize,
        /// Free memory, in MiB.
        free: usize,
    },
    /// A call to the driver failed: the device was lost, or its resources are exhausted.
    #[error("the GPU's driver failed: {call} returned {error}")]
    Failed {
        /// Name of the call.
        call: &'static str,
        /// Name of the error, from the driver, such as `CUDA_ERROR_ECC_UNCORRECTABLE`.
        error: String,
    },
    /// The device returned a wrong result.
    #[error("the GPU reported a wrong result as verified: it must not be trusted")]
    Wrong,
}
