//! Kernels against an independent arithmetic: on a device if there is one, and always on the CPU, where the same
//! sources run behind a fake driver.
//!
//! `TEST_OPERATIONS` sets the number of random RSA-2048 operations (by default 100,000 on a device, 400 on the CPU).
//! `TEST_GPU=required` makes a missing device a failure.

mod support;

use num_bigint::BigUint;
use quadrille_kernels_cuda::{
    Arithmetic, DeviceKey, Gpu, InputError, KeySize, Options, PrivateOperationError,
};
use std::io::Write;
use support::{Random, TestKey, fake::Fake, keys_of, padded, run};

/// Device, and its driver if that is the fake.
struct Device {
    gpu: Gpu,
    fake: Option<Fake>,
}

/// Runs the case on the CPU, and on the GPU if there is one, with each arithmetic.
fn each_device(case: impl Fn(&Device)) {
    for arithmetic in [Arithmetic::Integer, Arithmetic::Fp64] {
        let fake = Fake::new();
        let gpu = Gpu::open(&Options { arithmetic, ..fake.options() }).expect("the fake driver has a device");
        assert_eq!(gpu.uses_fp64(KeySize::Rsa2048), arithmetic == Arithmetic::Fp64);
        case(&Device { gpu, fake: Some(fake) });
        match Gpu::open(&Options { arithmetic, ..Options::default() }) {
            Ok(gpu) => {
                println!("on {}, {arithmetic:?}", gpu.name());
                case(&Device { gpu, fake: None });
            }
            Err(reason) => {
                // Bypasses the capture of test output, since a skipped test passes.
                let _ = writeln!(std::io::stderr(), "GPU: SKIPPED, {reason}");
                assert!(std::env::var_os("TEST_GPU").is_none(), "a GPU is required");
            }
        }
    }
}

fn uploaded(gpu: &Gpu, size: KeySize) -> Vec<(TestKey, DeviceKey)> {
    keys_of(size).into_iter().map(|key| (key.clone(), key.upload(gpu))).collect()
}

/// Checks that every result of a batch equals the oracle's.
fn check(gpu: &Gpu, batch: &[(&(TestKey, DeviceKey), Vec<u8>)]) {
    let operations: Vec<_> = batch.iter().map(|((_, key), input)| (key, input.as_slice())).collect();
    let (done, results) = run(gpu, &operations);
    done.expect("the device is available");
    for (((key, _), input), result) in batch.iter().zip(results) {
        assert_eq!(result, Ok(key.oracle(input)), "{input:02x?}");
    }
}

#[test]
fn edges() {
    each_device(|device| {
        for size in KeySize::ALL {
            let keys = uploaded(&device.gpu, size);
            let batch: Vec<_> = keys
                .iter()
                .flat_map(|key| edge_inputs(&key.0).into_iter().map(move |input| (key, input)))
                .collect();
            // Neighbours have different keys.
            let stride = batch.len() / keys.len();
            let mixed: Vec<_> =
                (0..stride).flat_map(|i| batch.iter().skip(i).step_by(stride).cloned()).collect();
            check(&device.gpu, &mixed);
        }
    });
}

/// 0, 1, p, q, multiples of them, n - 1, bits and all ones around the borders of words, threads and halves; and
/// inputs that become extreme 52-bit digits.
fn edge_inputs(key: &TestKey) -> Vec<Vec<u8>> {
    let len = key.n.len();
    let mut inputs: Vec<Vec<u8>> = [0, 1, 2, 255].iter().map(|&small| padded(&[small], len)).collect();
    inputs.extend([&key.p, &key.q].map(|prime| padded(prime, len)));
    let mut last = key.n.clone();
    last[len - 1] -= 1;
    inputs.push(last);
    for prime in [&key.p, &key.q] {
        let mut multiple = padded(prime, len / 2 + 1);
        multiple.extend(vec![0; len / 2 - 1]);
        inputs.push(multiple);
    }
    for bit in [31, 32, 255, 256, 8 * len / 2 - 1, 8 * len / 2, 8 * len - 2] {
        let (index, value) = (len - 1 - bit / 8, 1u8 << (bit % 8));
        let mut single = vec![0; len];
        single[index] = value;
        let mut ones = vec![0; len];
        ones[index] = value.wrapping_sub(1);
        ones[index + 1..].fill(0xff);
        inputs.extend([single, ones]);
    }
    let [n, p] = [&key.n, &key.p].map(|number| BigUint::from_bytes_be(number));
    let digits = (4 * len).div_ceil(52);
    let inverse = BigUint::from(2u8).pow(52 * digits as u32).modinv(&n).expect("n is odd");
    let repeated = |digit: u64| (1..digits).fold(BigUint::ZERO, |number, _| (number << 52) + digit);
    let edges = [0, 1].map(|less| (1u64 << 51) - less).map(repeated);
    for number in edges.into_iter().chain([repeated((1 << 52) - 1), &p - 1u8]) {
        inputs.push(padded(&(number * &inverse % &n).to_bytes_be(), len));
    }
    inputs
}

