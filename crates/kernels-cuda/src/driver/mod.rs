//! Device access through NVIDIA's driver: opened at run time, so that every machine builds and links this crate.
//!
//! This module contains all calls of foreign code. Its values free their resources on drop.

mod api;
mod memory;
mod stream;
mod unavailable;

pub(crate) use api::Address;
use api::{Api, Handle, Status};
pub(crate) use memory::{DeviceMemory, PinnedMemory};
pub(crate) use stream::Stream;
pub use unavailable::Unavailable;

use std::{
    ffi::{CStr, OsStr, c_char, c_int, c_uint},
    ptr,
    sync::Arc,
};

/// First device, with its primary context.
#[derive(Debug)]
pub(crate) struct Device {
    api: Api,
    ordinal: c_int,
    context: Handle,
    pub(crate) name: String,
    pub(crate) multiprocessors: usize,
    /// Maximum clock of its cores, in kHz.
    pub(crate) clock: usize,
    /// Ratio of single- to double-precision throughput: 2 for devices made for double precision, 32 or 64 for others.
    pub(crate) single_to_double: usize,
}

// SAFETY: a context may be current in several threads at once, and the driver's functions may be called from any.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// Attributes named `CU_DEVICE_ATTRIBUTE_...` in cuda.h.
const CLOCK_RATE: c_int = 13;
const MULTIPROCESSOR_COUNT: c_int = 16;
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
const SINGLE_TO_DOUBLE: c_int = 87;
/// `CU_CTX_SCHED_BLOCKING_SYNC`: a thread that waits for the device sleeps instead of spinning.
const WAIT_ASLEEP: c_uint = 4;

impl Device {
    /// Loads the driver and opens its first device (selected by `CUDA_VISIBLE_DEVICES`).
    pub(crate) fn open(library: &OsStr) -> Result<Arc<Self>, Unavailable> {
        let api = Api::load(library)?;
        // SAFETY: 0 is the only value that cuInit accepts.
        let status = unsafe { (api.init)(0) };
        if status == NO_DEVICE {
            return Err(Unavailable::NoDevice);
        }
        check(&api, "cuInit", status)?;
        let (mut count, mut ordinal) = (0, 0);
        // SAFETY: the driver writes one int.
        check(&api, "cuDeviceGetCount", unsafe { (api.device_count)(&raw mut count) })?;
        if count == 0 {
            return Err(Unavailable::NoDevice);
        }
        // SAFETY: the driver writes one int.
        check(&api, "cuDeviceGet", unsafe { (api.device)(&raw mut ordinal, 0) })?;
        let name = name(&api, ordinal)?;
        let (major, minor) =
            (attribute(&api, ordinal, CAPABILITY_MAJOR)?, attribute(&api, ordinal, CAPABILITY_MINOR)?);
        if major < 7 {
            return Err(Unavailable::OldDevice { name, major, minor });
        }
        let multiprocessors = attribute(&api, ordinal, MULTIPROCESSOR_COUNT)?.unsigned_abs() as usize;
        let clock = attribute(&api, ordinal, CLOCK_RATE)?.unsigned_abs() as usize;
        let single_to_double = attribute(&api, ordinal, SINGLE_TO_DOUBLE)?.unsigned_abs() as usize;
        // Rejected if the context is already active elsewhere in this process; waiting then spins.
        // SAFETY: the device exists.
        let _ = unsafe { (api.context_flags)(ordinal, WAIT_ASLEEP) };
        let mut context = ptr::null_mut();
        // SAFETY: the driver writes one handle; it is released when this value is dropped.
        let status = unsafe { (api.context_retain)(&raw mut context, ordinal) };
        check(&api, "cuDevicePrimaryCtxRetain", status)?;
        let device = Arc::new(Self { api, ordinal, context, name, multiprocessors, clock, single_to_double });
        device.enter()?;
        Ok(device)
    }

    /// Makes the device current for this thread.
    pub(crate) fn enter(&self) -> Result<(), Unavailable> {
        // SAFETY: the context is retained until `self` is dropped.
        self.check("cuCtxSetCurrent", unsafe { (self.api.context_current)(self.context) })
    }

