//! ECDH on P-256: secrets, from a client's encoded point, and key pairs; lanes compared with the libraries.

use std::error::Error;
use std::ffi::{c_int, c_void};
use std::ptr;

#[cfg(feature = "aws-lc")]
use aws_lc_sys as aws_lc;
use boring_sys as boring;
use libloading::Library;
use quadrille_kernels::{Lanes, P256_BYTES, P256_POINT_BYTES, P256Agreement};

use crate::args::Arguments;
use crate::contender::{Contender, Run, rivals};
use crate::pass::Pass;
use crate::report::{self, Row};
use crate::rival;

type Scalar = [u8; P256_BYTES];
type Point = [u8; P256_POINT_BYTES];

/// Operations per batch: up to the crossover, one and two vectors of lanes, and the number that shares an inversion.
const FILLS: [usize; 7] = [1, 2, 3, 4, 8, 16, 64];
/// `NID_X9_62_prime256v1`, equal in all libraries.
const CURVE: c_int = 415;
/// The uncompressed form, equal in all libraries.
const UNCOMPRESSED: c_int = 4;

/// Measures both operations, of all contenders of one pass.
pub(crate) fn measure(pass: Pass, arguments: &Arguments) -> Result<Vec<Row>, Box<dyn Error>> {
    let library = rival::open_openssl()?;
    let openssl = OpenSsl::new(&library)?;
    let tiers = pass.tiers();
    let secrets =
        [("openssl", agree_openssl(&openssl)), ("boringssl", agree_boringssl()), ("aws-lc", agree_aws_lc())];
    let keys = [
        ("openssl", key_pair_openssl(&openssl)),
        ("boringssl", key_pair_boringssl()),
        ("aws-lc", key_pair_aws_lc()),
    ];
    let (mut secrets, mut keys) = (rivals(pass, secrets), rivals(pass, keys));
    for lanes in tiers.iter().filter(|lanes| lanes.p256_width() > 1) {
        secrets.extend(FILLS.map(|fill| agree(lanes, fill)));
        keys.extend(FILLS.map(|fill| public_keys(lanes, fill)));
    }
    let mut rows = report::measured(pass, "ecdh_p256_secret", secrets, arguments);
    rows.extend(report::measured(pass, "ecdh_p256_key_pair", keys, arguments));
    Ok(rows)
}

/// Returns a scalar below the order.
fn scalar(i: usize) -> Scalar {
    std::array::from_fn(|j| (i * 89 + j * 37 + 5) as u8 & 0x7f)
}

fn point(lanes: &Lanes, i: usize) -> Point {
    let mut point = [[0; P256_POINT_BYTES]];
    lanes.p256_public_keys(&[scalar(1000 + i)], &mut point);
    point[0]
}

fn agree(lanes: &Lanes, fill: usize) -> Contender<'_> {
    let pairs: Vec<_> = (0..fill).map(|i| (scalar(i), point(lanes, i))).collect();
    let mut secrets = vec![[0; P256_BYTES]; fill];
    let run = move || {
        let ops = pairs.iter().zip(&mut secrets);
        let mut ops: Vec<_> =
            ops.map(|((scalar, point), secret)| P256Agreement::new(scalar, point, secret)).collect();
        lanes.agree_p256(&mut ops);
        assert!(ops.iter().all(P256Agreement::is_computed));
    };
    Contender { name: lanes.name().to_owned(), is_rival: false, fill, run: Box::new(run) }
}

fn public_keys(lanes: &Lanes, fill: usize) -> Contender<'_> {
    let scalars: Vec<_> = (0..fill).map(scalar).collect();
    let mut keys = vec![[0; P256_POINT_BYTES]; fill];
    let run = move || lanes.p256_public_keys(&scalars, &mut keys);
    Contender { name: lanes.name().to_owned(), is_rival: false, fill, run: Box::new(run) }
}

/// Processes a client's point as in a server's handshake, with a library whose functions have these names: parses the
/// point, multiplies it, and extracts the coordinate.
macro_rules! agree_with {
    ($library:ident) => {{
        let mut secret = [0; P256_BYTES];
        // SAFETY: new objects, which live as long as the program; the encoded point is as long as is passed.
        let (group, point, key) = unsafe {
            let key = $library::EC_KEY_new_by_curve_name(CURVE);
            let other = $library::EC_KEY_new_by_curve_name(CURVE);
            assert_eq!(($library::EC_KEY_generate_key(key), $library::EC_KEY_generate_key(other)), (1, 1));
            let group = $library::EC_KEY_get0_group(key);
            let mut encoded: Point = [0; P256_POINT_BYTES];
            let (public, len) = ($library::EC_KEY_get0_public_key(other), encoded.len());
            let form = $library::point_conversion_form_t::POINT_CONVERSION_UNCOMPRESSED;
            let to = encoded.as_mut_ptr();
            assert_eq!($library::EC_POINT_point2oct(group, public, form, to, len, ptr::null_mut()), len);
            (group, encoded, key)
        };
        Some(Box::new(move || {
            // SAFETY: the key is valid, the lengths are those of the buffers, what is made is freed.
            unsafe {
                let peer = $library::EC_POINT_new(group);
                let (from, len) = (point.as_ptr(), point.len());
                let parsed = $library::EC_POINT_oct2point(group, peer, from, len, ptr::null_mut());
                let (to, len) = (secret.as_mut_ptr().cast(), secret.len());
                let computed = $library::ECDH_compute_key(to, len, peer, key, None);
                $library::EC_POINT_free(peer);
                assert!(parsed == 1 && computed == len as c_int);
            }
        }) as Box<dyn FnMut()>)
    }};
}

