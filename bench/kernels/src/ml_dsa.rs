//! ML-DSA: signatures, and verifications with keys that were parsed before, lanes compared with the libraries. OpenSSL
//! supports it only from 3.5 on, and is left out.
//!
//! Every signature is of another message, so that a turn's mean covers the numbers of attempts.

use std::mem::MaybeUninit;

#[cfg(feature = "aws-lc")]
use aws_lc_sys as aws_lc;
use boring_sys as boring;
use quadrille_kernels::{Lanes, MlDsa, MlDsaMessage, MlDsaSignature, MlDsaVerification};

use crate::args::Arguments;
use crate::contender::{Contender, Run, rivals};
use crate::pass::Pass;
use crate::report::{self, Row};

/// Operations per batch: one, some fewer than lanes, a vector of lanes, and several.
const FILLS: [usize; 6] = [1, 2, 4, 8, 16, 64];
/// Keys of a batch, which take turns.
const KEYS: u8 = 4;
/// Length of what a server signs in TLS 1.3 with SHA-256.
const MESSAGE: usize = 130;

/// Measures all contenders of one pass.
pub(crate) fn measure(pass: Pass, arguments: &Arguments) -> Vec<Row> {
    let tiers = pass.tiers();
    let tiers: Vec<&Lanes> = tiers.iter().filter(|lanes| lanes.ml_dsa_width() > 1).collect();
    let mut rows = Vec::new();
    for set in MlDsa::ALL {
        let number = match set {
            MlDsa::MlDsa44 => 44,
            MlDsa::MlDsa65 => 65,
            MlDsa::MlDsa87 => 87,
        };
        let named = [("boringssl", boringssl(set, false)), ("aws-lc", aws_lc(set, false))];
        let mut contenders = rivals(pass, named);
        contenders.extend(tiers.iter().flat_map(|lanes| FILLS.map(|fill| sign(lanes, set, fill))));
        rows.extend(report::measured(pass, &format!("ml_dsa_{number}_sign"), contenders, arguments));
        let named = [("boringssl", boringssl(set, true)), ("aws-lc", aws_lc(set, true))];
        let mut contenders = rivals(pass, named);
        contenders.extend(tiers.iter().flat_map(|lanes| FILLS.map(|fill| verify(lanes, set, fill))));
        rows.extend(report::measured(pass, &format!("ml_dsa_{number}_verify"), contenders, arguments));
    }
    rows
}

/// Messages that differ from each other, and from those before.
struct Messages(u64);

impl Messages {
    fn next(&mut self) -> [u8; MESSAGE] {
        self.0 += 1;
        let mut message = [0x20; MESSAGE];
        message[..8].copy_from_slice(&self.0.to_le_bytes());
        message
    }
}

fn pure(message: &[u8]) -> MlDsaMessage<'_> {
    MlDsaMessage::Pure { message, context: &[] }
}

fn sign(lanes: &Lanes, set: MlDsa, fill: usize) -> Contender<'_> {
    let keys: Vec<_> = (0..KEYS).map(|i| lanes.ml_dsa_key(set, &[i; 32])).collect();
    let mut signatures = vec![vec![0; set.signature_bytes()]; fill];
    let mut messages = Messages(0);
    let run = move || {
        let messages: Vec<_> = (0..fill).map(|_| messages.next()).collect();
        let ops = keys.iter().cycle().zip(&messages).zip(&mut signatures);
        let mut ops: Vec<_> =
            ops.map(|((key, message), to)| MlDsaSignature::new(key, pure(message), to)).collect();
        lanes.sign_ml_dsa(&mut ops);
        assert!(ops.iter().all(MlDsaSignature::is_signed));
    };
    Contender { name: lanes.name().to_owned(), is_rival: false, fill, run: Box::new(run) }
}

fn verify(lanes: &Lanes, set: MlDsa, fill: usize) -> Contender<'_> {
    let message = Messages(0).next();
    let keys: Vec<_> = (0..KEYS).map(|i| lanes.ml_dsa_key(set, &[i; 32])).collect();
    let mut signatures = vec![vec![0; set.signature_bytes()]; fill];
    let ops = keys.iter().cycle().zip(&mut signatures);
    let mut ops: Vec<_> = ops.map(|(key, to)| MlDsaSignature::new(key, pure(&message), to)).collect();
    lanes.sign_ml_dsa(&mut ops);
    assert!(ops.iter().all(MlDsaSignature::is_signed));
    let run = move || {
        let ops = keys.iter().cycle().zip(&signatures);
        let mut ops: Vec<_> = ops
            .map(|(key, signature)| MlDsaVerification::new(key.public_key(), pure(&message), signature))
            .collect();
        lanes.verify_ml_dsa(&mut ops);
        assert!(ops.iter().all(MlDsaVerification::is_valid));
    };
    Contender { name: lanes.name().to_owned(), is_rival: false, fill, run: Box::new(run) }
}

