//! Memory of one batch in progress: pinned memory of the host, and what the device reads and writes.

use crate::driver::{Address, Device, DeviceMemory, PinnedMemory, Stream, Unavailable};
use quadrille_rsa_numbers::words;
use std::sync::Arc;

/// Mirrors `struct Batch` of kernel/rsa.cuh and `struct Signatures` of kernel/ml_dsa.cuh.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Arguments {
    keys: Address,
    slots: Address,
    inputs: Address,
    outputs: Address,
    sound: Address,
    tables: Address,
    count: u32,
    /// RSA: bits of the public exponents; ML-DSA: number of warps.
    pub(crate) number: u32,
    /// RSA: numbers between two kernels; ML-DSA: constants.
    pub(crate) extra: Address,
}

/// Memory requirements of a batch, in words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) outbound: usize,
    pub(crate) inbound: usize,
    pub(crate) tables: usize,
}

impl Extent {
    /// Number of words on the device.
    pub(crate) fn words(self) -> usize {
        self.outbound + self.inbound + self.tables
    }
}

/// Number of operations of a batch, with the numbers of words of an input and of an output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) count: usize,
    pub(crate) input: usize,
    pub(crate) output: usize,
}

impl Shape {
    /// Number of words that the device receives: slots of the keys, then inputs.
    pub(crate) fn outbound(self) -> usize {
        self.header() + self.input * self.count
    }

    /// Number of words that the device returns: soundness flags, then outputs.
    pub(crate) fn inbound(self) -> usize {
        self.header() + self.output * self.count
    }

    /// Number of words before the inputs and outputs, which begin at a multiple of sixteen bytes.
    fn header(self) -> usize {
        self.count.next_multiple_of(4)
    }
}

/// Stream with the memory of one batch.
#[derive(Debug)]
pub(crate) struct BatchMemory {
    // Drop order: the stream waits for its pending commands.
    stream: Stream,
    outbound: PinnedMemory,
    inbound: PinnedMemory,
    device_outbound: DeviceMemory,
    device_inbound: DeviceMemory,
    tables: DeviceMemory,
}

impl BatchMemory {
    pub(crate) fn new(device: &Arc<Device>, extent: Extent) -> Result<Self, Unavailable> {
        let stream = Stream::new(device)?;
        Ok(Self {
            outbound: PinnedMemory::new(device, extent.outbound)?,
            inbound: PinnedMemory::new(device, extent.inbound)?,
            device_outbound: DeviceMemory::new(device, extent.outbound, &stream)?,
            device_inbound: DeviceMemory::new(device, extent.inbound, &stream)?,
            tables: DeviceMemory::new(device, extent.tables, &stream)?,
            stream,
        })
    }

    /// Stores the slots of the keys, and returns the words of all inputs.
    pub(crate) fn inputs(&mut self, shape: Shape, slots_of_keys: &[u32]) -> &mut [u32] {
        let (slots, inputs) = self.outbound.words_mut()[..shape.outbound()].split_at_mut(shape.header());
        slots[..shape.count].copy_from_slice(slots_of_keys);
        inputs
    }

    /// Returns the arguments of a kernel, with zeros for those that differ between algorithms.
    pub(crate) fn arguments(&self, shape: Shape, keys: Address) -> Arguments {
        Arguments {
            keys,
            slots: self.device_outbound.at(0),
            inputs: self.device_outbound.at(shape.header()),
            outputs: self.device_inbound.at(shape.header()),
            sound: self.device_inbound.at(0),
            tables: self.tables.at(0),
            count: number(shape.count),
            number: 0,
            extra: self.tables.at(0),
        }
    }

    /// Ensures that the tables have this number of words.
    pub(crate) fn require_tables(&self, words: usize) {
        assert!(words <= self.tables.words(), "a batch larger than its lane");
    }

    /// Returns the address of a word of the tables.
    pub(crate) fn table(&self, word: usize) -> Address {
        self.tables.at(word)
    }

    /// Sends the inputs, launches kernels, and receives the outputs. The device's copies of both are cleared. After an
    /// error the memory must not be used again, since the device may still write to it.
    pub(crate) fn compute(
        &mut self,
        shape: Shape,
        launch: impl FnOnce(&Stream) -> Result<(), Unavailable>,
    ) -> Result<(), Unavailable> {
        let (sent, received) = (shape.outbound(), shape.inbound());
        self.stream.send(&self.device_outbound, 0, &self.outbound, 0..sent)?;
        launch(&self.stream)?;
        self.stream.receive(&mut self.inbound, 0, &self.device_inbound, received)?;
        self.stream.clear(&self.device_inbound, 0..received)?;
        self.stream.clear(&self.device_outbound, 0..sent)?;
        self.stream.wait()
    }

    /// Passes the outputs to their operations, with whether each is sound, and wipes the pinned memory.
    pub(crate) fn finish<T>(
        &mut self,
        shape: Shape,
        ops: &mut [T],
        mut finish: impl FnMut(&mut T, bool, &[u32]),
    ) {
        let (sound, outputs) = self.inbound.words()[..shape.inbound()].split_at(shape.header());
        for ((op, &sound), output) in ops.iter_mut().zip(sound).zip(outputs.chunks_exact(shape.output)) {
            finish(op, sound == 1, output);
        }
        words::wipe(&mut self.inbound.words_mut()[..shape.inbound()]);
        words::wipe(&mut self.outbound.words_mut()[..shape.outbound()]);
    }
}

/// Converts a number of a batch for the kernel.
pub(crate) fn number(number: usize) -> u32 {
    u32::try_from(number).expect("no lane is that large")
}
