//! AVX-512 vectors against plain arithmetic, and the algorithm on plain arithmetic under valgrind.

use super::batch::Pool;
use super::compression::{compress_4, compress_10};
use super::kernels::Kernels;
use super::model::{Model, Plain};
use super::ntt::{N, Q, inverse_ntt, ntt, reduce};
use super::polynomial;
use super::vector::{LANES, VECTOR_BYTES, Vector};
use super::{Encapsulation, ML_KEM_CIPHERTEXT_BYTES, ML_KEM_PUBLIC_KEY_BYTES, Outcome, PublicKey};
use crate::cpu::HaveAvx512;
use crate::secrecy::declassify;
use crate::x86_64::avx512::{Avx512, Zmm};
use std::array::from_fn;

struct Random(u64);

impl Random {
    fn byte(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 56) as u8
    }

    fn bytes<const LEN: usize>(&mut self) -> [u8; LEN] {
        from_fn(|_| self.byte())
    }

    /// Returns a key with coefficients below q, as required.
    fn key(&mut self) -> PublicKey {
        let mut key = self.bytes::<ML_KEM_PUBLIC_KEY_BYTES>();
        for [_, middle, high] in key[..1152].as_chunks_mut().0 {
            // Twelve bits are below q if their highest four are below 13.
            *middle = *middle & 0xf0 | ((*middle & 0xf) % 13);
            *high %= 0xd0;
        }
        key
    }
}

/// Returns every number, as 32 words at a time.
fn all_words() -> impl Iterator<Item = Plain> {
    (0..1 << 11).map(|i: i32| Plain::from_words(|word| (32 * i + word as i32 + i32::from(i16::MIN)) as i16))
}

#[test]
fn compression_is_right_for_every_coefficient() {
    let compressed =
        |x: i64, bits: u32| ((((x << (bits + 1)) + i64::from(Q)) / i64::from(2 * Q)) % (1 << bits)) as i16;
    for x in 0..Q {
        assert_eq!(compress_10(Plain::words(x)).word(0), compressed(x.into(), 10), "{x}");
        assert_eq!(compress_4(Plain::words(x)).word(0), compressed(x.into(), 4), "{x}");
    }
}

#[test]
fn every_word_is_reduced_to_the_nearest() {
    for words in all_words() {
        let reduced = reduce(words);
        for i in 0..32 {
            let (x, y) = (i32::from(words.word(i)), i32::from(reduced.word(i)));
            assert!((x - y) % i32::from(Q) == 0 && y.abs() <= i32::from(Q) / 2 + 1, "{x} became {y}");
        }
    }
}

/// Transforms of the largest possible coefficients stay within their bounds: a forward and an inverse
/// transform multiply by exactly 2^16, as after a product.
#[test]
fn transforms_are_inverse_at_the_extremes() {
    for signs in 0..8u32 {
        let mut polynomials: [Plain; N] = from_fn(|k| {
            Plain::from_words(|word| match signs {
                0 => 2,
                1 => -2,
                2 => {
                    if k % 2 == 0 {
                        2
                    } else {
                        -2
                    }
                }
                3 => {
                    if k < N / 2 {
                        2
                    } else {
                        -2
                    }
                }
                _ => ((k * 31 + word * 17 + signs as usize * 7) % 5) as i16 - 2,
            })
        });
        let before = polynomials;
        ntt(&mut polynomials);
        for x in &mut polynomials {
            assert!((0..32).all(|i| i32::from(x.word(i)).abs() < 7 * i32::from(Q) + 3));
            *x = reduce(*x);
        }
        inverse_ntt(&mut polynomials);
        for (after, before) in polynomials.iter().zip(&before) {
            for i in 0..32 {
                assert!(after.word(i).abs() < Q, "below q");
                let difference = i64::from(after.word(i)) - (i64::from(before.word(i)) << 16);
                assert_eq!(difference % i64::from(Q), 0);
            }
        }
    }
}

