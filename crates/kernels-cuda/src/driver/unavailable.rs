//! Why there is no device.

/// Why there is no GPU to compute with, or none any more. The other backends go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The driver's library cannot be loaded: most machines have none.
    #[error("no NVIDIA driver ({0})")]
    NoDriver(String),
    /// The driver's library lacks this function.
    #[error("the NVIDIA driver is too old: it has no {0}; CUDA 11 or later is needed")]
    OldDriver(&'static str),
    /// The driver knows of no device.
    #[error("the NVIDIA driver is there, but it knows of no device")]
    NoDevice,
    /// The device's compute capability is below 7.0 (Volta).
    #[error("the GPU {name} is too old: its compute capability is {major}.{minor}, and 7.0 is needed")]
    OldDevice {
        /// As the driver names it.
        name: String,
        /// Of its compute capability.
        major: i32,
        /// Of its compute capability.
        minor: i32,
    },
    /// Others use the device's memory.
    #[error("too little memory is free on the GPU: {free} MiB, and {needed} MiB are needed")]
    Memory {
        /// MiB that are wanted at start.
        needed: usize,
        /// MiB that were free.
        free: usize,
    },
    /// The driver refused a call: the device was lost, or is used up.
    #[error("the GPU's driver failed: {call} returned {error}")]
    Failed {
        /// What was asked of it.
        call: &'static str,
        /// The driver's name of the error, such as `CUDA_ERROR_ECC_UNCORRECTABLE`.
        error: String,
    },
    /// The device is not to be trusted.
    #[error("the GPU passed off a wrong result as checked: it is not to be trusted")]
    Wrong,
}
