//! Kernels against plain arithmetic, and the code above them under valgrind.

use super::batch::{self, CombState, Differences, Digits, Kernels, LadderState};
use super::element::{Eight, Element, Four, Layout};
use super::model::{Model, number};
use super::{Agreement, scalar};
use crate::cpu::{HaveAvx2Fma, HaveIfma};
use crate::secrecy::declassify;
use crate::x86_64::{fma47::Fma47, ifma::Ifma};
use std::marker::PhantomData;

/// Bounds of a layout's digits.
trait Bounds: Layout {
    /// Largest digit that a multiplication accepts. The caller adds bits above the significant ones.
    fn largest(digit: usize) -> u64;
    /// Largest digit of a result.
    fn largest_clean(digit: usize) -> u64;
}

impl Bounds for Eight {
    /// The highest digit of a difference is below 2^48.6.
    fn largest(digit: usize) -> u64 {
        if digit == 4 { 3 << 47 } else { Self::READ }
    }

    fn largest_clean(digit: usize) -> u64 {
        if digit == 4 { (1 << 47) + 15 } else { Self::READ }
    }
}

impl Bounds for Four {
    /// Bound for differences of clean numbers.
    fn largest(digit: usize) -> u64 {
        if digit.is_multiple_of(2) { 3 << 26 } else { (3 << 25) + (1 << 16) }
    }

    fn largest_clean(digit: usize) -> u64 {
        match digit {
            digit if digit.is_multiple_of(2) => (1 << 26) - 1,
            1 => (1 << 25) + (1 << 16),
            _ => (1 << 25) + (1 << 12),
        }
    }
}

fn random() -> impl FnMut() -> u64 {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 12 ^ state << 20
    }
}

/// Returns the same digits in every lane.
fn element<L: Layout>(digit: impl Fn(usize) -> u64) -> Element<L> {
    let mut element = Element::default();
    element.0.iter_mut().enumerate().for_each(|(i, word)| *word = digit(i / L::LANES));
    element
}

/// Returns the largest and smallest possible digits, and random ones.
fn operands<L: Bounds>() -> Vec<Element<L>> {
    let mut random = random();
    let mut all = vec![Element::default(), Element::small(1), Element::small(L::largest(0))];
    all.push(element(L::largest));
    all.push(element(L::largest_clean));
    for fixed in [0, 1, 18, 19, 20] {
        // Values p - 19 + fixed and its neighbours.
        let mut near = Element::default();
        let words = [u64::MAX - 37 + fixed, u64::MAX, u64::MAX, u64::MAX >> 1];
        (0..L::LANES).for_each(|lane| near.put(lane, &words));
        all.push(near);
    }
    for _ in 0..40 {
        let mut element = Element::default();
        for (i, word) in element.0.iter_mut().enumerate() {
            // Bits above the significant ones are arbitrary.
            let digit = random() % (L::largest(i / L::LANES) + 1);
            *word = if L::largest(i / L::LANES) < L::READ / 2 { digit } else { digit | random() & !L::READ };
        }
        all.push(element);
    }
    all
}

#[test]
fn ifma_products_are_right_at_the_extremes() {
    match HaveIfma::detect() {
        Some(proof) => multiply_extremes(Ifma::new(proof)),
        None => println!("skipped: this CPU lacks AVX-512 IFMA"),
    }
}

#[test]
fn avx2_products_are_right_at_the_extremes() {
    match HaveAvx2Fma::detect() {
        Some(proof) => multiply_extremes(Fma47::new(proof)),
        None => println!("skipped: this CPU lacks AVX2 or FMA"),
    }
}

fn multiply_extremes<K: Kernels<Layout: Bounds>>(kernels: K) {
    let (operands, model) = (operands::<K::Layout>(), Model(PhantomData));
    for a in &operands {
        for count in [1, 2, 7] {
            check(&kernels.square(a, count), &model.square(a, count));
        }
        operands.iter().for_each(|b| check(&kernels.multiply(a, b), &model.multiply(a, b)));
    }
}

/// The comb doubles z and subtracts: its first operand may be larger than any other.
#[test]
fn avx2_products_are_right_at_the_extremes_of_the_comb() {
    let Some(avx2) = HaveAvx2Fma::detect().map(Fma47::new) else {
        println!("skipped: this CPU lacks AVX2 or FMA");
        return;
    };
    let largest = element(|digit| if digit.is_multiple_of(2) { 1 << 28 } else { (1 << 27) + (1 << 18) });
    for b in operands::<Four>() {
        check(&avx2.multiply(&largest, &b), &Model(PhantomData).multiply(&largest, &b));
    }
}

/// Checks that the element is the expected one and clean.
fn check<L: Bounds>(element: &Element<L>, expected: &Element<L>) {
    for lane in 0..L::LANES {
        assert_eq!(number(element, lane), number(expected, lane));
        assert_eq!(element.canonical(lane), number(expected, lane));
    }
    for (i, word) in element.0.iter().enumerate() {
        assert!(*word <= L::largest_clean(i / L::LANES), "digit {}: {word:#x}", i / L::LANES);
    }
}

