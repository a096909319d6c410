//! Test suite for all tiers: each case runs on every tier of this CPU, with the portable tier as the oracle.
//!
//! `TEST_OPERATIONS` sets the number of random operations of a tier (1,000 by default). `TEST_TIERS`, a list, selects
//! the tiers to run, and makes a missing one a failure.

mod support;

use quadrille_kernels::{
    Components, Computed, InputError, KeyError, KeySize, Lanes, PrivateKey, PrivateOperationError,
};
use support::{Random, TestKey, keys, keys_of, oracle, padded, run};

support::on_each_tier! { edges partial_fills long_batches mixed_sizes bad_inputs threads random repeatable confirmed }

/// 0, 1, p, q, their multiples, n - 1, words and digits of all ones: every key, lanes filled with a mixture.
fn edges(lanes: &Lanes) {
    for size in KeySize::ALL {
        let keys = keys_of(size);
        let inputs: Vec<(usize, Vec<u8>)> = keys
            .iter()
            .enumerate()
            .flat_map(|(i, key)| edge_inputs(key).into_iter().map(move |x| (i, x)))
            .collect();
        // Neighbours in a batch have different keys.
        let stride = inputs.len() / keys.len();
        let order: Vec<_> = (0..stride).flat_map(|i| inputs.iter().skip(i).step_by(stride)).collect();
        let batch: Vec<_> = order.iter().map(|(i, input)| (&keys[*i].key, input.as_slice())).collect();
        let expected: Vec<_> = batch.iter().map(|(key, input)| Ok(oracle(key, input))).collect();
        // Full batches, and batches so small that both halves of an operation share a ring.
        for fill in [lanes.width(), (lanes.width() / 2).max(1)] {
            for (batch, expected) in batch.chunks(fill).zip(expected.chunks(fill)) {
                assert_eq!(run(lanes, batch), expected);
            }
        }
    }
}

fn edge_inputs(key: &TestKey) -> Vec<Vec<u8>> {
    let len = key.n.len();
    let small = |x: u8| padded(&[x], len);
    let mut inputs = vec![small(0), small(1), small(2), small(255), padded(&key.p, len), padded(&key.q, len)];
    let mut last = key.n.clone();
    last[len - 1] -= 1;
    inputs.push(last);
    inputs.extend([&key.p, &key.q].map(|prime| shifted(prime, len, len / 2 - 1)));
    inputs.extend([&key.p, &key.q].map(|prime| shifted(prime, len, 1)));
    // All ones up to a bit, and one bit alone, around the borders of words, digits and halves.
    for bit in [46, 47, 51, 52, 63, 64, 8 * len / 2 - 1, 8 * len / 2, 8 * len - 2] {
        inputs.push(power_of_two(bit, len, 0));
        inputs.push(power_of_two(bit, len, 0xff));
    }
    inputs
}

/// Returns number * 256^bytes, with a factor such that it stays below n.
fn shifted(number: &[u8], len: usize, bytes: usize) -> Vec<u8> {
    let mut wide = padded(number, len - bytes);
    wide.extend(vec![0; bytes]);
    wide
}

/// Returns 2^bit, or with `below` = 0xff all ones below it.
fn power_of_two(bit: usize, len: usize, below: u8) -> Vec<u8> {
    let mut out = vec![0; len];
    let index = len - 1 - bit / 8;
    out[index] = if below == 0 { 1 << (bit % 8) } else { (1u16 << (bit % 8)).wrapping_sub(1) as u8 };
    out[index + 1..].fill(below);
    out
}

/// Batches of 1 to width() operations, each with its own key.
fn partial_fills(lanes: &Lanes) {
    let mut random = Random::new(1);
    for size in KeySize::ALL {
        let keys = keys_of(size);
        for fill in 1..=lanes.width() {
            let inputs: Vec<_> =
                keys.iter().cycle().take(fill).map(|key| (key, random.residue(&key.n))).collect();
            let batch: Vec<_> = inputs.iter().map(|(key, input)| (&key.key, input.as_slice())).collect();
            check(lanes, &batch);
        }
    }
}

