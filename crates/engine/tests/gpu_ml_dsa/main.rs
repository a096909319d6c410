//! Signatures of ML-DSA against the lanes', which pass NIST's vectors: on a device if there is one, and always on the
//! CPU, where the same sources run behind a fake driver.
//!
//! `TEST_SIGNATURES` sets the number of random signatures of each parameter set (by default 20,000 on a device, 24 on
//! the CPU). `TEST_GPU=required` makes a missing device a failure.

#[path = "../../../kernels-cuda/tests/support/fake.rs"]
mod fake;
#[path = "../../../kernels-cuda/tests/interpreter/mod.rs"]
mod interpreter;
mod ptx;
#[path = "../../../kernels-cuda/tests/support/random.rs"]
mod random;

use fake::Fake;
use quadrille_kernels::{Ceiling, Lanes, MlDsa, MlDsaCandidate, MlDsaKey, MlDsaMessage, MlDsaStart};
use quadrille_kernels_cuda::{
    Gpu, MlDsaDeviceKey, MlDsaKeyNumbers, MlDsaOperation, MlDsaPrivateKey, MlDsaSet, MlDsaSigner, Options,
};
use random::Random;
use std::io::Write;

const SETS: [(MlDsa, MlDsaSet); 3] = [
    (MlDsa::MlDsa44, MlDsaSet::MlDsa44),
    (MlDsa::MlDsa65, MlDsaSet::MlDsa65),
    (MlDsa::MlDsa87, MlDsaSet::MlDsa87),
];
/// Room for keys of a parameter set.
const KEYS: usize = 8;

/// Device, and its driver if that is the fake.
struct Device {
    signer: MlDsaSigner,
    fake: Option<Fake>,
}

impl Device {
    fn fake() -> Self {
        let fake = Fake::new();
        let gpu = Gpu::open(&fake.options()).expect("the fake driver has a device");
        Self { signer: gpu.ml_dsa_signer(KEYS).expect("its memory is free"), fake: Some(fake) }
    }
}

/// Runs the case on the CPU, and on the GPU if there is one.
fn each_device(case: impl Fn(&Device)) {
    case(&Device::fake());
    match Gpu::open(&Options::default()) {
        Ok(gpu) => {
            println!("on {}", gpu.name());
            case(&Device { signer: gpu.ml_dsa_signer(KEYS).expect("its memory is free"), fake: None });
        }
        Err(reason) => {
            // Bypasses the capture of test output, since a skipped test passes.
            let _ = writeln!(std::io::stderr(), "GPU: SKIPPED, {reason}");
            assert!(std::env::var_os("TEST_GPU").is_none(), "a GPU is required");
        }
    }
}

/// Key on the host and on the device.
struct Key {
    host: MlDsaKey,
    device: MlDsaDeviceKey,
}

fn lanes() -> Lanes {
    Lanes::up_to(Ceiling::default())
}

fn private((set, of_device): (MlDsa, MlDsaSet), seed: u8) -> (MlDsaKey, MlDsaPrivateKey) {
    let host = lanes().ml_dsa_key(set, &[seed; 32]);
    let numbers = host.numbers();
    let numbers =
        MlDsaKeyNumbers { matrix: &numbers.matrix, s1: &numbers.s1, s2: &numbers.s2, t0: &numbers.t0 };
    let private = MlDsaPrivateKey::new(of_device, &numbers);
    (host, private)
}

fn uploaded(signer: &MlDsaSigner, sets: (MlDsa, MlDsaSet), seed: u8) -> Key {
    let (host, private) = private(sets, seed);
    Key { host, device: signer.upload(&private).expect("there is room") }
}

/// Signs one message with each key, and returns the starts and the signatures.
fn sign(signer: &MlDsaSigner, keys: &[&Key], random: &mut Random) -> (Vec<MlDsaStart>, Vec<Option<Vec<u8>>>) {
    let messages: Vec<[u8; 8]> = keys.iter().map(|_| random.next().to_le_bytes()).collect();
    let messages: Vec<_> = keys
        .iter()
        .zip(&messages)
        .map(|(key, message)| (&key.host, MlDsaMessage::Pure { message, context: &[] }))
        .collect();
    let starts = lanes().start_ml_dsa(&messages).expect("random numbers");
    let mut signatures: Vec<Vec<u8>> =
        keys.iter().map(|key| vec![0xa5; key.device.parameter_set().signature_bytes()]).collect();
    let mut ops: Vec<_> = keys
        .iter()
        .zip(&starts)
        .zip(&mut signatures)
        .map(|((key, start), signature)| MlDsaOperation::new(&key.device, &start.mu, &start.rho, signature))
        .collect();
    signer.sign(&mut ops).expect("the device is available");
    let signed: Vec<bool> = ops.iter().map(MlDsaOperation::is_signed).collect();
    let signatures =
        signatures.into_iter().zip(signed).map(|(signature, signed)| signed.then_some(signature));
    (starts, signatures.collect())
}

/// Returns which signatures the host confirms.
fn confirmed(keys: &[&Key], starts: &[MlDsaStart], signatures: &[Option<Vec<u8>>]) -> Vec<bool> {
    let candidates = keys.iter().zip(starts).zip(signatures).map(|((key, start), signature)| {
        MlDsaCandidate { key: &key.host, mu: &start.mu, signature: signature.as_deref().unwrap_or_default() }
    });
    lanes().confirm_ml_dsa(&candidates.collect::<Vec<_>>())
}

