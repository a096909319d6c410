//! ECDSA on P-256: signatures, lanes compared with the libraries.

use std::error::Error;
use std::ffi::{c_int, c_uint, c_void};

#[cfg(feature = "aws-lc")]
use aws_lc_sys as aws_lc;
use boring_sys as boring;
use libloading::Library;
use quadrille_kernels::{Lanes, P256_BYTES, P256Key, P256Signature};

use crate::args::Arguments;
use crate::contender::{Contender, Run, rivals};
use crate::pass::Pass;
use crate::report::{self, Row};
use crate::rival;

/// Signatures per batch: one, crossovers, one and more vectors of lanes, and the number that shares an inversion.
const FILLS: [usize; 6] = [1, 2, 4, 8, 16, 64];
const DIGEST: [u8; P256_BYTES] = [0x5a; P256_BYTES];
/// `NID_X9_62_prime256v1`, equal in all libraries.
const CURVE: c_int = 415;
/// The longest signature in DER.
const DER: usize = 72;

/// Measures signatures of all contenders of one pass.
pub(crate) fn measure(pass: Pass, arguments: &Arguments) -> Result<Vec<Row>, Box<dyn Error>> {
    let library = rival::open_openssl()?;
    let openssl = OpenSsl::new(&library)?;
    let tiers = pass.tiers();
    let named =
        [("openssl", sign_openssl(&openssl)), ("boringssl", sign_boringssl()), ("aws-lc", sign_aws_lc())];
    let mut contenders = rivals(pass, named);
    for lanes in tiers.iter().filter(|lanes| lanes.p256_width() > 1) {
        contenders.extend(FILLS.map(|fill| sign(lanes, fill)));
    }
    Ok(report::measured(pass, "ecdsa_p256_sign", contenders, arguments))
}

fn sign(lanes: &Lanes, fill: usize) -> Contender<'_> {
    let keys: Vec<_> = (1..=fill).filter_map(|i| P256Key::new(&[i as u8; P256_BYTES])).collect();
    let mut signatures = vec![[0; 2 * P256_BYTES]; fill];
    let run = move || {
        let ops = keys.iter().zip(&mut signatures);
        let mut ops: Vec<_> = ops.map(|(key, to)| P256Signature::new(key, &DIGEST, to)).collect();
        lanes.sign_p256(&mut ops);
        assert!(ops.iter().all(P256Signature::is_signed));
    };
    Contender { name: lanes.name().to_owned(), is_rival: false, fill, run: Box::new(run) }
}

fn sign_boringssl<'a>() -> Run<'a> {
    // SAFETY: a new key, which lives as long as the program.
    let key = unsafe {
        let key = boring::EC_KEY_new_by_curve_name(CURVE);
        assert_eq!(boring::EC_KEY_generate_key(key), 1);
        key
    };
    let (mut signature, mut length) = ([0; DER], 0);
    Some(Box::new(move || {
        let (digest, to) = (DIGEST.as_ptr(), signature.as_mut_ptr());
        // SAFETY: the digest is as long as is passed, and there is room for any signature.
        assert_eq!(1, unsafe { boring::ECDSA_sign(0, digest, DIGEST.len(), to, &raw mut length, key) });
    }))
}

#[cfg(feature = "aws-lc")]
fn sign_aws_lc<'a>() -> Run<'a> {
    // SAFETY: a new key, which lives as long as the program.
    let key = unsafe {
        let key = aws_lc::EC_KEY_new_by_curve_name(CURVE);
        assert_eq!(aws_lc::EC_KEY_generate_key(key), 1);
        key
    };
    let (mut signature, mut length) = ([0; DER], 0);
    Some(Box::new(move || {
        let (digest, to) = (DIGEST.as_ptr(), signature.as_mut_ptr());
        // SAFETY: the digest is as long as is passed, and there is room for any signature.
        assert_eq!(1, unsafe { aws_lc::ECDSA_sign(0, digest, DIGEST.len(), to, &raw mut length, key) });
    }))
}

#[cfg(not(feature = "aws-lc"))]
fn sign_aws_lc<'a>() -> Run<'a> {
    None
}

type Sign = unsafe extern "C" fn(c_int, *const u8, c_int, *mut u8, *mut c_uint, *mut c_void) -> c_int;

/// Functions of OpenSSL, loaded at run time because their names collide with BoringSSL's.
struct OpenSsl {
    key: unsafe extern "C" fn(c_int) -> *mut c_void,
    generate: unsafe extern "C" fn(*mut c_void) -> c_int,
    sign: Sign,
}

impl OpenSsl {
    fn new(library: &Library) -> Result<Self, Box<dyn Error>> {
        // SAFETY: these are OpenSSL's names for functions of these types.
        unsafe {
            Ok(Self {
                key: *library.get(b"EC_KEY_new_by_curve_name\0")?,
                generate: *library.get(b"EC_KEY_generate_key\0")?,
                sign: *library.get(b"ECDSA_sign\0")?,
            })
        }
    }
}

fn sign_openssl(openssl: &OpenSsl) -> Run<'_> {
    // SAFETY: a new key, which lives as long as the program.
    let key = unsafe {
        let key = (openssl.key)(CURVE);
        assert_eq!((openssl.generate)(key), 1);
        key
    };
    let (mut signature, mut length) = ([0; DER], 0);
    Some(Box::new(move || {
        let (digest, to) = (DIGEST.as_ptr(), signature.as_mut_ptr());
        // SAFETY: the digest is as long as is passed, and there is room for any signature.
        assert_eq!(1, unsafe { (openssl.sign)(0, digest, P256_BYTES as c_int, to, &raw mut length, key) });
    }))
}