fn long_batches(lanes: &Lanes) {
    let keys = keys_of(KeySize::Rsa2048);
    let mut random = Random::new(2);
    for len in [0, lanes.width() + 1, 2 * lanes.width() + 3] {
        let inputs: Vec<_> = keys.iter().cycle().take(len).map(|key| (key, random.residue(&key.n))).collect();
        let batch: Vec<_> = inputs.iter().map(|(key, input)| (&key.key, input.as_slice())).collect();
        check(lanes, &batch);
    }
}

fn mixed_sizes(lanes: &Lanes) {
    let keys = keys();
    let mut random = Random::new(3);
    let inputs: Vec<_> =
        (0..11).map(|i| &keys[i * 5 % keys.len()]).map(|key| (key, random.residue(&key.n))).collect();
    let batch: Vec<_> = inputs.iter().map(|(key, input)| (&key.key, input.as_slice())).collect();
    check(lanes, &batch);
}

/// An input that is too large or has the wrong length affects its own lane only.
fn bad_inputs(lanes: &Lanes) {
    let keys = keys_of(KeySize::Rsa2048);
    let mut random = Random::new(4);
    let good: Vec<_> = keys.iter().map(|key| random.residue(&key.n)).collect();
    let largest = vec![0xff; 256];
    let mut above = keys[2].n.clone();
    above[255] += 1;
    let batch: Vec<(&PrivateKey, &[u8])> = vec![
        (&keys[0].key, &good[0]),
        (&keys[1].key, &keys[1].n),
        (&keys[2].key, &above),
        (&keys[3].key, &good[3]),
        (&keys[4].key, &largest),
        (&keys[5].key, &good[5][1..]),
        (&keys[6].key, &[]),
        (&keys[7].key, &good[7]),
    ];
    let results = run(lanes, &batch);
    for i in [0, 3, 7] {
        assert_eq!(results[i].as_ref(), Ok(&oracle(batch[i].0, batch[i].1)));
    }
    for i in [1, 2, 4] {
        assert_eq!(results[i], Err(PrivateOperationError::Input(InputError::TooLarge)));
    }
    for i in [5, 6] {
        assert_eq!(results[i], Err(PrivateOperationError::Input(InputError::Length)));
    }
}

/// Threads share lanes and keys.
fn threads(lanes: &Lanes) {
    let key = keys_of(KeySize::Rsa2048).remove(0);
    let input = Random::new(5).residue(&key.n);
    let expected = oracle(&key.key, &input);
    let work = || {
        for _ in 0..4 {
            let batch = vec![(&key.key, input.as_slice()); lanes.width()];
            assert!(run(lanes, &batch).iter().all(|result| result.as_ref() == Ok(&expected)));
        }
    };
    if std::env::var_os("TEST_SINGLE_THREAD").is_some() {
        return work(); // the emulated CPU has one
    }
    std::thread::scope(|scope| {
        (0..3).for_each(|_| drop(scope.spawn(work)));
    });
}

/// Random inputs and random assignments of keys to lanes.
fn random(lanes: &Lanes) {
    let total: usize = std::env::var("TEST_OPERATIONS").map_or(1_000, |n| n.parse().expect("a number"));
    // The oracle against itself only needs a smoke test.
    let total = if lanes.name() == "portable" { total / 20 } else { total };
    let mut random = Random::new(6);
    // Most operations are RSA-2048: servers use it most, and the oracle is slow beyond it.
    for (size, operations) in KeySize::ALL.into_iter().zip([total, total / 20, total / 40]) {
        let keys = keys_of(size);
        let mut left = operations;
        while left > 0 {
            let fill = (1 + random.below(lanes.width())).min(left);
            let inputs: Vec<_> = (0..fill)
                .map(|_| {
                    let key = &keys[random.below(keys.len())];
                    (key, random.residue(&key.n))
                })
                .collect();
            let batch: Vec<_> = inputs.iter().map(|(key, input)| (&key.key, input.as_slice())).collect();
            check(lanes, &batch);
            left -= fill;
        }
    }
}

/// The memory of a batch is reused: no data of one batch may reach the next.
fn repeatable(lanes: &Lanes) {
    let keys = keys_of(KeySize::Rsa3072);
    let mut random = Random::new(7);
    let inputs: Vec<_> = keys.iter().map(|key| random.residue(&key.n)).collect();
    let batch: Vec<_> = keys.iter().zip(&inputs).map(|(key, input)| (&key.key, input.as_slice())).collect();
    let first = run(lanes, &batch);
    run(lanes, &batch[1..2]);
    assert_eq!(run(lanes, &batch), first);
}