/// Generates a key pair, and encodes its public key.
macro_rules! key_pair_with {
    ($library:ident) => {{
        // SAFETY: as above.
        let group = unsafe { $library::EC_KEY_get0_group($library::EC_KEY_new_by_curve_name(CURVE)) };
        let mut encoded: Point = [0; P256_POINT_BYTES];
        Some(Box::new(move || {
            // SAFETY: the group is valid, the length is that of the buffer, what is made is freed.
            unsafe {
                let key = $library::EC_KEY_new_by_curve_name(CURVE);
                let generated = $library::EC_KEY_generate_key(key);
                let (public, len) = ($library::EC_KEY_get0_public_key(key), encoded.len());
                let form = $library::point_conversion_form_t::POINT_CONVERSION_UNCOMPRESSED;
                let to = encoded.as_mut_ptr();
                let written = $library::EC_POINT_point2oct(group, public, form, to, len, ptr::null_mut());
                $library::EC_KEY_free(key);
                assert!(generated == 1 && written == len);
            }
        }) as Box<dyn FnMut()>)
    }};
}

fn agree_boringssl<'a>() -> Run<'a> {
    agree_with!(boring)
}

fn key_pair_boringssl<'a>() -> Run<'a> {
    key_pair_with!(boring)
}

#[cfg(feature = "aws-lc")]
fn agree_aws_lc<'a>() -> Run<'a> {
    agree_with!(aws_lc)
}

#[cfg(feature = "aws-lc")]
fn key_pair_aws_lc<'a>() -> Run<'a> {
    key_pair_with!(aws_lc)
}

#[cfg(not(feature = "aws-lc"))]
fn agree_aws_lc<'a>() -> Run<'a> {
    None
}

#[cfg(not(feature = "aws-lc"))]
fn key_pair_aws_lc<'a>() -> Run<'a> {
    None
}

type Encode = unsafe extern "C" fn(*const c_void, *const c_void, c_int, *mut u8, usize, *mut c_void) -> usize;
type Parse = unsafe extern "C" fn(*const c_void, *mut c_void, *const u8, usize, *mut c_void) -> c_int;
type Compute = unsafe extern "C" fn(*mut c_void, usize, *const c_void, *mut c_void, *const c_void) -> c_int;

/// Functions of OpenSSL, loaded at run time because their names collide with BoringSSL's.
struct OpenSsl {
    new: unsafe extern "C" fn(c_int) -> *mut c_void,
    generate: unsafe extern "C" fn(*mut c_void) -> c_int,
    free: unsafe extern "C" fn(*mut c_void),
    group: unsafe extern "C" fn(*const c_void) -> *const c_void,
    public: unsafe extern "C" fn(*const c_void) -> *const c_void,
    encode: Encode,
    new_point: unsafe extern "C" fn(*const c_void) -> *mut c_void,
    free_point: unsafe extern "C" fn(*mut c_void),
    parse: Parse,
    compute: Compute,
}

impl OpenSsl {
    fn new(library: &Library) -> Result<Self, Box<dyn Error>> {
        // SAFETY: these are OpenSSL's names for functions of these types.
        unsafe {
            Ok(Self {
                new: *library.get(b"EC_KEY_new_by_curve_name\0")?,
                generate: *library.get(b"EC_KEY_generate_key\0")?,
                free: *library.get(b"EC_KEY_free\0")?,
                group: *library.get(b"EC_KEY_get0_group\0")?,
                public: *library.get(b"EC_KEY_get0_public_key\0")?,
                encode: *library.get(b"EC_POINT_point2oct\0")?,
                new_point: *library.get(b"EC_POINT_new\0")?,
                free_point: *library.get(b"EC_POINT_free\0")?,
                parse: *library.get(b"EC_POINT_oct2point\0")?,
                compute: *library.get(b"ECDH_compute_key\0")?,
            })
        }
    }

    /// Generates a key, and returns it with its public point.
    ///
    /// # Safety
    /// The key must be freed once.
    unsafe fn key_pair(&self) -> (*mut c_void, Point) {
        let mut point = [0; P256_POINT_BYTES];
        // SAFETY: a new key; the length is that of the buffer.
        unsafe {
            let key = (self.new)(CURVE);
            assert_eq!((self.generate)(key), 1);
            let (group, public, len) = ((self.group)(key), (self.public)(key), point.len());
            let to = point.as_mut_ptr();
            assert_eq!((self.encode)(group, public, UNCOMPRESSED, to, len, ptr::null_mut()), len);
            (key, point)
        }
    }
}

fn agree_openssl(openssl: &OpenSsl) -> Run<'_> {
    // SAFETY: both live as long as the program.
    let ((key, _), (_, point)) = unsafe { (openssl.key_pair(), openssl.key_pair()) };
    let mut secret = [0; P256_BYTES];
    Some(Box::new(move || {
        // SAFETY: the key is valid, the lengths are those of the buffers, what is made is freed.
        unsafe {
            let group = (openssl.group)(key);
            let peer = (openssl.new_point)(group);
            let parsed = (openssl.parse)(group, peer, point.as_ptr(), point.len(), ptr::null_mut());
            let (to, len) = (secret.as_mut_ptr().cast(), secret.len());
            let computed = (openssl.compute)(to, len, peer, key, ptr::null());
            (openssl.free_point)(peer);
            assert!(parsed == 1 && computed == len as c_int);
        }
    }))
}

fn key_pair_openssl(openssl: &OpenSsl) -> Run<'_> {
    // SAFETY: the key is freed.
    Some(Box::new(move || unsafe { (openssl.free)(openssl.key_pair().0) }))
}
