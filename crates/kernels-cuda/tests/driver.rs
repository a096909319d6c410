//! Errors without a GPU or after its loss, and absence of leaks: with a fake driver.

mod support;

use quadrille_kernels_cuda::{
    Arithmetic, Components, Gpu, KeyError, KeySize, NumbersError, Options, PrivateKey, PrivateOperationError,
    Unavailable, UploadError,
};
use support::{Random, all_keys, fake::Fake, keys_of, run};

/// Returns the result of opening a driver with these faults.
fn opened(set: &[(&str, i64)]) -> String {
    let fake = Fake::new();
    set.iter().for_each(|(name, value)| fake.set(name, *value));
    let reason = Gpu::open(&fake.options())
        .map(|gpu| gpu.name().to_owned())
        .unwrap_or_else(|reason| reason.to_string());
    assert_eq!(
        (fake.get("memory"), fake.get("pinned"), fake.get("streams")),
        (0, 0, 0),
        "no leaks: {reason}"
    );
    assert_eq!((fake.get("contexts"), fake.get("dirty")), (0, 0), "no leaks: {reason}");
    reason
}

#[test]
fn without_a_device_the_reason_is_said() {
    assert_eq!(opened(&[]), "Fake GPU");
    assert_eq!(opened(&[("devices", 0)]), "the NVIDIA driver reports no device");
    assert_eq!(opened(&[("init", 100)]), "the NVIDIA driver reports no device");
    assert_eq!(opened(&[("init", 719)]), "the GPU's driver failed: cuInit returned CUDA_ERROR_LAUNCH_FAILED");
    assert_eq!(opened(&[("init", 803)]), "the GPU's driver failed: cuInit returned error 803");
    assert_eq!(
        opened(&[("capability", 6)]),
        "the GPU Fake GPU is too old: its compute capability is 6.0, and 7.0 is required"
    );
    assert_eq!(opened(&[("module", 218)]), "the GPU's driver failed: cuModuleLoadData returned error 218");
    assert_eq!(
        opened(&[("free_memory", 100_000)]),
        "not enough free memory on the GPU: 0 MiB, 1 MiB required"
    );
}

#[test]
fn memory_that_runs_out_while_it_is_taken_leaves_nothing_behind() {
    // One for the keys of each size, three for each lane.
    for allocations in 0..15 {
        assert_eq!(
            opened(&[("allocations", allocations)]),
            "the GPU's driver failed: cuMemAlloc returned CUDA_ERROR_OUT_OF_MEMORY"
        );
    }
    assert_eq!(opened(&[("allocations", 15)]), "Fake GPU");
}

#[test]
fn a_missing_driver_and_an_invalid_library() {
    let open =
        |library: &str| Gpu::open(&Options { library: library.into(), ..Options::default() }).unwrap_err();
    let missing = open("libquadrille-has-no-such-driver.so.1");
    assert!(matches!(missing, Unavailable::NoDriver(_)), "{missing:?}");
    assert!(
        missing.to_string().starts_with("no NVIDIA driver (libquadrille-has-no-such-driver.so.1: "),
        "{missing}"
    );
    let other = open("libc.so.6");
    assert_eq!(other, Unavailable::OldDriver("cuInit"));
    assert_eq!(
        other.to_string(),
        "the NVIDIA driver is too old: it lacks cuInit; CUDA 11 or later is required"
    );
}

#[test]
fn a_lost_device_says_so_and_computes_nothing_any_more() {
    let fake = Fake::new();
    let gpu = Gpu::open(&fake.options()).unwrap();
    let key = keys_of(KeySize::Rsa2048).remove(0);
    let uploaded = key.upload(&gpu);
    let input = Random::new(1).residue(&key.n);
    let (done, results) = run(&gpu, &[(&uploaded, &input)]);
    assert_eq!((done, &results[0]), (Ok(()), &Ok(key.oracle(&input))));
    fake.set("lost_at", 1);
    let lost = Unavailable::Failed { call: "cuMemcpyHtoDAsync", error: "CUDA_ERROR_LAUNCH_FAILED".into() };
    let (done, results) = run(&gpu, &[(&uploaded, &input)]);
    assert_eq!((done, &results[0]), (Err(lost.clone()), &Err(PrivateOperationError::NotRun)));
    // The same holds if the device recovers: its contents are unknown.
    fake.set("lost_at", 1 << 40);
    assert_eq!(run(&gpu, &[(&uploaded, &input)]).0, Err(lost.clone()));
    assert_eq!(gpu.upload(&key.private()).unwrap_err(), UploadError::Unavailable(lost));
}

