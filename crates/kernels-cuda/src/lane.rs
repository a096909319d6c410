//! One batch in progress: to pinned memory, to the device, through a kernel, and back.

use crate::{
    DeviceKey, KeySize,
    driver::{Address, Device, DeviceMemory, Kernel, PinnedMemory, Stream, Unavailable},
    key::KernelSize,
    keys::KeyStore,
};
use quadrille_rsa_numbers::{PrivateOperation, PrivateOperationError, words};
use std::sync::Arc;

/// Number of threads of a block: four warps. Blocks are independent, so small ones fill a device best.
pub(crate) const BLOCK: usize = 128;
/// Number of threads of a block of kernel/rsa52.cuh, with two for each operation.
pub(crate) const BLOCK52: usize = 128;

/// Mirrors `struct Batch` of kernel/rsa.cuh.
#[repr(C)]
#[derive(Debug)]
struct Arguments {
    keys: Address,
    slots: Address,
    inputs: Address,
    outputs: Address,
    sound: Address,
    tables: Address,
    count: u32,
    exponent_bits: u32,
    scratch: Address,
}

/// Kernels for operations of one size.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// One kernel, in integers.
    Integer(Kernel),
    /// Three kernels: the exponentiation on FP64 units, and integer kernels before and after it.
    Fp64 { prepare: Kernel, exponentiate: Kernel, finish: Kernel },
}

/// Stream with its memory. A [`Gpu`](crate::Gpu) has several, so that one copies while another computes.
#[derive(Debug)]
pub(crate) struct Lane {
    // Drop order: the stream waits for its pending commands.
    stream: Stream,
    /// Slots of the keys, then inputs.
    outbound: PinnedMemory,
    /// Soundness flags of the operations, then outputs.
    inbound: PinnedMemory,
    device_outbound: DeviceMemory,
    device_inbound: DeviceMemory,
    tables: DeviceMemory,
}

/// Memory requirements of a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    transfer: usize,
    tables: usize,
}

impl Extent {
    /// Returns the requirements for these numbers of operations of each size.
    pub(crate) fn new(capacity: &[usize; KeySize::ALL.len()], plans: &[Plan; KeySize::ALL.len()]) -> Self {
        let sizes = || KeySize::ALL.into_iter().zip(capacity.iter().zip(plans));
        let transfer = sizes().map(|(size, (&count, _))| transfer_words(size, count)).max();
        let tables = sizes()
            .map(|(size, (&count, plan))| table_words(plan, size, count) + scratch_words(plan, size, count))
            .max();
        Self { transfer: transfer.unwrap_or(0), tables: tables.unwrap_or(0) }
    }

    /// Number of words on the device.
    pub(crate) fn words(self) -> usize {
        2 * self.transfer + self.tables
    }
}

/// Rounds up: numbers begin at a multiple of sixteen bytes.
pub(crate) fn header(count: usize) -> usize {
    count.next_multiple_of(4)
}

fn transfer_words(size: KeySize, count: usize) -> usize {
    header(count) + 2 * size.half_words() * count
}

fn table_words(plan: &Plan, size: KeySize, count: usize) -> usize {
    match plan {
        Plan::Integer(_) => blocks(size, count) * (BLOCK / 32) * size.table_words(),
        Plan::Fp64 { .. } => blocks52(count) * (BLOCK52 / 32) * size.table_words52(),
    }
}

/// Number of words passed between the three kernels.
fn scratch_words(plan: &Plan, size: KeySize, count: usize) -> usize {
    match plan {
        Plan::Integer(_) => 0,
        Plan::Fp64 { .. } => 4 * size.half_words() * count,
    }
}

fn blocks52(count: usize) -> usize {
    (2 * count).div_ceil(BLOCK52)
}

fn blocks(size: KeySize, count: usize) -> usize {
    (count * size.threads()).div_ceil(BLOCK)
}