    /// Fails unless this many words are free.
    pub(crate) fn require(&self, words: usize) -> Result<(), Unavailable> {
        let (mut free, mut total, needed) = (0, 0, 4 * words);
        // SAFETY: the driver writes two sizes.
        let status = unsafe { (self.api.memory_info)(&raw mut free, &raw mut total) };
        self.check("cuMemGetInfo", status)?;
        if free < needed {
            return Err(Unavailable::Memory { needed: needed.div_ceil(1 << 20), free: free >> 20 });
        }
        Ok(())
    }

    fn check(&self, call: &'static str, status: Status) -> Result<(), Unavailable> {
        check(&self.api, call, status)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and all objects made in it are gone, because they hold this value.
        unsafe { (self.api.context_release)(self.ordinal) };
    }
}

/// `CUDA_ERROR_NO_DEVICE`.
const NO_DEVICE: Status = 100;

fn check(api: &Api, call: &'static str, status: Status) -> Result<(), Unavailable> {
    if status == 0 {
        return Ok(());
    }
    let mut name = ptr::null();
    // SAFETY: the driver writes one pointer, to a static string, or leaves it null for an unknown error.
    unsafe { (api.error_name)(status, &raw mut name) };
    let error = if name.is_null() {
        format!("error {status}")
    } else {
        // SAFETY: it is a static string terminated by a zero byte.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    };
    Err(Unavailable::Failed { call, error })
}

fn name(api: &Api, ordinal: c_int) -> Result<String, Unavailable> {
    let mut name = [0; 128];
    // SAFETY: the driver writes at most as many bytes as the array has, including the terminating zero.
    let status = unsafe { (api.device_name)(name.as_mut_ptr().cast::<c_char>(), 127, ordinal) };
    check(api, "cuDeviceGetName", status)?;
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

fn attribute(api: &Api, ordinal: c_int, which: c_int) -> Result<i32, Unavailable> {
    let mut value = 0;
    // SAFETY: the driver writes one int.
    let status = unsafe { (api.device_attribute)(&raw mut value, which, ordinal) };
    check(api, "cuDeviceGetAttribute", status).map(|()| value)
}

/// Kernels, translated for the device by its driver.
#[derive(Debug)]
pub(crate) struct Module {
    device: Arc<Device>,
    module: Handle,
}

/// Kernel; lives as long as its module, which [`Gpu`](crate::Gpu) keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel(Handle);

// SAFETY: a loaded module is immutable, and the driver may be called from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}
// SAFETY: as above.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Module {
    pub(crate) fn load(device: &Arc<Device>, ptx: &CStr) -> Result<Self, Unavailable> {
        let mut module = ptr::null_mut();
        // SAFETY: PTX is text terminated by a zero byte; the driver writes one handle.
        let status = unsafe { (device.api.module_load)(&raw mut module, ptx.as_ptr().cast()) };
        device.check("cuModuleLoadData", status)?;
        Ok(Self { device: Arc::clone(device), module })
    }

    pub(crate) fn kernel(&self, name: &CStr) -> Result<Kernel, Unavailable> {
        let mut function = ptr::null_mut();
        let api = &self.device.api;
        // SAFETY: the module is loaded; the driver writes one handle.
        let status = unsafe { (api.module_function)(&raw mut function, self.module, name.as_ptr()) };
        self.device.check("cuModuleGetFunction", status)?;
        Ok(Kernel(function))
    }

    /// Returns how many blocks of `threads` threads one multiprocessor runs at once.
    pub(crate) fn blocks_at_once(&self, kernel: Kernel, threads: usize) -> Result<usize, Unavailable> {
        let mut blocks = 0;
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        // SAFETY: the kernel belongs to this module, which is loaded; the driver writes one int.
        let status = unsafe { (self.device.api.occupancy)(&raw mut blocks, kernel.0, threads, 0) };
        self.device.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", status)?;
        Ok(blocks.unsigned_abs() as usize)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: it was loaded once, and streams, which run its kernels, have ended before.
            unsafe { (self.device.api.module_unload)(self.module) };
        }
    }
}
