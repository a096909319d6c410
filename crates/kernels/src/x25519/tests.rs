//! The kernels against plain arithmetic, and the code above them under valgrind.

use super::batch::{self, CombState, Kernels, LadderState};
use super::element::{DIGIT_MASK, Element, U64x8};
use super::model::{Model, number};
use super::{Agreement, scalar};
use crate::cpu::HaveIfma;
use crate::secrecy::declassify;
use crate::x86_64::ifma::Ifma;

/// Digits as large as any operand's, as small, and random ones.
fn operands() -> Vec<Element> {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 12 ^ state << 20
    };
    // The highest digit of a difference is below 2^48.6, and what stands above a digit's bits does not count.
    let top = 3u64 << 47;
    let mut all = vec![Element::default(), Element::small(1), Element::small(DIGIT_MASK)];
    all.push(Element([DIGIT_MASK, DIGIT_MASK, DIGIT_MASK, DIGIT_MASK, top].map(|digit| U64x8([digit; 8]))));
    all.push(Element(
        [DIGIT_MASK, DIGIT_MASK, DIGIT_MASK, DIGIT_MASK, 1 << 47].map(|digit| U64x8([digit; 8])),
    ));
    for fixed in [0, 1, 18, 19, 20] {
        // p - 19 + fixed and its neighbours.
        let lowest = (1 << 52) - 38 + fixed;
        let digits = [lowest & DIGIT_MASK, DIGIT_MASK, DIGIT_MASK, DIGIT_MASK, (1 << 47) - 1];
        all.push(Element(digits.map(|digit| U64x8([digit; 8]))));
    }
    for _ in 0..40 {
        let mut element = Element::default();
        for (i, vector) in element.0.iter_mut().enumerate() {
            vector.0 = std::array::from_fn(|_| if i == 4 { random() % top } else { random() });
        }
        all.push(element);
    }
    all
}

#[test]
fn ifma_products_are_right_at_the_extremes() {
    let Some(ifma) = HaveIfma::detect().map(Ifma::new) else {
        println!("skipped: this CPU lacks AVX-512 IFMA");
        return;
    };
    let operands = operands();
    for a in &operands {
        for count in [1, 2, 7] {
            check(&ifma.square(a, count), &Model.square(a, count));
        }
        operands.iter().for_each(|b| check(&ifma.multiply(a, b), &Model.multiply(a, b)));
    }
}

/// The element is the expected one and clean.
fn check(element: &Element, expected: &Element) {
    for lane in 0..8 {
        assert_eq!(number(element, lane), number(expected, lane));
        assert_eq!(element.canonical(lane), number(expected, lane));
        let digits = element.0.map(|vector| vector.0[lane]);
        assert!(digits[..4].iter().all(|digit| *digit <= DIGIT_MASK) && digits[4] < (1 << 47) + 16);
    }
}

#[test]
fn ifma_ladder_and_comb_agree_with_the_model() {
    let Some(ifma) = HaveIfma::detect().map(Ifma::new) else {
        println!("skipped: this CPU lacks AVX-512 IFMA");
        return;
    };
    let operands = operands();
    let words = |i: usize| U64x8(operands[11 + i].0[0].0);
    let differences = [[0, 1, 2, 3].map(words), [4, 5, 6, 7].map(words)];
    let point = Model.multiply(&operands[13], &operands[14]);
    let start = |point: Element| {
        let mut state = LadderState([Element::default(); 20]);
        (state.0[0], state.0[1], state.0[3], state.0[4]) =
            (point, Element::small(1), point, Element::small(1));
        state
    };
    let pair = || [start(point), start(Model.square(&point, 3))];
    let (mut ours, mut alone, mut expected) = (pair(), start(point), pair());
    ifma.ladders(&mut ours, &differences);
    ifma.ladder(&mut alone, &differences[0]);
    Model.ladders(&mut expected, &differences);
    for i in [1, 2] {
        check(&alone.0[i], &expected[0].0[i]);
        check(&ours[0].0[i], &expected[0].0[i]);
        check(&ours[1].0[i], &expected[1].0[i]);
    }

    // Every digit in some lane, of even sums below 2^255, which the model's ladder needs: the fractions are the same,
    // numerators and denominators are not.
    let digits = std::array::from_fn(|i| {
        U64x8(std::array::from_fn(|lane| match (i, lane as u64) {
            (0, lane) => 2 * lane,
            (50, lane) => lane.wrapping_sub(16),
            (i, lane) => (i as u64 * 8 + lane).rem_euclid(32).wrapping_sub(16),
        }))
    });
    let state = || CombState([Element::default(); 16]);
    let (mut ours, mut expected) = (state(), state());
    ifma.comb(&mut ours, &digits);
    Model.comb(&mut expected, &digits);
    let cross = |a: &CombState, b: &CombState| Model.multiply(&a.0[0], &b.0[3]);
    check(&cross(&ours, &expected), &cross(&expected, &ours));
}

/// Two rings of secrets and two of public keys, with everything secret unknown to memcheck. `hide` marks it so.
pub(crate) fn operate_on_undefined(hide: impl Fn(&mut [u8; 32])) {
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
    batch::agree(Model, &mut ops);
    assert!(ops.iter().all(|op| !op.is_all_zero()));
    let mut keys = vec![[0; 32]; 9];
    batch::public_keys(Model, &scalars, &mut keys);
    for (i, (secret, key)) in expected.iter().enumerate() {
        assert_eq!((declassify(secrets[i]), declassify(keys[i])), (*secret, *key), "operation {i}");
    }
}

#[test]
fn the_model_is_right() {
    operate_on_undefined(|_| ());
}