/// Defines a function that returns the operation of BoringSSL with one parameter set.
macro_rules! boringssl {
    ($name:ident, $set:expr, $from_seed:ident, $public:ident, $sign:ident, $verify:ident) => {
        fn $name<'a>(verify: bool) -> Run<'a> {
            let mut private = Box::new(MaybeUninit::uninit());
            let mut public = Box::new(MaybeUninit::uninit());
            let mut signature = vec![0; $set.signature_bytes()];
            let mut messages = Messages(0);
            let context = std::ptr::null();
            // SAFETY: the functions initialise their outputs, and the seed is as long as is passed.
            unsafe {
                assert_eq!(boring::$from_seed(private.as_mut_ptr(), [7; 32].as_ptr(), 32), 1);
                assert_eq!(boring::$public(public.as_mut_ptr(), private.as_ptr()), 1);
            }
            let sign = move |signature: &mut [u8], message: &[u8]| {
                let to = signature.as_mut_ptr();
                // SAFETY: the signature has the parameter set's length, and the message the length that is passed.
                let signed = unsafe {
                    boring::$sign(to, private.as_ptr(), message.as_ptr(), message.len(), context, 0)
                };
                assert_eq!(signed, 1);
            };
            if !verify {
                return Some(Box::new(move || sign(&mut signature, &messages.next())));
            }
            let message = messages.next();
            sign(&mut signature, &message);
            Some(Box::new(move || {
                let (signature, len) = (signature.as_ptr(), signature.len());
                let (message, message_len) = (message.as_ptr(), message.len());
                // SAFETY: signature and message have the lengths that are passed.
                let verified = unsafe {
                    boring::$verify(public.as_ptr(), signature, len, message, message_len, context, 0)
                };
                assert_eq!(verified, 1);
            }))
        }
    };
}

boringssl!(
    boringssl_44,
    MlDsa::MlDsa44,
    MLDSA44_private_key_from_seed,
    MLDSA44_public_from_private,
    MLDSA44_sign,
    MLDSA44_verify
);
boringssl!(
    boringssl_65,
    MlDsa::MlDsa65,
    MLDSA65_private_key_from_seed,
    MLDSA65_public_from_private,
    MLDSA65_sign,
    MLDSA65_verify
);
boringssl!(
    boringssl_87,
    MlDsa::MlDsa87,
    MLDSA87_private_key_from_seed,
    MLDSA87_public_from_private,
    MLDSA87_sign,
    MLDSA87_verify
);

fn boringssl<'a>(set: MlDsa, verify: bool) -> Run<'a> {
    match set {
        MlDsa::MlDsa44 => boringssl_44(verify),
        MlDsa::MlDsa65 => boringssl_65(verify),
        MlDsa::MlDsa87 => boringssl_87(verify),
    }
}

#[cfg(feature = "aws-lc")]
fn aws_lc<'a>(set: MlDsa, verify: bool) -> Run<'a> {
    let set_id = match set {
        MlDsa::MlDsa44 => aws_lc::NID_MLDSA44,
        MlDsa::MlDsa65 => aws_lc::NID_MLDSA65,
        MlDsa::MlDsa87 => aws_lc::NID_MLDSA87,
    };
    let mut key = std::ptr::null_mut();
    // SAFETY: a new key, which lives as long as the program.
    unsafe {
        let context = aws_lc::EVP_PKEY_CTX_new_id(aws_lc::EVP_PKEY_PQDSA, std::ptr::null_mut());
        assert_eq!(aws_lc::EVP_PKEY_CTX_pqdsa_set_params(context, set_id), 1);
        assert_eq!(aws_lc::EVP_PKEY_keygen_init(context), 1);
        assert_eq!(aws_lc::EVP_PKEY_keygen(context, &raw mut key), 1);
        aws_lc::EVP_PKEY_CTX_free(context);
    }
    let mut signature = vec![0; set.signature_bytes()];
    let mut messages = Messages(0);
    let sign = move |signature: &mut [u8], message: &[u8]| {
        let mut len = signature.len();
        // SAFETY: buffers have the lengths that are passed, and what is made is freed.
        unsafe {
            let context = aws_lc::EVP_MD_CTX_new();
            assert_eq!(
                aws_lc::EVP_DigestSignInit(
                    context,
                    std::ptr::null_mut(),
                    std::ptr::null(),
                    std::ptr::null_mut(),
                    key
                ),
                1
            );
            let (to, from) = (signature.as_mut_ptr(), message.as_ptr());
            assert_eq!(aws_lc::EVP_DigestSign(context, to, &raw mut len, from, message.len()), 1);
            aws_lc::EVP_MD_CTX_free(context);
        }
    };
    if !verify {
        return Some(Box::new(move || sign(&mut signature, &messages.next())));
    }
    let message = messages.next();
    sign(&mut signature, &message);
    Some(Box::new(move || {
        // SAFETY: buffers have the lengths that are passed, and what is made is freed.
        unsafe {
            let context = aws_lc::EVP_MD_CTX_new();
            assert_eq!(
                aws_lc::EVP_DigestVerifyInit(
                    context,
                    std::ptr::null_mut(),
                    std::ptr::null(),
                    std::ptr::null_mut(),
                    key
                ),
                1
            );
            let (signature, len) = (signature.as_ptr(), signature.len());
            assert_eq!(aws_lc::EVP_DigestVerify(context, signature, len, message.as_ptr(), message.len()), 1);
            aws_lc::EVP_MD_CTX_free(context);
        }
    }))
}

#[cfg(not(feature = "aws-lc"))]
fn aws_lc<'a>(_: MlDsa, _: bool) -> Run<'a> {
    None
}