/// Every result of a batch equals the oracle's.
/// Right results of all sizes are confirmed beside wrong ones: a bit off, for another input, not below the modulus,
/// or of another length.
fn confirmed(lanes: &Lanes) {
    let keys = keys();
    let mut random = Random::new(7);
    let mut cases: Vec<(&PrivateKey, Vec<u8>, Vec<u8>, bool)> = Vec::new();
    for (i, TestKey { key, n, .. }) in keys.iter().enumerate() {
        let input = random.residue(n);
        let right = oracle(key, &input);
        let mut off = right.clone();
        off[random.below(n.len())] ^= 1 << random.below(8);
        let mut other = input.clone();
        other[n.len() - 1] ^= 1;
        let wrong = [
            (input.clone(), off),
            (other, right.clone()),
            (input.clone(), plus(&right, n)),
            (input.clone(), right[1..].to_vec()),
            (input[1..].to_vec(), right.clone()),
            (n.clone(), vec![0; n.len()]),
        ];
        cases.push((key, input, right, true));
        let (input, result) = wrong[i % wrong.len()].clone();
        cases.push((key, input, result, false));
        cases.extend(wrong.into_iter().take(2).map(|(input, result)| (key, input, result, false)));
    }
    let batch: Vec<_> = cases.iter().map(|(key, input, result, _)| Computed { key, input, result }).collect();
    let expected: Vec<_> = cases.iter().map(|(.., right)| *right).collect();
    assert_eq!(lanes.confirm(&batch), expected);
    assert_eq!(lanes.confirm(&batch[..1]), [true]);
    assert_eq!(lanes.confirm(&[]), [false; 0]);
}

/// Returns a + b, in as many bytes as a, or one more.
fn plus(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut carry = 0;
    let mut sum: Vec<u8> = a
        .iter()
        .zip(b)
        .rev()
        .map(|(a, b)| {
            carry += u16::from(*a) + u16::from(*b);
            let low = carry as u8;
            carry >>= 8;
            low
        })
        .collect();
    sum.extend((carry > 0).then_some(1));
    sum.reverse();
    sum
}

fn check(lanes: &Lanes, batch: &[(&PrivateKey, &[u8])]) {
    for ((key, input), result) in batch.iter().zip(run(lanes, batch)) {
        assert_eq!(result, Ok(oracle(key, input)), "{key:?} {input:02x?}");
    }
}

/// Invalid or unsupported keys are rejected.
#[test]
fn unsound_keys() {
    let keys = keys_of(KeySize::Rsa2048);
    let key = &keys[0];
    let sound = key.components();
    let refused = |components: Components<'_>| PrivateKey::new(&components).map(|key| key.size());
    let flipped = |number: &[u8]| {
        let mut number = number.to_vec();
        let last = number.len() - 1;
        number[last] ^= 2;
        number
    };
    for i in 0..6 {
        let wrong = flipped([sound.n, sound.p, sound.q, sound.dp, sound.dq, sound.qinv][i]);
        let mut components = sound;
        *[
            &mut components.n,
            &mut components.p,
            &mut components.q,
            &mut components.dp,
            &mut components.dq,
            &mut components.qinv,
        ][i] = &wrong;
        assert_eq!(refused(components), Err(KeyError::Inconsistent), "number {i}");
    }
    assert_eq!(refused(Components { e: &[2], ..sound }), Err(KeyError::Inconsistent));
    assert_eq!(refused(Components { e: &[1], ..sound }), Err(KeyError::Inconsistent));
    assert_eq!(refused(Components { e: &[], ..sound }), Err(KeyError::Inconsistent));
    assert_eq!(refused(Components { n: &sound.n[1..], ..sound }), Err(KeyError::UnsupportedSize));
    assert_eq!(refused(Components { p: &sound.p[1..], ..sound }), Err(KeyError::UnsupportedSize));
    assert_eq!(refused(Components { p: sound.n, ..sound }), Err(KeyError::UnsupportedSize));
    let mut zeros = vec![0; 3];
    zeros.extend(sound.n);
    assert_eq!(refused(Components { n: &zeros, ..sound }), Ok(KeySize::Rsa2048));
}
