//! Shipped PTX of ML-DSA computes signatures, without a GPU.

use crate::interpreter::{Buffer, Machine};
use quadrille_kernels::{Ceiling, Lanes, MlDsa};
use quadrille_kernels_cuda::{MlDsaKeyNumbers, MlDsaPrivateKey, MlDsaSet, ml_dsa_constants_for_tests};

const PTX: &str = include_str!("../../../kernels-cuda/kernel/ml_dsa.ptx");

#[test]
fn ptx_signs_with_ml_dsa_44() {
    signs(MlDsa::MlDsa44, MlDsaSet::MlDsa44, "quadrille_ml_dsa44");
}

#[test]
fn ptx_signs_with_ml_dsa_65() {
    signs(MlDsa::MlDsa65, MlDsaSet::MlDsa65, "quadrille_ml_dsa65");
}

#[test]
fn ptx_signs_with_ml_dsa_87() {
    signs(MlDsa::MlDsa87, MlDsaSet::MlDsa87, "quadrille_ml_dsa87");
}

/// Words of shared memory in which kernel/ml_dsa.cuh reveals challenges and decisions.
const REVEALED: usize = 4 * 16 + 4 * 34 + 1;
/// More words than a warp's table has.
const TABLE: usize = 10_000;

/// One warp computes three signatures with two keys, which are those of the lanes for the same seeds.
fn signs(set: MlDsa, of_device: MlDsaSet, kernel: &str) {
    let lanes = Lanes::up_to(Ceiling::default());
    let keys = [1, 2].map(|seed| lanes.ml_dsa_key(set, &[seed; 32]));
    let (k, l) = of_device.dimensions();
    let (mut words, mut secret) = (Vec::new(), Vec::new());
    for key in &keys {
        let numbers = key.numbers();
        let numbers =
            MlDsaKeyNumbers { matrix: &numbers.matrix, s1: &numbers.s1, s2: &numbers.s2, t0: &numbers.t0 };
        let private = MlDsaPrivateKey::new(of_device, &numbers);
        secret.extend((0..private.words_for_tests().len()).map(|i| i >= 256 * k * l));
        words.extend(private.words_for_tests());
    }
    let operations = [(0, 3u8), (1, 4), (0, 5)];
    let inputs: Vec<u32> = operations
        .iter()
        .flat_map(|(_, seed)| [u32::from_le_bytes([*seed; 4]), u32::from_le_bytes([!seed; 4])])
        .flat_map(|word| [word; 16])
        .collect();
    let hint_words = 8 * k;
    let mut machine = Machine::new(PTX);
    machine.reveal(REVEALED);
    let output = hint_words + (of_device.signature_bytes() - k - hints(set)) / 4;
    let addresses = [
        Buffer { words, secret },
        Buffer::public(operations.iter().map(|(key, _)| *key as u32).collect()),
        Buffer { secret: vec![true; inputs.len()], words: inputs },
        Buffer::public(vec![0; operations.len() * output]),
        Buffer::public(vec![7; operations.len()]),
        Buffer::public(vec![0; TABLE]),
        Buffer::public(ml_dsa_constants_for_tests()),
    ]
    .map(|buffer| machine.allocate(buffer));
    let halves = |address: u64| [address as u32, (address >> 32) as u32];
    let mut parameters: Vec<u32> = addresses[..6].iter().flat_map(|&address| halves(address)).collect();
    parameters.extend([operations.len() as u32, 1]);
    parameters.extend(halves(addresses[6]));
    machine.run(kernel, parameters, 0);
    assert!(machine.buffer(addresses[5]).words.iter().all(|&word| word == 0), "the table is wiped");
    assert_eq!(machine.buffer(addresses[4]).words, vec![1; operations.len()]);
    let words = &machine.buffer(addresses[3]).words;
    for (i, (key, seed)) in operations.iter().enumerate() {
        let expected = lanes.sign_ml_dsa_from(&keys[*key], &[*seed; 64], &[!seed; 64]).expect("a signature");
        let (packed, hints) = expected.split_at(expected.len() - k - hints(set));
        let written = &words[i * (packed.len() / 4 + hint_words)..];
        let bytes: Vec<u8> =
            written.iter().take(packed.len() / 4).flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(bytes, packed);
        let (positions, ends) = hints.split_at(hints.len() - k);
        let mut bits = vec![0u32; hint_words];
        let mut first = 0;
        for (polynomial, end) in ends.iter().enumerate() {
            for position in &positions[first..usize::from(*end)] {
                bits[8 * polynomial + usize::from(position / 32)] |= 1 << (position % 32);
            }
            first = usize::from(*end);
        }
        assert_eq!(written[packed.len() / 4..][..hint_words], bits);
    }
}

/// Greatest number of hints (FIPS 204, table 1).
fn hints(set: MlDsa) -> usize {
    match set {
        MlDsa::MlDsa44 => 80,
        MlDsa::MlDsa65 => 55,
        MlDsa::MlDsa87 => 75,
    }
}
