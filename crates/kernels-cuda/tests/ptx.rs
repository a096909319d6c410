//! Shipped PTX: generated from these sources, and computes their results, without a GPU.

#[path = "interpreter/mod.rs"]
mod interpreter;
mod support;

use interpreter::{Buffer, Machine};
use quadrille_kernels_cuda::{Arithmetic, KeySize};
use sha2::{Digest, Sha256};
use std::{fs, io::Write, process::Command};
use support::{Random, TestKey, keys_of};

const PTX: &str = include_str!("../kernel/rsa.ptx");
const ML_DSA_PTX: &str = include_str!("../kernel/ml_dsa.ptx");

/// If this fails, run `scripts/ptx.sh` and commit its output.
#[test]
fn ptx_is_made_of_these_sources() {
    let rsa = [
        include_str!("../kernel/word.cuh"),
        include_str!("../kernel/real.cuh"),
        include_str!("../kernel/carry_device.cuh"),
        include_str!("../kernel/number.cuh"),
        include_str!("../kernel/digits.cuh"),
        include_str!("../kernel/rsa.cuh"),
        include_str!("../kernel/rsa52.cuh"),
        include_str!("../kernel/rsa.cu"),
    ];
    let ml_dsa = [
        include_str!("../kernel/word.cuh"),
        include_str!("../kernel/carry_device.cuh"),
        include_str!("../kernel/modular.cuh"),
        include_str!("../kernel/keccak.cuh"),
        include_str!("../kernel/polynomial.cuh"),
        include_str!("../kernel/ml_dsa.cuh"),
        include_str!("../kernel/ml_dsa.cu"),
    ];
    for (ptx, sources) in [(PTX, rsa.concat()), (ML_DSA_PTX, ml_dsa.concat())] {
        let digest = Sha256::digest(sources);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(header(ptx, "// sources "), digest, "run scripts/ptx.sh to regenerate the PTX");
    }
}

#[test]
fn ptx_is_what_the_compiler_makes() {
    let version = Command::new("clang++").arg("-dumpversion").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if version.as_deref().ok() != Some(header(PTX, "// clang ")) {
        // Bypasses the capture of test output, since a skipped test passes.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: clang here is {version:?}, and the PTX was made by another version"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(Command::new("../../scripts/ptx.sh").arg(folder.path()).status().unwrap().success());
    for (name, ptx) in [("rsa.ptx", PTX), ("ml_dsa.ptx", ML_DSA_PTX)] {
        let made = fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(made == ptx, "scripts/ptx.sh generates another {name}");
    }
}

fn header<'a>(ptx: &'a str, start: &str) -> &'a str {
    ptx.lines().find_map(|line| line.strip_prefix(start)).expect("the script writes it")
}

#[test]
fn ptx_computes_rsa2048() {
    computes(KeySize::Rsa2048, Arithmetic::Integer, 4);
}

#[test]
fn ptx_computes_rsa2048_with_fp64() {
    computes(KeySize::Rsa2048, Arithmetic::Fp64, 4);
}

#[test]
fn ptx_computes_rsa3072() {
    computes(KeySize::Rsa3072, Arithmetic::Integer, 3);
}

#[test]
fn ptx_computes_rsa3072_with_fp64() {
    computes(KeySize::Rsa3072, Arithmetic::Fp64, 3);
}

#[test]
fn ptx_computes_rsa4096() {
    computes(KeySize::Rsa4096, Arithmetic::Integer, 2);
}

#[test]
fn ptx_refuses_a_result_of_a_damaged_key() {
    let keys = &keys_of(KeySize::Rsa2048)[..2];
    let mut random = Random::new(7);
    let inputs: Vec<_> = keys.iter().map(|key| random.residue(&key.n)).collect();
    // A bit of the exponent of q.
    let damage = |words: &mut [u32]| words[11 * 32 + 5] ^= 1 << 9;
    for arithmetic in [Arithmetic::Integer, Arithmetic::Fp64] {
        let results = run(KeySize::Rsa2048, arithmetic, keys, &inputs, damage, false);
        assert_eq!(results[0], None);
        assert_eq!(results[1], Some(keys[1].oracle(&inputs[1])));
    }
}

