//! One batch of signatures in progress: to pinned memory, to the device, through the kernel, and back.

use super::{
    MlDsaOperation, MlDsaSet,
    set::{INPUT_WORDS, N},
};
use crate::{
    driver::{Address, Device, DeviceMemory, Kernel, PinnedMemory, Stream, Unavailable},
    lane::header,
};
use quadrille_rsa_numbers::words;
use std::sync::Arc;

/// Number of threads of a block: one warp.
pub(super) const BLOCK: usize = 32;

/// Mirrors `struct Signatures` of kernel/ml_dsa.cuh.
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
    warps: u32,
    constants: Address,
}

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
}

/// Stream with its memory.
#[derive(Debug)]
pub(super) struct Lane {
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

/// Memory requirements of a lane, in words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    outbound: usize,
    inbound: usize,
    tables: usize,
}

impl Extent {
    pub(super) fn new(plans: &[Plan]) -> Self {
        let most = |words: fn(&Plan) -> usize| plans.iter().map(words).max().unwrap_or(0);
        Self {
            outbound: most(|plan| header(plan.capacity()) + INPUT_WORDS * plan.capacity()),
            inbound: most(|plan| header(plan.capacity()) + plan.set.output_words() * plan.capacity()),
            tables: most(|plan| plan.set.table_words() * plan.warps),
        }
    }

    /// Number of words on the device.
    pub(super) fn words(self) -> usize {
        self.outbound + self.inbound + self.tables
    }
}

impl Lane {
    pub(super) fn new(device: &Arc<Device>, extent: Extent) -> Result<Self, Unavailable> {
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
        let (count, number) = (ops.len(), plan.set.output_words());
        let (sent, received) = (header(count) + INPUT_WORDS * count, header(count) + number * count);
        let (slots, inputs) = self.outbound.words_mut()[..sent].split_at_mut(header(count));
        slots[..count].copy_from_slice(slots_of_keys);
        for (op, input) in ops.iter().zip(inputs.chunks_exact_mut(INPUT_WORDS)) {
            let bytes = op.mu.as_chunks().0.iter().chain(op.rho.as_chunks().0);
            input.iter_mut().zip(bytes).for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
        }
        let warps = plan.warps.min(count);
        assert!(plan.set.table_words() * warps <= self.tables.words(), "a batch larger than its lane");
        let number_of = |number: usize| u32::try_from(number).expect("no lane is that large");
        let mut arguments = Arguments {
            keys,
            slots: self.device_outbound.at(0),
            inputs: self.device_outbound.at(header(count)),
            outputs: self.device_inbound.at(header(count)),
            sound: self.device_inbound.at(0),
            tables: self.tables.at(0),
            count: number_of(count),
            warps: number_of(warps),
            constants,
        };
        self.stream.send(&self.device_outbound, 0, &self.outbound, 0..sent)?;
        self.stream.launch(plan.kernel, warps, BLOCK, &mut arguments)?;
        self.stream.receive(&mut self.inbound, 0, &self.device_inbound, received)?;
        self.stream.clear(&self.device_inbound, 0..received)?;
        self.stream.clear(&self.device_outbound, 0..sent)?;
        self.stream.wait()?;
        let (sound, outputs) = self.inbound.words()[..received].split_at(header(count));
        for ((op, &sound), output) in ops.iter_mut().zip(sound).zip(outputs.chunks_exact(number)) {
            op.signed = sound == 1 && encode(plan.set, output, op.signature);
        }
        words::wipe(&mut self.inbound.words_mut()[..received]);
        words::wipe(&mut self.outbound.words_mut()[..sent]);
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
