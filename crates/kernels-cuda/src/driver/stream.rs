//! Command queue of the device: copies and kernels run in order, concurrently with other streams.

use super::{Device, DeviceMemory, Kernel, PinnedMemory, Unavailable, api::Handle};
use std::{ffi::c_uint, ops::Range, ptr, sync::Arc};

/// Stream. On drop it waits for its pending commands.
#[derive(Debug)]
pub(crate) struct Stream {
    device: Arc<Device>,
    stream: Handle,
}

// SAFETY: the driver may be called from any thread; one at a time uses a stream, because it is not `Sync`.
unsafe impl Send for Stream {}

/// `CU_STREAM_NON_BLOCKING`: it does not wait for the default stream, which other code in this process may use.
const INDEPENDENT: c_uint = 1;

impl Stream {
    pub(crate) fn new(device: &Arc<Device>) -> Result<Self, Unavailable> {
        let mut stream = ptr::null_mut();
        // SAFETY: the driver writes one handle.
        let status = unsafe { (device.api.stream_create)(&raw mut stream, INDEPENDENT) };
        device.check("cuStreamCreate", status)?;
        Ok(Self { device: Arc::clone(device), stream })
    }

    /// Queues a copy of the first words of `from`. Until [`wait`](Self::wait) has returned, neither side may be
    /// touched; the callers in this crate hold both and wait in the same function.
    pub(crate) fn send(
        &self,
        to: &DeviceMemory,
        at: usize,
        from: &PinnedMemory,
        words: Range<usize>,
    ) -> Result<(), Unavailable> {
        let from = &from.words()[words];
        let target = to.at(at);
        to.at(at + from.len());
        // SAFETY: both sides have at least that length.
        let status = unsafe {
            (self.device.api.to_device)(target, from.as_ptr().cast(), size_of_val(from), self.stream)
        };
        self.device.check("cuMemcpyHtoDAsync", status)
    }

    /// Queues a copy of the first words of `from`; see [`send`](Self::send).
    pub(crate) fn receive(
        &self,
        to: &mut PinnedMemory,
        at: usize,
        from: &DeviceMemory,
        words: usize,
    ) -> Result<(), Unavailable> {
        let to = &mut to.words_mut()[at..at + words];
        from.at(words);
        // SAFETY: both sides have at least that length.
        let status = unsafe {
            (self.device.api.to_host)(to.as_mut_ptr().cast(), from.at(0), size_of_val(to), self.stream)
        };
        self.device.check("cuMemcpyDtoHAsync", status)
    }

    /// Queues the wiping of words on the device.
    pub(crate) fn clear(&self, what: &DeviceMemory, words: Range<usize>) -> Result<(), Unavailable> {
        let (start, _end) = (what.at(words.start), what.at(words.end));
        // SAFETY: the memory has at least that length.
        let status = unsafe { (self.device.api.memory_set)(start, 0, 4 * words.len(), self.stream) };
        self.device.check("cuMemsetD8Async", status)
    }

    /// Queues a kernel: `blocks` blocks of `threads` threads. Its one parameter is the structure that `arguments`
    /// mirrors.
    pub(crate) fn launch<T>(
        &self,
        kernel: Kernel,
        blocks: usize,
        threads: usize,
        arguments: &mut T,
    ) -> Result<(), Unavailable> {
        let count = |number: usize| c_uint::try_from(number).unwrap_or(c_uint::MAX);
        let (blocks, threads) = (count(blocks), count(threads));
        let mut parameters = [ptr::from_mut(arguments).cast()];
        // SAFETY: the kernels take one argument, of this type, which the driver copies before it returns; they access
        // its buffers within the bounds that the callers assert.
        let status = unsafe {
            (self.device.api.launch)(
                kernel.0,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                0,
                self.stream,
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        self.device.check("cuLaunchKernel", status)
    }

    /// Waits until all commands are completed.
    pub(crate) fn wait(&self) -> Result<(), Unavailable> {
        // SAFETY: the stream exists.
        self.device.check("cuStreamSynchronize", unsafe { (self.device.api.stream_wait)(self.stream) })
    }
}

impl DeviceMemory {
    /// Allocates memory and clears it on the stream, and waits for that.
    pub(crate) fn new(device: &Arc<Device>, words: usize, stream: &Stream) -> Result<Self, Unavailable> {
        let memory = Self::allocate(device, words)?;
        stream.clear(&memory, 0..words).and(stream.wait())?;
        Ok(memory)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.device.enter().is_ok() {
            // SAFETY: it was created once; nothing is queued after this.
            unsafe {
                (self.device.api.stream_wait)(self.stream);
                (self.device.api.stream_destroy)(self.stream);
            }
        }
    }
}
