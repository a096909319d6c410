//! One batch of signatures in progress: to pinned memory, to the device, through the kernel, and back.

use super::{
    MlDsaOperation, MlDsaSet,
    set::{INPUT_WORDS, N},
};
use crate::{
    batch_memory::{BatchMemory, Extent, Shape, number},
    driver::{Address, Device, Kernel, Unavailable},
};
use std::sync::Arc;

/// Number of threads of a block: one warp.
pub(super) const BLOCK: usize = 32;

/// Kernel of a parameter set, with its keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) set: MlDsaSet,
    pub(super) kernel: Kernel,
    /// Number of warps that the device runs at once.
    pub(super) warps: usize,
}

impl Plan {
    /// Maximum number of operations of one launch: several for each warp, which evens out their numbers of attempts.
    pub(super) fn capacity(&self) -> usize {
        8 * self.warps
    }

    fn shape(&self, count: usize) -> Shape {
        Shape { count, input: INPUT_WORDS, output: self.set.output_words() }
    }
}

/// Memory of a batch.
#[derive(Debug)]
pub(super) struct Lane(BatchMemory);

/// Returns the requirements of a lane.
pub(super) fn extent(plans: &[Plan]) -> Extent {
    let most = |words: fn(&Plan) -> usize| plans.iter().map(words).max().unwrap_or(0);
    Extent {
        outbound: most(|plan| plan.shape(plan.capacity()).outbound()),
        inbound: most(|plan| plan.shape(plan.capacity()).inbound()),
        tables: most(|plan| plan.set.table_words() * plan.warps),
    }
}

impl Lane {
    pub(super) fn new(device: &Arc<Device>, extent: Extent) -> Result<Self, Unavailable> {
        BatchMemory::new(device, extent).map(Self)
    }

    /// Computes operations of one parameter set, at most [`Plan::capacity`]. After an error the lane must not be used
    /// again, since the device may still write to it.
    pub(super) fn run(
        &mut self,
        plan: &Plan,
        keys: Address,
        constants: Address,
        ops: &mut [&mut MlDsaOperation<'_>],
        slots_of_keys: &[u32],
    ) -> Result<(), Unavailable> {
        let Self(memory) = self;
        let shape = plan.shape(ops.len());
        let inputs = memory.inputs(shape, slots_of_keys).chunks_exact_mut(INPUT_WORDS);
        for (op, input) in ops.iter().zip(inputs) {
            let bytes = op.mu.as_chunks().0.iter().chain(op.rho.as_chunks().0);
            input.iter_mut().zip(bytes).for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
        }
        let warps = plan.warps.min(shape.count);
        memory.require_tables(plan.set.table_words() * warps);
        let mut arguments = memory.arguments(shape, keys);
        (arguments.number, arguments.extra) = (number(warps), constants);
        memory.compute(shape, |stream| stream.launch(plan.kernel, warps, BLOCK, &mut arguments))?;
        memory.finish(shape, ops, |op, sound, output| {
            op.signed = sound && encode(plan.set, output, op.signature);
        });
        Ok(())
    }
}

/// Encodes a signature (FIPS 204, algorithm 26) whose hints are one bit for each coefficient. Returns false for more
/// hints than the encoding has room for.
fn encode(set: MlDsaSet, output: &[u32], signature: &mut [u8]) -> bool {
    let (packed, hints) = output.split_at(set.hash_words() + set.response_words());
    if hints.iter().map(|word| word.count_ones() as usize).sum::<usize>() > set.hints() {
        return false;
    }
    let (bytes, rest) = signature.split_at_mut(4 * packed.len());
    bytes.as_chunks_mut().0.iter_mut().zip(packed).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
    let (positions, ends) = rest.split_at_mut(set.hints());
    positions.fill(0);
    let mut count = 0;
    for (polynomial, end) in hints.chunks_exact(N / 32).zip(ends) {
        for (first, mut word) in (0..).step_by(32).zip(polynomial.iter().copied()) {
            while word != 0 {
                positions[count] = first + word.trailing_zeros() as u8;
                count += 1;
                word &= word - 1;
            }
        }
        *end = count as u8;
    }
    true
}