#[test]
fn ifma_ladder_and_comb_agree_with_the_model() {
    match HaveIfma::detect() {
        Some(proof) => climb_and_comb(Ifma::new(proof)),
        None => println!("skipped: this CPU lacks AVX-512 IFMA"),
    }
}

#[test]
fn avx2_ladder_and_comb_agree_with_the_model() {
    match HaveAvx2Fma::detect() {
        Some(proof) => climb_and_comb(Fma47::new(proof)),
        None => println!("skipped: this CPU lacks AVX2 or FMA"),
    }
}

fn climb_and_comb<K: Kernels<Layout: Bounds>>(kernels: K) {
    let lanes = <K::Layout as Layout>::LANES;
    let model = Model(PhantomData::<K::Layout>);
    let mut random = random();
    let mut differences = [Differences::default(); 2];
    differences.iter_mut().flat_map(|ladder| ladder.0.as_flattened_mut()).for_each(|word| *word = random());
    let mut point = element(<K::Layout as Bounds>::largest);
    point = model.multiply(&point, &point);
    let start = |point: Element<K::Layout>| {
        let mut state = LadderState::default();
        (state.0[0], state.0[1], state.0[3], state.0[4]) =
            (point, Element::small(1), point, Element::small(1));
        state
    };
    let pair = || [start(point), start(model.square(&point, 3))];
    let (mut ours, mut alone, mut expected) = (pair(), start(point), pair());
    kernels.ladders(&mut ours, &differences);
    kernels.ladder(&mut alone, &differences[0]);
    match K::AHEAD {
        0 => expected.iter_mut().zip(&differences).for_each(|(state, each)| model.ladder(state, each)),
        _ => model.ladders(&mut expected, &differences),
    }
    for i in [1, 2] {
        check(&alone.0[i], &expected[0].0[i]);
        check(&ours[0].0[i], &expected[0].0[i]);
        check(&ours[1].0[i], &expected[1].0[i]);
    }

    // Every digit in some lane, of even sums below 2^255, as the model's ladder requires: the fractions are the same,
    // numerators and denominators are not.
    let mut digits = Digits::default();
    for i in 0..51 {
        for lane in 0..lanes {
            let digit = match i {
                0 => 2 * lane as u64,
                50 => (lane as u64).wrapping_sub(16),
                i => ((i * lanes + lane) as u64).rem_euclid(32).wrapping_sub(16),
            };
            digits.put::<K::Layout>(i, lane, digit);
        }
    }
    let (mut ours, mut expected) = (CombState::default(), CombState::default());
    kernels.comb(&mut ours, &digits);
    model.comb(&mut expected, &digits);
    let cross = |a: &CombState<_>, b: &CombState<_>| model.multiply(&a.0[0], &b.0[3]);
    check(&cross(&ours, &expected), &cross(&expected, &ours));
}

/// Computes the secrets and public keys of [`operate`], with kernels that valgrind can run: AVX2's own, and the model
/// of IFMA's.
pub(crate) fn operate_on_undefined(hide: impl Fn(&mut [u8; 32])) {
    operate(Model(PhantomData::<Eight>), &hide);
    match HaveAvx2Fma::detect() {
        Some(proof) => operate(Fma47::new(proof), &hide),
        None => println!("skipped: this CPU, or valgrind's, lacks AVX2 or FMA"),
    }
}

/// Computes two rings of secrets and two of public keys, with all secrets undefined for memcheck, marked by `hide`.
fn operate<K: Kernels>(kernels: K, hide: impl Fn(&mut [u8; 32])) {
    let mut scalars: Vec<[u8; 32]> = (0..9).map(|i| [i * 29 + 3; 32]).collect();
    let mut points: Vec<[u8; 32]> = (0..9).map(|i| [i * 31 + 2; 32]).collect();
    let mut expected = vec![([0; 32], [0; 32]); 9];
    for ((scalar, point), (secret, key)) in scalars.iter().zip(&points).zip(&mut expected) {
        scalar::agree(&mut Agreement::new(scalar, point, secret));
        scalar::public_key(scalar, key);
    }
    scalars.iter_mut().chain(&mut points).for_each(hide);

    let mut secrets = vec![[0; 32]; 9];
    let ops = scalars.iter().zip(&points).zip(&mut secrets);
    let mut ops: Vec<_> =
        ops.map(|((scalar, point), secret)| Agreement::new(scalar, point, secret)).collect();
    batch::agree(kernels, &mut ops);
    assert!(ops.iter().all(|op| !op.is_all_zero()));
    let mut keys = vec![[0; 32]; 9];
    batch::public_keys(kernels, &scalars, &mut keys);
    for (i, (secret, key)) in expected.iter().enumerate() {
        assert_eq!((declassify(secrets[i]), declassify(keys[i])), (*secret, *key), "operation {i}");
    }
}

#[test]
fn the_model_is_right() {
    operate_on_undefined(|_| ());
}
