//! Private keys of ML-DSA: their forms in PKCS #8 (RFC 9881 section 6), and signatures with each.

use crate::support::{Recorder, ml_dsa, settings, start};
use aws_lc_sys as aws_lc;
use boring::base64::encode_block;
use quadrille_engine::{
    Ceiling, Key, KeyError, KeyType, MlDsa, Operation, Scalar, SignatureScheme, fastest_up_to,
};

const SEQUENCE: u8 = 0x30;
const OCTET_STRING: u8 = 0x04;
const SEED: u8 = 0x80;
const PUBLIC_KEY: u8 = 0x81;
const NULL: &[u8] = &[5, 0];

/// Parts of a key.
struct Parts {
    set: MlDsa,
    seed: [u8; 32],
    expanded: Vec<u8>,
    public: Vec<u8>,
}

impl Parts {
    /// Expands a seed by AWS-LC.
    fn new(set: MlDsa, seed: u8) -> Self {
        let id = [aws_lc::NID_MLDSA44, aws_lc::NID_MLDSA65, aws_lc::NID_MLDSA87][place(set)];
        let seed = [seed; 32];
        let (mut expanded, mut public) = (vec![0; set.private_key_bytes()], vec![0; set.public_key_bytes()]);
        let (mut private_length, mut public_length) = (expanded.len(), public.len());
        // SAFETY: all buffers have the lengths that are passed, and the key is freed.
        unsafe {
            let key = aws_lc::EVP_PKEY_pqdsa_new_raw_private_key(id, seed.as_ptr(), seed.len());
            let to = expanded.as_mut_ptr();
            assert_eq!(aws_lc::EVP_PKEY_get_raw_private_key(key, to, &raw mut private_length), 1);
            let to = public.as_mut_ptr();
            assert_eq!(aws_lc::EVP_PKEY_get_raw_public_key(key, to, &raw mut public_length), 1);
            aws_lc::EVP_PKEY_free(key);
        }
        Self { set, seed, expanded, public }
    }

    fn seed_only(&self) -> Vec<u8> {
        der(SEED, &self.seed)
    }

    fn expanded_only(&self) -> Vec<u8> {
        der(OCTET_STRING, &self.expanded)
    }

    fn both(&self) -> Vec<u8> {
        der(SEQUENCE, &[der(OCTET_STRING, &self.seed), der(OCTET_STRING, &self.expanded)].concat())
    }

    fn version_1(&self, key: &[u8]) -> Vec<u8> {
        pkcs8(0, 17 + place(self.set) as u8, &[], key, &[])
    }

    fn version_2(&self, key: &[u8], public: &[u8]) -> Vec<u8> {
        let public = der(PUBLIC_KEY, &[&[0], public].concat());
        pkcs8(1, 17 + place(self.set) as u8, &[], key, &public)
    }

    fn inconsistent(&self) -> KeyError {
        KeyError::MlDsaInconsistent(name(self.set))
    }

    fn malformed(&self) -> KeyError {
        KeyError::MlDsaForm(name(self.set), self.set.private_key_bytes())
    }
}

fn place(set: MlDsa) -> usize {
    MlDsa::ALL.iter().position(|known| *known == set).unwrap()
}

fn name(set: MlDsa) -> &'static str {
    ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"][place(set)]
}

fn der(tag: u8, contents: &[u8]) -> Vec<u8> {
    let header = match u16::try_from(contents.len()).unwrap().to_be_bytes() {
        [0, short @ ..=127] => vec![tag, short],
        [0, long] => vec![tag, 0x81, long],
        [high, low] => vec![tag, 0x82, high, low],
    };
    [&header, contents].concat()
}

/// Encodes a OneAsymmetricKey; `algorithm` is the last number of the object identifier.
fn pkcs8(version: u8, algorithm: u8, parameters: &[u8], key: &[u8], rest: &[u8]) -> Vec<u8> {
    let id = [6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 3, algorithm];
    let algorithm = der(SEQUENCE, &[&id[..], parameters].concat());
    der(SEQUENCE, &[&[2, 1, version][..], &algorithm, &der(OCTET_STRING, key), rest].concat())
}

fn read(der: &[u8]) -> Result<Key, KeyError> {
    Key::from_pem(
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", encode_block(der)).as_bytes(),
    )
}

#[track_caller]
fn refuses(der: &[u8], error: KeyError) {
    assert_eq!(read(der).err(), Some(error));
}