/// Every step of the lone transforms is one of those of a batch.
#[test]
fn transforms_of_a_lone_polynomial_are_those_of_a_batch() {
    let mut random = Random(4);
    let mut batch: [Plain; N] = from_fn(|_| {
        let words: [i16; 32] = from_fn(|_| i16::from(random.byte() % 5) - 2);
        Plain::from_words(|word| words[word])
    });
    let lone_of = |batch: &[Plain; N], i: usize| -> [Plain; N / 32] {
        from_fn(|vector| Plain::from_words(|word| batch[32 * vector + word].word(i)))
    };
    let mut lone: [_; 32] = from_fn(|i| lone_of(&batch, i));
    ntt(&mut batch);
    lone.iter_mut().for_each(polynomial::ntt);
    assert!((0..32).all(|i| lone[i] == lone_of(&batch, i)));
    batch = batch.map(reduce);
    lone = lone.map(|polynomial| polynomial.map(reduce));
    inverse_ntt(&mut batch);
    lone.iter_mut().for_each(polynomial::inverse_ntt);
    assert!((0..32).all(|i| lone[i] == lone_of(&batch, i)));
}

/// Computes all vector operations of the algorithm, each on the same numbers.
fn operations<V: Vector>(inputs: &[[u8; VECTOR_BYTES]; 8]) -> Vec<[u8; VECTOR_BYTES]> {
    let rows = inputs.map(|bytes| V::load(&bytes));
    let [a, b, c, d, ..] = rows;
    let mut results = vec![
        V::zero(),
        V::lanes(0x0123_4567_89ab_cdef),
        V::words(-3329),
        a.and(b),
        a.or(b),
        a.xor(b),
        a.xor3(b, c),
        a.chi(b, c),
        a.rotate::<1>(),
        a.rotate::<44>(),
        a.rotate::<63>(),
        a.shift_lanes_left(0),
        a.shift_lanes_left(63),
        a.shift_lanes_left(17),
        a.signs_of_lanes(),
        a.plus(b),
        a.minus(b),
        a.times_low(b),
        a.times_high(b),
        a.times_high_unsigned(b),
        a.shift_left::<1>(),
        a.shift_left::<14>(),
        a.shift_right::<1>(),
        a.shift_right::<15>(),
        a.shift_right_signed::<10>(),
        a.shift_right_signed::<15>(),
        a.repeat_lower(),
        a.repeat_upper(),
        a.broadcast_word::<0>(),
        a.broadcast_word::<1>(),
        a.broadcast_word::<2>(),
        a.broadcast_word::<3>(),
        V::unpack_12_bits(&inputs[0]),
        V::from_bits(u32::from_le_bytes(*inputs[0].first_chunk().expect("long enough"))),
    ];
    results.extend((0..4).map(|i| a.four_bits(i)));
    results.extend(a.interleave::<1>(b));
    results.extend(a.interleave::<2>(b));
    results.extend(a.interleave::<4>(b));
    results.extend(a.interleave::<8>(b));
    results.extend(a.interleave::<16>(b));
    results.extend(V::transpose_words([a, b, c, d]));
    results.extend(V::transpose_lanes(rows));
    let mut bytes: Vec<_> = results
        .iter()
        .map(|result| {
            let mut bytes = [0; VECTOR_BYTES];
            result.store(&mut bytes);
            bytes
        })
        .collect();
    // Bytes after the packed ones have no meaning.
    for (packed, len) in [(a.and(V::words(15)).pack::<4>(), 16), (a.and(V::words(0x3ff)).pack::<10>(), 40)] {
        let mut to = [0; VECTOR_BYTES];
        packed.store(&mut to);
        to[len..].fill(0);
        bytes.push(to);
    }
    for (i, input) in inputs.iter().enumerate() {
        for count in [1, 16, 31, 32] {
            let mut reduced = [0; VECTOR_BYTES];
            let kept = V::unpack_12_bits(input).store_reduced(count, &mut reduced);
            reduced[2 * kept..].fill(i as u8);
            bytes.push(reduced);
        }
    }
    bytes
}