/// The launch is accepted, and fails while a thread waits for it; others wait for its lane.
#[test]
fn a_device_that_is_lost_under_several_threads_lets_all_of_them_go() {
    let fake = Fake::new();
    let gpu = Gpu::open(&fake.options()).unwrap();
    let key = keys_of(KeySize::Rsa2048).remove(0);
    let uploaded = key.upload(&gpu);
    let input = Random::new(2).residue(&key.n);
    fake.set("lost_at", 3);
    let failed = std::thread::scope(|scope| {
        let work = || (0..4).filter(|_| run(&gpu, &[(&uploaded, &input)]).0.is_err()).count();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    });
    assert!(failed >= 13, "{failed} of 16 failed");
}

#[test]
fn the_device_decides_the_arithmetic() {
    let fp64 = |arithmetic, single_to_double| {
        let fake = Fake::new();
        fake.set("single_to_double", single_to_double);
        let gpu = Gpu::open(&Options { arithmetic, ..fake.options() }).unwrap();
        KeySize::ALL.map(|size| gpu.uses_fp64(size))
    };
    for (single_to_double, fast) in [(0, false), (2, true), (32, false), (64, false)] {
        assert_eq!(fp64(Arithmetic::Auto, single_to_double), [fast, fast, false]);
        assert_eq!(fp64(Arithmetic::Integer, single_to_double), [false; 3]);
        assert_eq!(fp64(Arithmetic::Fp64, single_to_double), [true, true, false]);
    }
}

#[test]
fn keys_are_wiped_when_they_are_released_and_their_room_is_used_again() {
    for arithmetic in [Arithmetic::Integer, Arithmetic::Fp64] {
        wipes(arithmetic);
    }
}

fn wipes(arithmetic: Arithmetic) {
    let fake = Fake::new();
    let gpu = Gpu::open(&Options { keys: 2, arithmetic, ..fake.options() }).expect("a device");
    assert_eq!(fake.get("secrets"), 0, "no secrets at first");
    let keys = keys_of(KeySize::Rsa2048);
    let first = keys[0].upload(&gpu);
    let second = keys[1].upload(&gpu);
    assert_eq!(gpu.upload(&keys[2].private()).expect_err("both slots are taken"), UploadError::Full(2));
    assert_eq!(gpu.keys(KeySize::Rsa2048), 2);
    let inputs: Vec<_> = keys.iter().map(|key| Random::new(3).residue(&key.n)).collect();
    run(&gpu, &[(&first, &inputs[0]), (&second, &inputs[1])]).0.expect("the device is available");
    assert_eq!(fake.get("secrets"), 1, "only the keys remain after a batch");
    drop(first);
    assert_eq!(gpu.keys(KeySize::Rsa2048), 1);
    let third = keys[2].upload(&gpu);
    let (done, results) = run(&gpu, &[(&third, &inputs[2]), (&second, &inputs[1])]);
    done.expect("the device is available");
    assert_eq!(results, [Ok(keys[2].oracle(&inputs[2])), Ok(keys[1].oracle(&inputs[1]))]);
    drop((second, third));
    assert_eq!(fake.get("secrets"), 0);
    drop(gpu);
    assert_eq!(
        (fake.get("dirty"), fake.get("memory"), fake.get("pinned"), fake.get("contexts")),
        (0, 0, 0, 0)
    );
}

/// Flipped bits all over a key, in its halves, their constants and the modulus: the device itself detects the wrong
/// result.
#[test]
fn a_damaged_key_gives_no_result() {
    refuses(Arithmetic::Integer);
}

/// The key is damaged while each of the three kernels runs, and intact between them.
#[test]
fn a_damaged_key_gives_no_result_with_fp64() {
    refuses(Arithmetic::Fp64);
}

fn refuses(arithmetic: Arithmetic) {
    let fake = Fake::new();
    let gpu = Gpu::open(&Options { arithmetic, ..fake.options() }).expect("a device");
    let keys = keys_of(KeySize::Rsa2048);
    let uploaded: Vec<_> = keys.iter().take(2).map(|key| key.upload(&gpu)).collect();
    let mut random = Random::new(4);
    let total = std::env::var("TEST_FAULTS").map_or(150, |count| count.parse().expect("a number"));
    let half = 32 * 32;
    for i in 0..total {
        // From the primes to the inverse; and n, R^2 mod n, -n^-1 and e.
        let bit = match i % 15 {
            0 => random.below(4 * half),
            1 => 13 * half + 64 + random.below(64),
            _ => 4 * half + random.below(9 * half + 64),
        };
        fake.set("flip_key", bit as i64);
        let inputs = [0, 1].map(|i: usize| random.residue(&keys[i].n));
        let (done, results) = run(&gpu, &[(&uploaded[0], &inputs[0]), (&uploaded[1], &inputs[1])]);
        done.expect("the device is available");
        // Bits of the public exponent that no key of the batch has are not read.
        let unused = bit >= 13 * half + 96 && ![0, 16].contains(&(bit % 32));
        let expected =
            if unused { Ok(keys[0].oracle(&inputs[0])) } else { Err(PrivateOperationError::Fault) };
        assert_eq!(results[0], expected, "bit {bit}");
        assert_eq!(results[1], Ok(keys[1].oracle(&inputs[1])), "the other operation, bit {bit}");
    }
}