#[test]
fn partial_warps_and_several_launches() {
    each_device(|device| {
        let mut random = Random::new(1);
        for size in KeySize::ALL {
            let keys = uploaded(&device.gpu, size);
            let most = if device.fake.is_some() { device.gpu.capacity(size) } else { 16 };
            for count in [1, 2, 3, 5, most + 1] {
                let batch: Vec<_> =
                    keys.iter().cycle().take(count).map(|key| (key, random.residue(&key.0.n))).collect();
                check(&device.gpu, &batch);
            }
        }
        check(&device.gpu, &[]);
    });
}

#[test]
fn random_operations_with_mixed_keys_and_sizes() {
    each_device(|device| {
        let otherwise = if device.fake.is_some() { 400 } else { 100_000 };
        let total: usize =
            std::env::var("TEST_OPERATIONS").map_or(otherwise, |count| count.parse().expect("a number"));
        let mut random = Random::new(2);
        let keys = KeySize::ALL.map(|size| uploaded(&device.gpu, size));
        let mut left = total;
        while left > 0 {
            let count = left.min(1 + random.below(if device.fake.is_some() { 40 } else { 20_000 }));
            let batch: Vec<_> = (0..count)
                .map(|_| {
                    // Most operations are RSA-2048: servers use it most, and the oracle is slow beyond it.
                    let keys = &keys[[0, 0, 0, 0, 0, 0, 0, 1, 1, 2][random.below(10)]];
                    let key = &keys[random.below(keys.len())];
                    (key, random.residue(&key.0.n))
                })
                .collect();
            check(&device.gpu, &batch);
            left -= count;
        }
    });
}

#[test]
fn bad_inputs_fail_alone() {
    each_device(|device| {
        let other = Fake::new();
        let elsewhere = Gpu::open(&other.options()).expect("a second device");
        let keys = uploaded(&device.gpu, KeySize::Rsa2048);
        let foreign = keys[0].0.upload(&elsewhere);
        let mut random = Random::new(3);
        let good: Vec<_> = keys.iter().map(|(key, _)| random.residue(&key.n)).collect();
        let mut above = keys[2].0.n.clone();
        above[255] += 1;
        let batch: Vec<(&DeviceKey, &[u8])> = vec![
            (&keys[0].1, &good[0]),
            (&keys[1].1, &keys[1].0.n),
            (&keys[2].1, &above),
            (&foreign, &good[0]),
            (&keys[3].1, &good[3]),
            (&keys[4].1, &good[4][1..]),
            (&keys[5].1, &[]),
        ];
        let (done, results) = run(&device.gpu, &batch);
        assert_eq!(done, Ok(()));
        for i in [0, 4] {
            let key = if i == 0 { &keys[0].0 } else { &keys[3].0 };
            assert_eq!(results[i].as_ref(), Ok(&key.oracle(batch[i].1)));
        }
        assert_eq!([&results[1], &results[2]], [&Err(PrivateOperationError::Input(InputError::TooLarge)); 2]);
        assert_eq!(results[3], Err(PrivateOperationError::ForeignKey));
        assert_eq!([&results[5], &results[6]], [&Err(PrivateOperationError::Input(InputError::Length)); 2]);
    });
}

/// Keys with a flipped bit, anywhere from the primes on, beside intact ones: no wrong result is released.
#[test]
fn damaged_keys_give_no_wrong_result() {
    each_device(|device| {
        let mut random = Random::new(8);
        for size in KeySize::ALL {
            let (key, sound) = uploaded(&device.gpu, size).remove(0);
            let words = size.bits() / 64;
            let flips = if device.fake.is_some() { 4 } else { 200 };
            let damaged: Vec<DeviceKey> = (0..flips)
                .map(|_| {
                    let mut damaged = key.private();
                    damaged.flip_for_tests(32 * 4 * words + random.below(32 * 7 * words));
                    device.gpu.upload(&damaged).expect("there is room")
                })
                .collect();
            let input = random.residue(&key.n);
            let batch: Vec<_> =
                damaged.iter().flat_map(|damaged| [(damaged, &input[..]), (&sound, &input[..])]).collect();
            let (done, results) = run(&device.gpu, &batch);
            assert_eq!(done, Ok(()));
            for pair in results.chunks(2) {
                assert!(pair[0] == Err(PrivateOperationError::Fault) || pair[0] == pair[1], "{pair:?}");
                assert_eq!(pair[1], Ok(key.oracle(&input)));
            }
        }
    });
}

/// Threads share the device, and wait for free lanes.
#[test]
fn one_device_in_several_threads() {
    each_device(|device| {
        let keys = uploaded(&device.gpu, KeySize::Rsa2048);
        let work = |seed| {
            let mut random = Random::new(seed);
            let batch: Vec<_> = keys.iter().map(|key| (key, random.residue(&key.0.n))).collect();
            check(&device.gpu, &batch);
        };
        std::thread::scope(|scope| (10..14).for_each(|seed| drop(scope.spawn(move || work(seed)))));
    });
}