#[test]
fn avx512_agrees_with_plain_arithmetic() {
    let Some(avx512) = HaveAvx512::detect().map(Avx512::new) else {
        println!("skipped: this CPU lacks AVX-512 with VBMI");
        return;
    };
    let mut random = Random(1);
    for i in 0..300 {
        let mut inputs: [[u8; VECTOR_BYTES]; 8] = from_fn(|_| random.bytes());
        match i {
            0 => inputs = [[0; VECTOR_BYTES]; 8],
            1 => inputs = [[0xff; VECTOR_BYTES]; 8],
            2 => inputs[0].as_chunks_mut().0.iter_mut().for_each(|word| *word = i16::MIN.to_le_bytes()),
            _ => {}
        }
        assert_eq!(operations::<Zmm>(&inputs), operations::<Plain>(&inputs), "round {i}");
    }
    let (plain, lanes) = (Pool::new(Model), Pool::new(avx512));
    for count in 1..=LANES {
        let keys: Vec<PublicKey> = (0..count).map(|_| random.key()).collect();
        let messages: Vec<[u8; 32]> = (0..count).map(|_| random.bytes()).collect();
        assert_eq!(encapsulate(&lanes, &keys, &messages), encapsulate(&plain, &keys, &messages), "{count}");
    }
}

#[test]
fn a_lone_operation_gives_the_result_of_a_batch() {
    let mut random = Random(5);
    let pool = Pool::new(Model);
    for _ in 0..40 {
        let keys: [PublicKey; 5] = from_fn(|_| random.key());
        let messages: [[u8; 32]; 5] = from_fn(|_| random.bytes());
        let batch = encapsulate(&pool, &keys, &messages);
        for i in 0..5 {
            assert_eq!(encapsulate(&pool, &keys[i..=i], &messages[i..=i]), batch[i..=i]);
        }
    }
}

type Encapsulated = (Outcome, [u8; ML_KEM_CIPHERTEXT_BYTES], [u8; 32]);

fn encapsulate<K: Kernels>(pool: &Pool<K>, keys: &[PublicKey], messages: &[[u8; 32]]) -> Vec<Encapsulated> {
    let mut results = vec![([0; ML_KEM_CIPHERTEXT_BYTES], [0; 32]); keys.len()];
    let ops = keys.iter().zip(messages).zip(&mut results);
    let mut ops: Vec<_> = ops
        .map(|((key, message), (ciphertext, secret))| Encapsulation::new(key, message, ciphertext, secret))
        .collect();
    pool.encapsulate(&mut ops);
    let outcomes: Vec<Outcome> = ops.iter().map(Encapsulation::outcome).collect();
    outcomes
        .into_iter()
        .zip(results)
        .map(|(outcome, (ciphertext, secret))| (outcome, ciphertext, secret))
        .collect()
}

/// Runs batches of both forms, with messages that are undefined for memcheck, marked by `hide`.
pub(crate) fn operate_on_undefined(hide: impl Fn(&mut [u8; 32])) {
    let pool = Pool::new(Model);
    let mut random = Random(2);
    for count in [1, 2, 5] {
        let keys: Vec<PublicKey> = (0..count).map(|_| random.key()).collect();
        let mut messages: Vec<[u8; 32]> = (0..count).map(|_| random.bytes()).collect();
        let expected = encapsulate(&pool, &keys, &messages);
        messages.iter_mut().for_each(&hide);
        let results = encapsulate(&pool, &keys, &messages);
        for ((outcome, ciphertext, secret), expected) in results.into_iter().zip(expected) {
            assert_eq!(outcome, Outcome::Computed);
            assert_eq!((outcome, declassify(ciphertext), declassify(secret)), expected);
        }
    }
}

#[test]
fn the_model_gives_the_same_twice() {
    operate_on_undefined(|_| ());
}