#[test]
fn signatures_are_valid_and_within_the_signers_bounds() {
    each_device(|device| {
        let otherwise = if device.fake.is_some() { 24 } else { 20_000 };
        let count: usize =
            std::env::var("TEST_SIGNATURES").map_or(otherwise, |count| count.parse().expect("a number"));
        let mut random = Random::new(1);
        for sets in SETS {
            let keys: Vec<Key> = (1..=3).map(|seed| uploaded(&device.signer, sets, seed)).collect();
            let batch: Vec<&Key> = (0..count).map(|_| &keys[random.below(keys.len())]).collect();
            let (starts, signatures) = sign(&device.signer, &batch, &mut random);
            assert!(signatures.iter().all(Option::is_some), "{sets:?}: all are signed");
            let confirmed = confirmed(&batch, &starts, &signatures);
            assert!(confirmed.iter().all(|confirmed| *confirmed), "{sets:?}: {confirmed:?}");
        }
    });
}

#[test]
fn mixed_parameter_sets_and_several_launches() {
    each_device(|device| {
        let mut random = Random::new(2);
        let keys: Vec<Key> = SETS.into_iter().map(|sets| uploaded(&device.signer, sets, 7)).collect();
        let most = if device.fake.is_some() { device.signer.capacity(MlDsaSet::MlDsa44) + 1 } else { 100 };
        for count in [0, 1, 2, most] {
            let batch: Vec<&Key> = keys.iter().cycle().take(count).collect();
            let (starts, signatures) = sign(&device.signer, &batch, &mut random);
            assert_eq!(confirmed(&batch, &starts, &signatures), vec![true; count]);
        }
    });
}

/// Signatures for equal seeds are equal: that of the first attempt that FIPS 204 accepts.
#[test]
fn a_signature_is_that_of_the_first_accepted_attempt() {
    each_device(|device| {
        for sets in SETS {
            let key = uploaded(&device.signer, sets, 9);
            for seed in 0..8u8 {
                let (mu, rho) = ([seed; 64], [!seed; 64]);
                let expected = lanes().sign_ml_dsa_from(&key.host, &mu, &rho);
                let mut signature = vec![0; sets.1.signature_bytes()];
                let mut ops = [MlDsaOperation::new(&key.device, &mu, &rho, &mut signature)];
                device.signer.sign(&mut ops).expect("the device is available");
                assert!(ops[0].is_signed());
                assert_eq!(Some(signature), expected, "{sets:?}, {seed}");
            }
        }
    });
}

#[test]
fn operations_that_are_impossible_stay_unsigned() {
    let [device, other] = [Device::fake(), Device::fake()];
    let keys = [&device, &other].map(|device| uploaded(&device.signer, SETS[0], 1));
    let mut signatures = [vec![0; 2420], vec![0; 2419], vec![0; 2420]];
    let [first, second, third] = &mut signatures;
    let mut ops = [(&keys[0], first), (&keys[0], second), (&keys[1], third)]
        .map(|(key, signature)| MlDsaOperation::new(&key.device, &[1; 64], &[2; 64], signature));
    device.signer.sign(&mut ops).expect("the device is available");
    assert_eq!(ops.map(|op| op.is_signed()), [true, false, false]);
}

#[test]
fn keys_and_batches_are_wiped() {
    let device = Device::fake();
    let fake = device.fake.as_ref().expect("a fake");
    // The constants are in use, and public.
    let before = fake.get("secrets");
    let keys: Vec<Key> = SETS.into_iter().map(|sets| uploaded(&device.signer, sets, 3)).collect();
    let (_, signatures) = sign(&device.signer, &keys.iter().collect::<Vec<_>>(), &mut Random::new(4));
    assert!(signatures.iter().all(Option::is_some));
    drop(keys);
    assert_eq!(fake.get("secrets"), before, "memory in use is zero");
}

#[test]
fn a_full_store_has_room_after_a_release() {
    let device = Device::fake();
    let (_, private) = private(SETS[0], 1);
    let mut keys: Vec<_> =
        (0..KEYS).map(|_| device.signer.upload(&private).expect("there is room")).collect();
    assert!(device.signer.upload(&private).is_err());
    keys.pop();
    assert!(device.signer.upload(&private).is_ok());
}

/// A bit of a key or of an output is wrong: either the device does not sign, or the host does not confirm.
#[test]
fn wrong_results_are_not_confirmed() {
    let mut random = Random::new(5);
    for sets in SETS {
        let device = Device::fake();
        let fake = device.fake.as_ref().expect("a fake");
        let key = uploaded(&device.signer, sets, 5);
        let bits = 32 * private(sets, 5).1.words_for_tests().len();
        for _ in 0..6 {
            fake.set("flip_key", random.below(bits) as i64);
            assert_refused(&device, &key, &mut random);
        }
        fake.set("flip_key", -1);
        for bit in [0, 300, 32 * sets.1.signature_bytes() / 4 / 2] {
            fake.set("flip_output", bit as i64);
            assert_refused(&device, &key, &mut random);
        }
    }
}

#[track_caller]
fn assert_refused(device: &Device, key: &Key, random: &mut Random) {
    let (starts, signatures) = sign(&device.signer, &[key], random);
    assert_eq!(confirmed(&[key], &starts, &signatures), [false]);
}

#[test]
fn a_lost_device_rejects_batches() {
    let device = Device::fake();
    let key = uploaded(&device.signer, SETS[0], 1);
    device.fake.as_ref().expect("a fake").set("lost_at", 0);
    let mut signature = vec![0; 2420];
    let mut ops = [MlDsaOperation::new(&key.device, &[1; 64], &[2; 64], &mut signature)];
    device.signer.sign(&mut ops).expect_err("the device is lost");
    device.signer.sign(&mut ops).expect_err("the device remains lost");
    assert!(!ops[0].is_signed());
}
