//! X25519: secrets and public keys, lanes compared with the libraries.

use std::error::Error;
use std::ffi::{c_int, c_void};
use std::ptr;

#[cfg(feature = "aws-lc")]
use aws_lc_sys as aws_lc;
use boring_sys as boring;
use libloading::Library;
use quadrille_kernels::{Agreement, Lanes, X25519_BYTES};

use crate::args::Arguments;
use crate::contender::{Contender, Run, rivals};
use crate::pass::Pass;
use crate::report::{self, Row};
use crate::rival;

type Bytes = [u8; X25519_BYTES];

/// Operations per batch: one, crossovers, one and two vectors of lanes, and the number that shares an inversion.
const FILLS: [usize; 6] = [1, 2, 4, 8, 16, 64];

/// Measures both operations, of all contenders of one pass.
pub(crate) fn measure(pass: Pass, arguments: &Arguments) -> Result<Vec<Row>, Box<dyn Error>> {
    let library = rival::open_openssl()?;
    let openssl = OpenSsl::new(&library)?;
    let tiers = pass.tiers();
    let secrets =
        [("openssl", agree_openssl(&openssl)), ("boringssl", agree_boringssl()), ("aws-lc", agree_aws_lc())];
    let keys = [
        ("openssl", public_key_openssl(&openssl)),
        ("boringssl", public_key_boringssl()),
        ("aws-lc", public_key_aws_lc()),
    ];
    let (mut secrets, mut keys) = (rivals(pass, secrets), rivals(pass, keys));
    for lanes in tiers.iter().filter(|lanes| lanes.x25519_width() > 1) {
        secrets.extend(FILLS.map(|fill| agree(lanes, fill)));
        keys.extend(FILLS.map(|fill| public_keys(lanes, fill)));
    }
    let mut rows = report::measured(pass, "x25519_secret", secrets, arguments);
    rows.extend(report::measured(pass, "x25519_public", keys, arguments));
    Ok(rows)
}

fn scalar(i: usize) -> Bytes {
    std::array::from_fn(|j| (i * 89 + j * 37 + 5) as u8)
}

fn point(i: usize) -> Bytes {
    std::array::from_fn(|j| (i * 101 + j * 53 + 7) as u8)
}

fn agree(lanes: &Lanes, fill: usize) -> Contender<'_> {
    let pairs: Vec<_> = (0..fill).map(|i| (scalar(i), point(i))).collect();
    let mut secrets = vec![[0; X25519_BYTES]; fill];
    let run = move || {
        let ops = pairs.iter().zip(&mut secrets);
        let mut ops: Vec<_> =
            ops.map(|((scalar, point), secret)| Agreement::new(scalar, point, secret)).collect();
        lanes.agree(&mut ops);
    };
    Contender { name: lanes.name().to_owned(), is_rival: false, fill, run: Box::new(run) }
}

fn public_keys(lanes: &Lanes, fill: usize) -> Contender<'_> {
    let scalars: Vec<_> = (0..fill).map(scalar).collect();
    let mut keys = vec![[0; X25519_BYTES]; fill];
    let run = move || lanes.x25519_public_keys(&scalars, &mut keys);
    Contender { name: lanes.name().to_owned(), is_rival: false, fill, run: Box::new(run) }
}

fn agree_boringssl<'a>() -> Run<'a> {
    let (scalar, point, mut secret) = (scalar(0), point(0), [0; X25519_BYTES]);
    Some(Box::new(move || {
        // SAFETY: all three are 32 bytes long.
        assert_eq!(1, unsafe { boring::X25519(secret.as_mut_ptr(), scalar.as_ptr(), point.as_ptr()) });
    }))
}

fn public_key_boringssl<'a>() -> Run<'a> {
    let (scalar, mut key) = (scalar(0), [0; X25519_BYTES]);
    // SAFETY: both are 32 bytes long.
    Some(Box::new(move || unsafe { boring::X25519_public_from_private(key.as_mut_ptr(), scalar.as_ptr()) }))
}

