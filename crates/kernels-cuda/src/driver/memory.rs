//! Device memory, and host memory that the device accesses directly.

use super::{Device, Unavailable, api::Address};
use std::{ffi::c_void, ptr, slice, sync::Arc};
use zeroize::Zeroize;

/// Words on the device, initially zero. The owner wipes any secrets.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    device: Arc<Device>,
    address: Address,
    words: usize,
}

impl DeviceMemory {
    /// Allocates memory with undefined contents: [`DeviceMemory::new`] clears it.
    pub(super) fn allocate(device: &Arc<Device>, words: usize) -> Result<Self, Unavailable> {
        let mut address = 0;
        // SAFETY: the driver writes one address.
        let status = unsafe { (device.api.memory_alloc)(&raw mut address, 4 * words) };
        device.check("cuMemAlloc", status)?;
        Ok(Self { device: Arc::clone(device), address, words })
    }

    /// Address of the word with this number.
    ///
    /// # Panics
    /// If there is no such word: addresses are computed only here, so that all are within bounds.
    pub(crate) fn at(&self, word: usize) -> Address {
        assert!(word <= self.words, "word {word} of {}", self.words);
        self.address + 4 * word as Address
    }

    pub(crate) fn words(&self) -> usize {
        self.words
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: it was allocated once, and its user waits for the device before dropping it.
            unsafe { (self.device.api.memory_free)(self.address) };
        }
    }
}

/// Words of host memory at a fixed address, which the device copies directly. Wiped on drop.
#[derive(Debug)]
pub(crate) struct PinnedMemory {
    device: Arc<Device>,
    start: *mut u32,
    words: usize,
}

// SAFETY: it owns its words as a Vec does.
unsafe impl Send for PinnedMemory {}

impl PinnedMemory {
    pub(crate) fn new(device: &Arc<Device>, words: usize) -> Result<Self, Unavailable> {
        let mut start: *mut c_void = ptr::null_mut();
        // SAFETY: the driver writes one pointer.
        let status = unsafe { (device.api.host_alloc)(&raw mut start, 4 * words, 0) };
        device.check("cuMemHostAlloc", status)?;
        let start = start.cast::<u32>();
        // SAFETY: this many bytes were allocated.
        unsafe { start.write_bytes(0, words) };
        Ok(Self { device: Arc::clone(device), start, words })
    }

    pub(crate) fn words(&self) -> &[u32] {
        // SAFETY: this many words were allocated and set; the device writes them only while `Stream` has borrowed
        // them.
        unsafe { slice::from_raw_parts(self.start, self.words) }
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u32] {
        // SAFETY: as above.
        unsafe { slice::from_raw_parts_mut(self.start, self.words) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        self.words_mut().zeroize();
        if self.device.enter().is_ok() {
            // SAFETY: it was allocated once, and its user waits for the device before dropping it.
            unsafe { (self.device.api.host_free)(self.start.cast()) };
        }
    }
}