impl Lane {
    pub(crate) fn new(device: &Arc<Device>, extent: Extent) -> Result<Self, Unavailable> {
        let stream = Stream::new(device)?;
        Ok(Self {
            outbound: PinnedMemory::new(device, extent.transfer)?,
            inbound: PinnedMemory::new(device, extent.transfer)?,
            device_outbound: DeviceMemory::new(device, extent.transfer, &stream)?,
            device_inbound: DeviceMemory::new(device, extent.transfer, &stream)?,
            tables: DeviceMemory::new(device, extent.tables, &stream)?,
            stream,
        })
    }

    /// Computes operations of one size, at most as many as the lane was created for. After an error the lane must not
    /// be used again, since the device may still write to it.
    pub(crate) fn run(
        &mut self,
        plan: &Plan,
        keys: &KeyStore,
        size: KeySize,
        ops: &mut [&mut PrivateOperation<'_, DeviceKey>],
        slots_of_keys: &[u32],
    ) -> Result<(), Unavailable> {
        let (count, number) = (ops.len(), 2 * size.half_words());
        let words = transfer_words(size, count);
        let outbound = &mut self.outbound.words_mut()[..words];
        let (slots, inputs) = outbound.split_at_mut(header(count));
        slots[..count].copy_from_slice(slots_of_keys);
        ops.iter().zip(inputs.chunks_exact_mut(number)).for_each(|(op, input)| put_input(op.input(), input));
        let tables = table_words(plan, size, count);
        let needed = tables + scratch_words(plan, size, count);
        assert!(needed <= self.tables.words(), "a batch larger than its lane");
        let mut arguments = Arguments {
            keys: keys.address(size as usize),
            slots: self.device_outbound.at(0),
            inputs: self.device_outbound.at(header(count)),
            outputs: self.device_inbound.at(header(count)),
            sound: self.device_inbound.at(0),
            tables: self.tables.at(0),
            count: u32::try_from(count).expect("no lane is that large"),
            exponent_bits: ops.iter().fold(0, |bits, op| bits | op.key().e),
            scratch: self.tables.at(tables),
        };
        self.stream.send(&self.device_outbound, 0, &self.outbound, 0..words)?;
        let blocks = blocks(size, count);
        match *plan {
            Plan::Integer(kernel) => self.stream.launch(kernel, blocks, BLOCK, &mut arguments)?,
            Plan::Fp64 { prepare, exponentiate, finish } => {
                self.stream.launch(prepare, blocks, BLOCK, &mut arguments)?;
                self.stream.launch(exponentiate, blocks52(count), BLOCK52, &mut arguments)?;
                self.stream.launch(finish, blocks, BLOCK, &mut arguments)?;
            }
        }
        self.stream.receive(&mut self.inbound, 0, &self.device_inbound, words)?;
        self.stream.clear(&self.device_inbound, 0..words)?;
        self.stream.clear(&self.device_outbound, 0..words)?;
        self.stream.wait()?;
        let (sound, outputs) = self.inbound.words()[..words].split_at(header(count));
        for ((op, &sound), output) in ops.iter_mut().zip(sound).zip(outputs.chunks_exact(number)) {
            op.finish(|bytes| {
                if sound != 1 {
                    return Err(PrivateOperationError::Fault);
                }
                put_output(output, bytes);
                Ok(())
            });
        }
        words::wipe(&mut self.inbound.words_mut()[..words]);
        words::wipe(&mut self.outbound.words_mut()[..words]);
        Ok(())
    }
}

/// Stores a big-endian input as words, the least significant first.
fn put_input(input: &[u8], words: &mut [u32]) {
    for (word, bytes) in words.iter_mut().zip(input.as_rchunks().1.iter().rev()) {
        *word = u32::from_be_bytes(*bytes);
    }
}

/// Stores the words of a result, the least significant first, as big-endian bytes.
fn put_output(words: &[u32], output: &mut [u8]) {
    for (bytes, word) in output.as_rchunks_mut().1.iter_mut().rev().zip(words) {
        *bytes = word.to_be_bytes();
    }
}