#[test]
fn every_form_is_read_and_signs() {
    let backends = [Ceiling::Avx2, Ceiling::Ifma].map(fastest_up_to).into_iter();
    for backend in backends.chain([Box::new(Scalar) as Box<_>]) {
        let name = backend.name();
        let seen = Recorder::default();
        let engine = start(settings(1, 16), backend, seen.clone());
        for set in MlDsa::ALL {
            let parts = Parts::new(set, 7);
            for key in [parts.seed_only(), parts.expanded_only(), parts.both()] {
                for der in [parts.version_1(&key), parts.version_2(&key, &parts.public)] {
                    let key = read(&der).expect("a key");
                    assert_eq!(key.key_type(), KeyType::MlDsa(set));
                    let mut public = vec![0; parts.public.len()];
                    assert_eq!(key.public().pkey().raw_public_key(&mut public).unwrap(), parts.public);
                    let operation = Operation::sign(SignatureScheme::MlDsa(set), b"message").unwrap();
                    let signed = engine.submit(&key, operation.clone()).unwrap().wait().unwrap();
                    assert!(operation.verify(key.public(), &signed.bytes), "{name} {set:?}");
                    assert_eq!(signed.bytes.len(), set.signature_bytes());
                }
            }
        }
        drop(engine);
        assert_eq!(seen.sum(|batch| batch.recomputed + batch.failed), 0, "{name}");
    }
}

/// BoringSSL signs for connections as a client, and requires the seed.
#[test]
fn only_a_key_with_its_seed_is_for_connections() {
    for set in MlDsa::ALL {
        let parts = Parts::new(set, 8);
        for key in [parts.seed_only(), parts.both()] {
            let key = read(&parts.version_1(&key)).expect("a key");
            let again = Key::from_pkey(key.for_connections().expect("a seed").to_owned()).expect("a key");
            assert!(again.pkey().public_eq(key.pkey()));
        }
        let key = read(&parts.version_1(&parts.expanded_only())).expect("a key");
        assert_eq!(key.for_connections().err(), Some(KeyError::WithoutSeed(name(set))));
        assert!(ml_dsa(set).for_connections().is_ok(), "generated keys have a seed");
    }
}

#[test]
fn parts_that_contradict_each_other_are_refused() {
    for set in MlDsa::ALL {
        let (parts, other) = (Parts::new(set, 1), Parts::new(set, 2));
        let last = parts.expanded.len() - 1;
        // rho, tr, s1, t0; K alone can be any value, but not beside a seed.
        for (at, alone) in [(0, true), (64, true), (130, true), (last, true), (40, false)] {
            let mut expanded = parts.expanded.clone();
            expanded[at] ^= 1;
            let damaged = Parts { expanded, public: parts.public.clone(), ..parts };
            refuses(&damaged.version_1(&damaged.both()), parts.inconsistent());
            if alone {
                refuses(&damaged.version_1(&damaged.expanded_only()), parts.inconsistent());
            }
        }
        let mixed = Parts { seed: other.seed, expanded: parts.expanded.clone(), public: Vec::new(), set };
        refuses(&mixed.version_1(&mixed.both()), parts.inconsistent());
        for key in [parts.seed_only(), parts.expanded_only(), parts.both()] {
            refuses(&parts.version_2(&key, &other.public), parts.inconsistent());
        }
    }
}

#[test]
fn other_forms_and_lengths_are_refused() {
    for set in MlDsa::ALL {
        let parts = Parts::new(set, 3);
        let (seed, expanded) = (&parts.seed, &parts.expanded);
        let bytes = |bytes: &[u8]| der(OCTET_STRING, bytes);
        for key in [
            der(SEED, &seed[1..]),
            der(SEED, &[&seed[..], &[0]].concat()),
            bytes(&expanded[1..]),
            bytes(&[&expanded[..], &[0]].concat()),
            bytes(seed),
            der(SEQUENCE, &bytes(seed)),
            der(SEQUENCE, &[bytes(expanded), bytes(seed)].concat()),
            der(SEQUENCE, &[bytes(seed), bytes(&expanded[1..])].concat()),
            [parts.seed_only(), vec![0]].concat(),
            [parts.both(), vec![5, 0]].concat(),
            Vec::new(),
        ] {
            refuses(&parts.version_1(&key), parts.malformed());
        }
        let whole = parts.version_1(&parts.both());
        refuses(&whole[..whole.len() - 1], KeyError::Malformed);
        let algorithm = 17 + place(set) as u8;
        let with_parameters = pkcs8(0, algorithm, NULL, &parts.seed_only(), &[]);
        refuses(&with_parameters, KeyError::MlDsaParameters(name(set)));
        let prehashed = pkcs8(0, 32 + place(set) as u8, &[], &parts.seed_only(), &[]);
        refuses(&prehashed, KeyError::HashMlDsa);
        let unknown = pkcs8(0, 20, &[], &parts.seed_only(), &[]);
        assert!(read(&unknown).is_err(), "SLH-DSA");
    }
}