#[cfg(feature = "aws-lc")]
fn agree_aws_lc<'a>() -> Run<'a> {
    let (scalar, point, mut secret) = (scalar(0), point(0), [0; X25519_BYTES]);
    Some(Box::new(move || {
        // SAFETY: all three are 32 bytes long.
        assert_eq!(1, unsafe { aws_lc::X25519(secret.as_mut_ptr(), scalar.as_ptr(), point.as_ptr()) });
    }))
}

#[cfg(feature = "aws-lc")]
fn public_key_aws_lc<'a>() -> Run<'a> {
    let (scalar, mut key) = (scalar(0), [0; X25519_BYTES]);
    // SAFETY: both are 32 bytes long.
    Some(Box::new(move || unsafe { aws_lc::X25519_public_from_private(key.as_mut_ptr(), scalar.as_ptr()) }))
}

#[cfg(not(feature = "aws-lc"))]
fn agree_aws_lc<'a>() -> Run<'a> {
    None
}

#[cfg(not(feature = "aws-lc"))]
fn public_key_aws_lc<'a>() -> Run<'a> {
    None
}

/// Functions of OpenSSL, loaded at run time because their names collide with BoringSSL's.
struct OpenSsl {
    key: unsafe extern "C" fn(c_int, *const c_void, *const u8, usize) -> *mut c_void,
    peer: unsafe extern "C" fn(c_int, *const c_void, *const u8, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    context: unsafe extern "C" fn(*mut c_void, *const c_void) -> *mut c_void,
    free_context: unsafe extern "C" fn(*mut c_void),
    init: unsafe extern "C" fn(*mut c_void) -> c_int,
    set_peer: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
    derive: unsafe extern "C" fn(*mut c_void, *mut u8, *mut usize) -> c_int,
}

/// `EVP_PKEY_X25519`.
const X25519: c_int = 1034;

impl OpenSsl {
    fn new(library: &Library) -> Result<Self, Box<dyn Error>> {
        // SAFETY: these are OpenSSL's names for functions of these types.
        unsafe {
            Ok(Self {
                key: *library.get(b"EVP_PKEY_new_raw_private_key\0")?,
                peer: *library.get(b"EVP_PKEY_new_raw_public_key\0")?,
                free: *library.get(b"EVP_PKEY_free\0")?,
                context: *library.get(b"EVP_PKEY_CTX_new\0")?,
                free_context: *library.get(b"EVP_PKEY_CTX_free\0")?,
                init: *library.get(b"EVP_PKEY_derive_init\0")?,
                set_peer: *library.get(b"EVP_PKEY_derive_set_peer\0")?,
                derive: *library.get(b"EVP_PKEY_derive\0")?,
            })
        }
    }
}

/// Uses an existing key and parses a peer's bytes, as in a handshake.
fn agree_openssl(openssl: &OpenSsl) -> Run<'_> {
    let (scalar, point, mut secret) = (scalar(0), point(0), [0; X25519_BYTES]);
    // SAFETY: the scalar is 32 bytes long. The key lives as long as the program.
    let key = unsafe { (openssl.key)(X25519, ptr::null(), scalar.as_ptr(), scalar.len()) };
    Some(Box::new(move || {
        let mut length = secret.len();
        // SAFETY: the key is valid, the buffers are 32 bytes long, what is made is freed.
        unsafe {
            let peer = (openssl.peer)(X25519, ptr::null(), point.as_ptr(), point.len());
            let context = (openssl.context)(key, ptr::null());
            let computed = (openssl.init)(context) == 1
                && (openssl.set_peer)(context, peer) == 1
                && (openssl.derive)(context, secret.as_mut_ptr(), &mut length) == 1;
            (openssl.free_context)(context);
            (openssl.free)(peer);
            assert!(computed, "OpenSSL computes");
        }
    }))
}

/// Parses a private key: OpenSSL computes its public key then.
fn public_key_openssl(openssl: &OpenSsl) -> Run<'_> {
    let scalar = scalar(0);
    Some(Box::new(move || {
        // SAFETY: the scalar is 32 bytes long; the key is freed.
        unsafe {
            let key = (openssl.key)(X25519, ptr::null(), scalar.as_ptr(), scalar.len());
            assert!(!key.is_null(), "OpenSSL computes");
            (openssl.free)(key);
        }
    }))
}