/// Flipped bits of the data between the three kernels, of the tables, and of digits, at any moment of the
/// exponentiation.
#[test]
fn what_fp64_units_get_wrong_gives_no_result() {
    let fake = Fake::new();
    let gpu = Gpu::open(&Options { arithmetic: Arithmetic::Fp64, ..fake.options() }).expect("a device");
    let keys = keys_of(KeySize::Rsa2048);
    let uploaded: Vec<_> = keys.iter().take(2).map(|key| key.upload(&gpu)).collect();
    let mut random = Random::new(5);
    let total = std::env::var("TEST_FAULTS").map_or(150, |count| count.parse().expect("a number"));
    // Operation 0 has lanes 0 and 1. All bits of a double except the exponent's, which the CPU version does not
    // support.
    let double_bit = |random: &mut Random| [random.below(52), 63][usize::from(random.below(20) == 0)];
    let mut refused = 0;
    for i in 0..total {
        let kind = ["flip_scratch", "flip_digit", "flip_table"][i % 3];
        let bit = match kind {
            // x mod p and q, then 1, of both operations after each other.
            "flip_scratch" => 2 * 2048 * random.below(2) + random.below(2048),
            "flip_digit" => 64 * random.below(2) + double_bit(&mut random),
            _ => {
                let cell = 32 * random.below(8 * 10) + random.below(2);
                128 * cell + 64 * random.below(2) + double_bit(&mut random)
            }
        };
        // After the table is computed, and before it is wiped; some 34,500 digits are stored.
        fake.set("flip_at", 400 + random.below(33_000) as i64);
        fake.set(kind, bit as i64);
        let inputs = [0, 1].map(|i: usize| random.residue(&keys[i].n));
        let (done, results) = run(&gpu, &[(&uploaded[0], &inputs[0]), (&uploaded[1], &inputs[1])]);
        done.expect("the device is available");
        fake.set(kind, -1);
        match &results[0] {
            Err(error) => assert_eq!(error, &PrivateOperationError::Fault, "{kind} {bit}"),
            // A change below one is truncated, and an entry may not be used any more.
            Ok(_) => assert_eq!(results[0], Ok(keys[0].oracle(&inputs[0])), "{kind} {bit}"),
        }
        assert!(kind != "flip_scratch" || results[0].is_err(), "bit {bit}");
        assert_eq!(results[1], Ok(keys[1].oracle(&inputs[1])), "the other operation, {kind} {bit}");
        refused += usize::from(results[0].is_err());
    }
    assert!(4 * refused > 3 * total, "{refused} of {total}");
}

#[test]
fn keys_that_the_gpu_does_not_take() {
    let large = all_keys().find(|key| key.e.len() > 4).unwrap();
    assert_eq!(PrivateKey::new(&large.components()).unwrap_err(), KeyError::UnsupportedExponent);
    let key = keys_of(KeySize::Rsa2048).remove(0);
    let sound = key.components();
    let refused = |components: Components<'_>| PrivateKey::new(&components).map(|key| key.size());
    for i in 0..6 {
        let mut wrong = [sound.n, sound.p, sound.q, sound.dp, sound.dq, sound.qinv][i].to_vec();
        *wrong.last_mut().unwrap() ^= 2;
        let mut components = sound;
        let Components { n, p, q, dp, dq, qinv, .. } = &mut components;
        *[n, p, q, dp, dq, qinv][i] = &wrong;
        assert_eq!(refused(components), Err(KeyError::Numbers(NumbersError::Inconsistent)), "number {i}");
    }
    for e in [&[2][..], &[1], &[]] {
        assert_eq!(refused(Components { e, ..sound }), Err(KeyError::Numbers(NumbersError::Inconsistent)));
    }
    assert_eq!(
        refused(Components { n: &sound.n[1..], ..sound }),
        Err(KeyError::Numbers(NumbersError::UnsupportedSize))
    );
    assert_eq!(
        refused(Components { p: &sound.p[1..], ..sound }),
        Err(KeyError::Numbers(NumbersError::UnsupportedSize))
    );
    let mut zeros = vec![0; 3];
    zeros.extend(sound.n);
    assert_eq!(refused(Components { n: &zeros, ..sound }), Ok(KeySize::Rsa2048));
}
