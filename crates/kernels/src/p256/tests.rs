//! Kernels against plain arithmetic, signatures with known nonces, and the code above the kernels under valgrind.

use super::batch::{LANES, sign_with};
use super::comb::{CombState, Kernels, WINDOW_BITS, WINDOWS};
use super::element::{DIGIT_MASK, Element, U64x8};
use super::model::Model;
use super::modulus::P;
use super::nonce::WIDE;
use super::{P256_BYTES, P256Key, P256Signature, exchange_tests};
use crate::cpu::HaveIfma;
use crate::secrecy::declassify;
use crate::x86_64::ifma::Ifma;
use zeroize::Zeroize;

pub(super) fn ifma() -> Option<Ifma> {
    let ifma = HaveIfma::detect().map(Ifma::new);
    if ifma.is_none() {
        println!("skipped: this CPU lacks AVX-512 IFMA");
    }
    ifma
}

/// A linear congruential generator: reproducible.
pub(super) fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 12 ^ state << 20
    }
}

/// Returns the largest and smallest possible digits, and random ones. Operands are below 4.4p, and bits above a
/// digit's are ignored.
fn operands() -> Vec<Element> {
    let all = |digits: [u64; 5]| Element(digits.map(|digit| U64x8([digit; 8])));
    let top = (1 << 50) + (1 << 48) - 1;
    let mut operands = vec![
        Element::default(),
        all([1, 0, 0, 0, 0]),
        all([u64::MAX, u64::MAX, u64::MAX, u64::MAX, top]),
        all([0, 0, 0, 0, top]),
        Element::broadcast(&P.words),
    ];
    let mut random = random(1);
    for _ in 0..40 {
        let mut element = Element::default();
        for (i, vector) in element.0.iter_mut().enumerate() {
            vector.0 = std::array::from_fn(|_| if i == 4 { random() % top } else { random() });
        }
        operands.push(element);
    }
    operands
}

#[test]
fn ifma_products_are_right_at_the_extremes() {
    let Some(ifma) = ifma() else { return };
    let operands = operands();
    for a in &operands {
        for b in &operands {
            assert_eq!(lanes(&ifma.multiply(a, b)), lanes(&Model.multiply(a, b)));
            assert_eq!(lanes(&ifma.multiply_modulo_n(a, b)), lanes(&Model.multiply_modulo_n(a, b)));
        }
    }
}

#[test]
fn ifma_comb_agrees_with_the_model() {
    let Some(ifma) = ifma() else { return };
    let mut random = random(2);
    let highest = 1 << (WINDOW_BITS - 1);
    let digits: [U64x8; WINDOWS] = std::array::from_fn(|i| match i {
        // Positive, and small enough for the sum not to exceed the order.
        _ if i + 1 == WINDOWS => U64x8([highest; LANES]),
        // Every digit in some lane.
        0..16 => U64x8(std::array::from_fn(|lane| (8 * i + lane) as u64 & (2 * highest - 1))),
        _ => U64x8(std::array::from_fn(|_| random() & (2 * highest - 1))),
    });
    let (mut ours, mut expected) = (CombState::default(), CombState::default());
    ifma.comb_begin(&mut ours, &digits[0]);
    Model.comb_begin(&mut expected, &digits[0]);
    for i in 1..WINDOWS {
        ifma.comb_add(&mut ours, &digits[i..=i], i);
        Model.comb_add(&mut expected, &digits[i..=i], i);
        for lane in 0..LANES {
            for (coordinate, name) in ["x", "y", "z"].iter().enumerate() {
                let [ours, expected] =
                    [&ours, &expected].map(|state| state.0[coordinate].canonical(lane, &P));
                assert_eq!(ours, expected, "{name} in lane {lane} after window {i}");
            }
            assert_eq!(ours.tags(lane), expected.tags(lane));
        }
    }
    let mut at_once = CombState::default();
    ifma.comb_begin(&mut at_once, &digits[0]);
    ifma.comb_add(&mut at_once, &digits[1..], 1);
    assert!((0..3).all(|i| lanes(&at_once.0[i]) == lanes(&ours.0[i])));
}