/// The interpreter detects its target: the key of an operation is public, and an address.
#[test]
#[should_panic(expected = "a secret is an address")]
fn an_address_that_depends_on_a_secret_is_found() {
    let keys = &keys_of(KeySize::Rsa2048)[..1];
    run(KeySize::Rsa2048, Arithmetic::Integer, keys, &[Random::new(8).residue(&keys[0].n)], |_| {}, true);
}

/// Tests a warp with different keys, partly filled if `count` is small.
fn computes(size: KeySize, arithmetic: Arithmetic, count: usize) {
    let mut keys = keys_of(size);
    keys.truncate(count);
    let mut random = Random::new(count as u64);
    let mut inputs: Vec<_> = keys.iter().map(|key| random.residue(&key.n)).collect();
    inputs[0] = keys[0].n.clone();
    // n is odd: this is n - 1.
    inputs[0][size.bytes() - 1] -= 1;
    for ((key, input), result) in
        keys.iter().zip(&inputs).zip(run(size, arithmetic, &keys, &inputs, |_| {}, false))
    {
        assert_eq!(result, Some(key.oracle(input)));
    }
}

/// Returns the results; `None` for those that the kernel rejected.
fn run(
    size: KeySize,
    arithmetic: Arithmetic,
    keys: &[TestKey],
    inputs: &[Vec<u8>],
    damage: fn(&mut [u32]),
    secret_slots: bool,
) -> Vec<Option<Vec<u8>>> {
    let words = size.bits() / 32;
    let mut machine = Machine::new(PTX);
    let mut key_words = Vec::new();
    let mut secret = Vec::new();
    for key in keys {
        let constants = key.private().words_for_tests();
        // n and R^2 mod n, and at the end -n^-1 and e, are public.
        secret.extend((0..constants.len()).map(|i| i >= 2 * words && i + 2 < constants.len()));
        key_words.extend(constants);
    }
    damage(&mut key_words);
    let number = |bytes: &Vec<u8>| -> Vec<u32> {
        bytes.rchunks(4).map(|word| u32::from_be_bytes(word.try_into().expect("whole words"))).collect()
    };
    let inputs: Vec<u32> = inputs.iter().flat_map(number).collect();
    let per_thread = words / if size == KeySize::Rsa4096 { 16 } else { 8 };
    let addresses = [
        Buffer { words: key_words, secret },
        Buffer { words: (0..keys.len() as u32).collect(), secret: vec![secret_slots; keys.len()] },
        Buffer { secret: vec![true; inputs.len()], words: inputs },
        Buffer::public(vec![0; keys.len() * words]),
        Buffer::public(vec![7; keys.len()]),
        Buffer::public(vec![
            0;
            if arithmetic == Arithmetic::Fp64 {
                8 * 32 * 2 * (size.bits() / 2).div_ceil(52)
            } else {
                16 * 32 * per_thread
            }
        ]),
        Buffer::public(vec![7; 2 * keys.len() * words]),
    ]
    .map(|buffer| machine.allocate(buffer));
    let exponents = keys.iter().flat_map(|key| number(&support::padded(&key.e, 4))).fold(0, |all, e| all | e);
    let halves = |address: u64| [address as u32, (address >> 32) as u32];
    let mut parameters: Vec<u32> = addresses[..6].iter().flat_map(|&address| halves(address)).collect();
    parameters.extend([keys.len() as u32, exponents]);
    parameters.extend(halves(addresses[6]));
    let name = format!("quadrille_rsa{}", size.bits());
    if arithmetic == Arithmetic::Fp64 {
        for step in ["prepare", "exponentiate", "finish"] {
            machine.run(&format!("{name}_{step}"), parameters.clone(), 0);
        }
        assert!(machine.buffer(addresses[6]).words.iter().all(|&word| word == 0), "shared memory is wiped");
    } else {
        machine.run(&name, parameters, 0);
    }
    assert!(machine.buffer(addresses[5]).words.iter().all(|&word| word == 0), "the table is wiped");
    let outputs = machine.buffer(addresses[3]).words.chunks(words);
    let sound = &machine.buffer(addresses[4]).words;
    let results = outputs.zip(sound).map(|(output, &sound)| {
        assert!(sound == 1 || output.iter().all(|&word| word == 0), "a rejected result is destroyed");
        (sound == 1).then(|| output.iter().rev().flat_map(|word| word.to_be_bytes()).collect())
    });
    results.collect()
}
