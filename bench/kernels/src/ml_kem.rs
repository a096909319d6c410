//! ML-KEM-768: encapsulations, with parsing and checking of the client's key, lanes compared with the libraries.
//! OpenSSL supports it only from 3.5 on, and is left out.

use std::mem::MaybeUninit;

#[cfg(feature = "aws-lc")]
use aws_lc_sys as aws_lc;
use boring_sys as boring;
use quadrille_kernels::{Encapsulation, Lanes, ML_KEM_CIPHERTEXT_BYTES, ML_KEM_PUBLIC_KEY_BYTES, Outcome};

use crate::args::Arguments;
use crate::contender::{Contender, Run, rivals};
use crate::pass::Pass;
use crate::report::{self, Row};

type PublicKey = [u8; ML_KEM_PUBLIC_KEY_BYTES];
type Ciphertext = [u8; ML_KEM_CIPHERTEXT_BYTES];

const OPERATION: &str = "ml_kem_768_encapsulate";
/// Encapsulations per batch: every number up to a vector of lanes, and two vectors.
const FILLS: [usize; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 16];

/// Measures all contenders of one pass.
pub(crate) fn measure(pass: Pass, arguments: &Arguments) -> Vec<Row> {
    let tiers = pass.tiers();
    let named = [("boringssl", encapsulate_boringssl()), ("aws-lc", encapsulate_aws_lc())];
    let mut contenders = rivals(pass, named);
    for lanes in tiers.iter().filter(|lanes| lanes.ml_kem_width() > 1) {
        contenders.extend(FILLS.map(|fill| encapsulate(lanes, fill)));
    }
    report::measured(pass, OPERATION, contenders, arguments)
}

/// Returns the key as the client sends it.
fn public_key() -> PublicKey {
    let mut key = [0; ML_KEM_PUBLIC_KEY_BYTES];
    let mut private = MaybeUninit::uninit();
    // SAFETY: the outputs have the sizes that the function writes; the seed is optional.
    unsafe {
        boring::MLKEM768_generate_key(key.as_mut_ptr(), std::ptr::null_mut(), private.as_mut_ptr());
    };
    key
}

fn encapsulate(lanes: &Lanes, fill: usize) -> Contender<'_> {
    let keys: Vec<_> = (0..fill).map(|_| public_key()).collect();
    let mut randomness = vec![[0; 32]; fill];
    let mut results: Vec<(Ciphertext, [u8; 32])> = vec![([0; ML_KEM_CIPHERTEXT_BYTES], [0; 32]); fill];
    let run = move || {
        let bytes = randomness.as_flattened_mut();
        // SAFETY: the buffer is as long as said.
        unsafe { boring::RAND_bytes(bytes.as_mut_ptr(), bytes.len()) };
        let ops = keys.iter().zip(&randomness).zip(&mut results);
        let mut ops: Vec<_> = ops
            .map(|((key, message), (ciphertext, secret))| {
                Encapsulation::new(key, message, ciphertext, secret)
            })
            .collect();
        lanes.encapsulate(&mut ops);
        assert!(ops.iter().all(|op| op.outcome() == Outcome::Computed));
    };
    Contender { name: lanes.name().to_owned(), is_rival: false, fill, run: Box::new(run) }
}

fn encapsulate_boringssl<'a>() -> Run<'a> {
    let (key, mut ciphertext, mut secret) = (public_key(), [0; ML_KEM_CIPHERTEXT_BYTES], [0; 32]);
    Some(Box::new(move || {
        let mut parsed = MaybeUninit::zeroed();
        let mut input = boring::CBS { data: key.as_ptr(), len: key.len() };
        // SAFETY: `input` covers readable bytes; the outputs have the sizes that the functions write.
        unsafe {
            assert_eq!(boring::MLKEM768_parse_public_key(parsed.as_mut_ptr(), &raw mut input), 1);
            boring::MLKEM768_encap(ciphertext.as_mut_ptr(), secret.as_mut_ptr(), parsed.as_ptr());
        }
    }))
}

#[cfg(feature = "aws-lc")]
fn encapsulate_aws_lc<'a>() -> Run<'a> {
    let (key, mut ciphertext, mut secret) = (public_key(), [0; ML_KEM_CIPHERTEXT_BYTES], [0; 32]);
    Some(Box::new(move || {
        let (mut ciphertext_len, mut secret_len) = (ciphertext.len(), secret.len());
        let (to, secret) = (ciphertext.as_mut_ptr(), secret.as_mut_ptr());
        // SAFETY: inputs and outputs are as long as said, and what is made is freed.
        unsafe {
            let key = aws_lc::EVP_PKEY_kem_new_raw_public_key(aws_lc::NID_MLKEM768, key.as_ptr(), key.len());
            let context = aws_lc::EVP_PKEY_CTX_new(key, std::ptr::null_mut());
            let lens = (&raw mut ciphertext_len, &raw mut secret_len);
            assert_eq!(aws_lc::EVP_PKEY_encapsulate(context, to, lens.0, secret, lens.1), 1);
            aws_lc::EVP_PKEY_CTX_free(context);
            aws_lc::EVP_PKEY_free(key);
        }
    }))
}

#[cfg(not(feature = "aws-lc"))]
fn encapsulate_aws_lc<'a>() -> Run<'a> {
    None
}