pub(super) fn lanes(element: &Element) -> [[u64; 8]; 5] {
    element.0.map(|vector| {
        assert!(vector.0.iter().all(|digit| *digit <= DIGIT_MASK), "clean");
        vector.0
    })
}

/// Key of RFC 6979, appendix A.2.5, and with SHA-256 of "sample" and "test" the digest, k, r, s.
const KEY: &str = "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721";
const KNOWN: [[&str; 4]; 2] = [
    [
        "af2bdbe1aa9b6ec1e2ade1d694f41fc71a831d0268e9891562113d8a62add1bf",
        "a6e3c57dd01abe90086538398355dd4c3b17aa873382b0f24d6129493d8aad60",
        "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716",
        "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8",
    ],
    [
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "d16b6ae827f17175e040871a1c7ec3500192c4c92677336ec2537acaee0008e0",
        "f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367",
        "019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083",
    ],
];

pub(super) fn bytes<const LEN: usize>(text: &str) -> [u8; LEN] {
    std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hexadecimal"))
}

/// Returns a hash that yields this nonce.
pub(super) fn hash(k: &[u8; P256_BYTES]) -> [u8; WIDE] {
    let mut hash = [0; WIDE];
    hash[WIDE - P256_BYTES..].copy_from_slice(k);
    hash
}

/// Signs with nonces that the caller knows: `None` for missing signatures.
pub(super) fn signed(
    kernels: impl Kernels,
    keys: &[P256Key],
    digests: &[[u8; P256_BYTES]],
    hashes: &[[u8; WIDE]],
) -> Vec<Option<[u8; 2 * P256_BYTES]>> {
    let mut signatures = vec![[0; 2 * P256_BYTES]; digests.len()];
    let ops = keys.iter().zip(digests).zip(&mut signatures);
    let mut ops: Vec<_> =
        ops.map(|((key, digest), signature)| P256Signature::new(key, digest, signature)).collect();
    sign_with(kernels, &mut ops, hashes);
    let marks: Vec<_> = ops.iter().map(P256Signature::is_signed).collect();
    signatures.into_iter().zip(marks).map(|(signature, signed)| signed.then_some(signature)).collect()
}

/// Checks known signatures, in `count` lanes, with all secrets undefined for memcheck, marked by `hide`.
fn known_signatures(kernels: impl Kernels, count: usize, hide: impl Fn(&mut [u8])) {
    let known: Vec<_> = KNOWN.iter().cycle().take(count).map(|texts| texts.map(bytes)).collect();
    let mut key = bytes(KEY);
    hide(&mut key);
    let keys: Vec<_> = known.iter().map(|_| P256Key::new(&key).expect("a key")).collect();
    let digests: Vec<_> = known.iter().map(|known| known[0]).collect();
    let mut hashes: Vec<_> = known.iter().map(|known| hash(&known[1])).collect();
    hashes.iter_mut().for_each(|hash| hide(hash));
    let signatures = signed(kernels, &keys, &digests, &hashes);
    for (signature, [.., r, s]) in signatures.into_iter().zip(&known) {
        let signature = declassify(signature.expect("a signature"));
        assert_eq!((&signature[..P256_BYTES], &signature[P256_BYTES..]), (&r[..], &s[..]));
    }
    key.zeroize();
}

#[test]
fn known_nonces_make_known_signatures() {
    if let Some(ifma) = ifma() {
        (1..20).chain([64]).for_each(|count| known_signatures(ifma, count, |_| ()));
    }
}

pub(crate) fn operate_on_undefined(hide: impl Fn(&mut [u8])) {
    known_signatures(Model, 9, &hide);
    exchange_tests::known_secrets(Model, 9, hide);
}

#[test]
fn the_model_is_right() {
    operate_on_undefined(|_| ());
}
