//! Cross-check of the GPU against the CPU's lanes with random operations: two independent implementations must agree
//! in every bit.

use super::{for_lanes, generate, numbers_of, upload};
use quadrille_kernels::{Ceiling, Lanes, PrivateOperation};
use quadrille_kernels_cuda::{DeviceKey, Gpu, KeySize};
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// Number of keys of each size.
const KEYS: usize = 8;
/// Number of operations of each size computed together.
const TOGETHER: usize = 4096;

struct Key {
    on_device: DeviceKey,
    in_lanes: quadrille_kernels::PrivateKey,
}

/// Computes at least `count` random operations of each size with random keys on both, on all cores; returns the
/// number of operations, all of which agreed.
///
/// # Errors
/// A message with the first operation that did not agree, or the reason that the GPU is not usable.
pub fn agree(gpu: &Gpu, sizes: &[KeySize], count: usize) -> Result<usize, String> {
    let agreed = AtomicUsize::new(0);
    for &size in sizes {
        let keys: Vec<Key> = (0..KEYS).map(|_| key(gpu, size)).collect::<Result<_, _>>()?;
        let taken = AtomicUsize::new(0);
        let work = || {
            while taken.fetch_add(TOGETHER, Ordering::Relaxed) < count {
                agreed.fetch_add(together(gpu, size, &keys)?, Ordering::Relaxed);
            }
            Ok(())
        };
        thread::scope(|scope| {
            let threads = thread::available_parallelism().map_or(1, usize::from);
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned())))
        })?;
    }
    Ok(agreed.into_inner())
}

fn key(gpu: &Gpu, size: KeySize) -> Result<Key, String> {
    let numbers = numbers_of(&generate(size)?).ok_or("the key has no primes")?;
    Ok(Key { on_device: upload(gpu, &numbers)?, in_lanes: for_lanes(&numbers)? })
}

fn together(gpu: &Gpu, size: KeySize, keys: &[Key]) -> Result<usize, String> {
    let bytes = size.bytes();
    let mut inputs = vec![0; TOGETHER * bytes];
    boring::rand::rand_bytes(&mut inputs).map_err(|error| error.to_string())?;
    // Less than every modulus of this size, whose top bit is set.
    inputs.chunks_exact_mut(bytes).for_each(|input| input[0] &= 0x7f);
    let (mut here, mut there) = (vec![0; inputs.len()], vec![0; inputs.len()]);
    let chosen = || keys.iter().cycle().zip(inputs.chunks_exact(bytes));
    let mut on_gpu: Vec<_> = chosen()
        .zip(there.chunks_exact_mut(bytes))
        .map(|((key, input), output)| PrivateOperation::new(&key.on_device, input, output))
        .collect();
    gpu.run(&mut on_gpu).map_err(|error| error.to_string())?;
    if let Some(error) = on_gpu.iter().find_map(|op| op.outcome().err()) {
        return Err(format!("RSA-{} on the GPU: {error}", size.bits()));
    }
    let mut in_lanes: Vec<_> = chosen()
        .zip(here.chunks_exact_mut(bytes))
        .map(|((key, input), output)| PrivateOperation::new(&key.in_lanes, input, output))
        .collect();
    Lanes::up_to(Ceiling::default()).private_operations(&mut in_lanes);
    if let Some(error) = in_lanes.iter().find_map(|op| op.outcome().err()) {
        return Err(format!("RSA-{} in the lanes: {error}", size.bits()));
    }
    let mut both = here.chunks_exact(bytes).zip(there.chunks_exact(bytes));
    match both.position(|(here, there)| here != there) {
        None => Ok(TOGETHER),
        Some(i) => {
            Err(format!("RSA-{}: operation {i} of a batch has a different result on the GPU", size.bits()))
        }
    }
}
