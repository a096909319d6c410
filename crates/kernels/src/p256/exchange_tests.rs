//! Kernels for arbitrary points against plain arithmetic, up to the bounds of `docs/kernels/p256.md`; and known
//! secrets.

use super::P256_BYTES;
use super::agreement::{P256_POINT_BYTES, P256Agreement};
use super::batch::LANES;
use super::comb::Kernels;
use super::element::{Element, U64x8};
use super::exchange::{agree, public_keys};
use super::model::Model;
use super::modulus::{Number, P};
use super::multiple::{ENTRIES, Entry, PointKernels, PointState, Table, WINDOW_BITS, WINDOWS};
use super::tests::{bytes, ifma, lanes, random};
use crate::secrecy::declassify;

/// Returns points with numbers of all sizes that the bounds allow, and larger: the kernels do not check whether they
/// are on the curve.
fn states() -> Vec<PointState> {
    let mut random = random(6);
    let mut states = Vec::new();
    for round in 0..200 {
        let mut number = |most: u64| {
            let mut element = Element::default();
            for lane in 0..LANES {
                let number = match round {
                    0 => P.minus(&[1, 0, 0, 0]),
                    1 => P.words,
                    2 => [1, 0, 0, 0],
                    _ => std::array::from_fn(|_| random()),
                };
                let multiple = if round < 3 { most - 1 } else { random() % most };
                element.put(lane, &number);
                (0..multiple).for_each(|_| element = plus_p(&element, lane));
            }
            element
        };
        let (z, entry) = (number(2), Entry { x: number(1), v: number(2) });
        states.push(PointState { x: number(1), v: number(4), z, entry, ..PointState::default() });
        let state = states.last_mut().expect("the list is not empty");
        state.zz = Model.multiply(&z, &z);
    }
    states
}

/// Returns a copy with p added in one lane.
fn plus_p(element: &Element, lane: usize) -> Element {
    let mut sum = *element;
    let more = sum.plus(&Element::broadcast(&P.words));
    sum.0.iter_mut().zip(&more.0).for_each(|(vector, more)| vector.0[lane] = more.0[lane]);
    sum
}

#[test]
fn ifma_doublings_and_additions_agree_with_the_model() {
    let Some(ifma) = ifma() else { return };
    for state in states() {
        for operation in [PointOperation::Double, PointOperation::Add] {
            let (mut ours, mut expected) = (copied(&state), copied(&state));
            operation.run(ifma, &mut ours);
            operation.run(Model, &mut expected);
            assert_same(&ours, &expected);
            assert!(most(&ours.x) < 1.001 && most(&ours.v) < 4.6 && most(&ours.z) < 1.8, "{operation:?}");
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum PointOperation {
    Double,
    Add,
}

impl PointOperation {
    fn run(self, kernels: impl PointKernels, state: &mut PointState) {
        match self {
            Self::Double => kernels.double(state),
            Self::Add => kernels.add(state),
        }
    }
}

#[test]
fn ifma_windows_agree_with_the_model() {
    let Some(ifma) = ifma() else { return };
    let mut random = random(7);
    let mut number = || {
        let words: [Number; LANES] = std::array::from_fn(|_| std::array::from_fn(|_| random()));
        Model.multiply(&Element::of(&words), &Element::broadcast(&P.one))
    };
    let table: Table = std::array::from_fn(|_| Entry { x: number(), v: number() });
    // Every digit in every lane.
    let digits: [U64x8; WINDOWS] = std::array::from_fn(|i| match i {
        0 => U64x8(std::array::from_fn(|lane| (ENTRIES + lane) as u64)),
        _ => U64x8(std::array::from_fn(|lane| (5 * i + lane) as u64 % (1 << WINDOW_BITS))),
    });
    let (mut ours, mut expected) = (PointState::default(), PointState::default());
    ifma.windows_begin(&mut ours, &digits[0], &table);
    Model.windows_begin(&mut expected, &digits[0], &table);
    assert_same(&ours, &expected);
    for i in 1..WINDOWS {
        ifma.windows_add(&mut ours, &digits[i..=i], &table);
        Model.windows_add(&mut expected, &digits[i..=i], &table);
        assert_same(&ours, &expected);
    }
    let mut at_once = PointState::default();
    ifma.windows_begin(&mut at_once, &digits[0], &table);
    ifma.windows_add(&mut at_once, &digits[1..], &table);
    assert_same(&at_once, &expected);
}

/// Checks that the numbers are the same, and ours in clean digits.
fn assert_same(ours: &PointState, expected: &PointState) {
    let numbers = |state: &PointState| [state.x, state.v, state.z, state.zz];
    for ((ours, expected), name) in numbers(ours).iter().zip(numbers(expected)).zip(["x", "v", "z", "z^2"]) {
        lanes(ours);
        // The canonical form is defined for numbers below 4p.
        let [ours, expected] =
            [ours, &expected].map(|number| Model.multiply(number, &Element::broadcast(&P.one)));
        assert_eq!(ours.all_canonical(&P), expected.all_canonical(&P), "{name}");
    }
}

/// Returns the largest of a number's lanes, in multiples of p.
fn most(element: &Element) -> f64 {
    let number =
        |lane: usize| element.0.iter().rev().fold(0.0, |sum, v| sum * 2f64.powi(52) + v.0[lane] as f64);
    (0..LANES).map(number).fold(0.0, f64::max) / 2f64.powi(256) * (1.0 + 2f64.powi(-32))
}

fn copied(state: &PointState) -> PointState {
    let &PointState { x, v, z, zz, entry, factor, room } = state;
    PointState { x, v, z, zz, entry, factor, room }
}

/// Private and public keys of RFC 5903, section 8.1, and their secret.
const PRIVATE: [&str; 2] = [
    "c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433",
    "c6ef9c5d78ae012a011164acb397ce2088685d8f06bf9be0b283ab46476bee53",
];
const PUBLIC: [&str; 2] = [
    "04dad0b65394221cf9b051e1feca5787d098dfe637fc90b9ef945d0c3772581180\
     5271a0461cdb8252d61f1c456fa3e59ab1f45b33accf5f58389e0577b8990bb3",
    "04d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf63\
     56fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab",
];
const SECRET: &str = "d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de";

/// Checks known secrets and key pairs, with all secrets undefined for memcheck, marked by `hide`.
pub(super) fn known_secrets(kernels: impl PointKernels, count: usize, hide: impl Fn(&mut [u8])) {
    let mut private = PRIVATE.map(bytes::<P256_BYTES>);
    private.iter_mut().for_each(|private| hide(private));
    let public = PUBLIC.map(bytes::<P256_POINT_BYTES>);
    let mut secrets = vec![[0; P256_BYTES]; count];
    let pairs = private.iter().zip(public.iter().rev()).cycle();
    let mut ops: Vec<_> = pairs
        .zip(&mut secrets)
        .map(|((scalar, point), secret)| P256Agreement::new(scalar, point, secret))
        .collect();
    agree(kernels, &mut ops);
    assert!(ops.iter().all(P256Agreement::is_computed));
    drop(ops);
    assert!(secrets.into_iter().all(|secret| declassify(secret) == bytes(SECRET)));

    let mut keys = vec![[0; P256_POINT_BYTES]; 2];
    public_keys(kernels, &private, &mut keys);
    assert!(keys.into_iter().zip(public).all(|(key, expected)| declassify(key) == expected));
}

#[test]
fn known_secrets_are_found() {
    known_secrets(Model, 3, |_| ());
    if let Some(ifma) = ifma() {
        (1..20).chain([64, 65]).for_each(|count| known_secrets(ifma, count, |_| ()));
    }
}
