//! One batch in progress: to pinned memory, to the device, through a kernel, and back.

use crate::{
    DeviceKey, KeySize,
    batch_memory::{BatchMemory, Extent, Shape},
    driver::{Device, Kernel, Unavailable},
    key::KernelSize,
    keys::KeyStore,
};
use quadrille_rsa_numbers::{PrivateOperation, PrivateOperationError};
use std::sync::Arc;

/// Number of threads of a block: four warps. Blocks are independent, so small ones fill a device best.
pub(crate) const BLOCK: usize = 128;
/// Number of threads of a block of kernel/rsa52.cuh, with two for each operation.
pub(crate) const BLOCK52: usize = 128;

/// Kernels for operations of one size.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// One kernel, in integers.
    Integer(Kernel),
    /// Three kernels: the exponentiation on FP64 units, and integer kernels before and after it.
    Fp64 { prepare: Kernel, exponentiate: Kernel, finish: Kernel },
}

/// Memory of a batch. A [`Gpu`](crate::Gpu) has several, so that one copies while another computes.
#[derive(Debug)]
pub(crate) struct Lane(BatchMemory);

/// Returns the requirements of a lane for these numbers of operations of each size.
pub(crate) fn extent(capacity: &[usize; KeySize::ALL.len()], plans: &[Plan; KeySize::ALL.len()]) -> Extent {
    let sizes = || KeySize::ALL.into_iter().zip(capacity.iter().zip(plans));
    let transfer = sizes().map(|(size, (&count, _))| shape(size, count).outbound()).max().unwrap_or(0);
    let tables = sizes()
        .map(|(size, (&count, plan))| table_words(plan, size, count) + scratch_words(plan, size, count))
        .max();
    Extent { outbound: transfer, inbound: transfer, tables: tables.unwrap_or(0) }
}

fn shape(size: KeySize, count: usize) -> Shape {
    let number = 2 * size.half_words();
    Shape { count, input: number, output: number }
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
        BatchMemory::new(device, extent).map(Self)
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
        let (Self(memory), count) = (self, ops.len());
        let shape = shape(size, count);
        let inputs = memory.inputs(shape, slots_of_keys).chunks_exact_mut(shape.input);
        ops.iter().zip(inputs).for_each(|(op, input)| put_input(op.input(), input));
        let tables = table_words(plan, size, count);
        memory.require_tables(tables + scratch_words(plan, size, count));
        let mut arguments = memory.arguments(shape, keys.address(size as usize));
        arguments.number = ops.iter().fold(0, |bits, op| bits | op.key().e);
        arguments.extra = memory.table(tables);
        let blocks = blocks(size, count);
        memory.compute(shape, |stream| match *plan {
            Plan::Integer(kernel) => stream.launch(kernel, blocks, BLOCK, &mut arguments),
            Plan::Fp64 { prepare, exponentiate, finish } => {
                stream.launch(prepare, blocks, BLOCK, &mut arguments)?;
                stream.launch(exponentiate, blocks52(count), BLOCK52, &mut arguments)?;
                stream.launch(finish, blocks, BLOCK, &mut arguments)
            }
        })?;
        memory.finish(shape, ops, |op, sound, output| {
            op.finish(|bytes| {
                if !sound {
                    return Err(PrivateOperationError::Fault);
                }
                put_output(output, bytes);
                Ok(())
            });
        });
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
