//! The scalar libraries, through the C interface that all three share.

use std::error::Error;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

#[cfg(feature = "aws-lc")]
use aws_lc_sys as aws_lc;
use boring_sys as boring;
use libloading::{Library, Symbol};
use quadrille_kernels::{Components, KeySize};

use crate::contender::Contender;
use crate::pass::Pass;

/// `RSA_NO_PADDING`.
const NO_PADDING: c_int = 3;

/// The functions used; their types agree in all three libraries except for the signedness of a length.
struct Rsa {
    bn_bin2bn: unsafe extern "C" fn(*const u8, usize, *mut c_void) -> *mut c_void,
    new: unsafe extern "C" fn() -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    set0_key: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, *mut c_void) -> c_int,
    set0_factors: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> c_int,
    set0_crt_params: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, *mut c_void) -> c_int,
    private_encrypt: unsafe extern "C" fn(usize, *const u8, *mut u8, *mut c_void, c_int) -> c_int,
}

/// One library.
pub(crate) struct Rival {
    name: String,
    rsa: Rsa,
    /// Keeps a loaded library loaded.
    _library: Option<Library>,
}

/// The functions of a linked library, with pointee types erased.
macro_rules! linked {
    ($library:ident) => {{
        use std::mem::transmute;
        type Pointer = *mut c_void;
        // SAFETY: only pointee types change, and a length from int to usize, in the same register.
        unsafe {
            Rsa {
                bn_bin2bn: transmute::<*const (), unsafe extern "C" fn(*const u8, usize, Pointer) -> Pointer>(
                    $library::BN_bin2bn as *const (),
                ),
                new: transmute::<*const (), unsafe extern "C" fn() -> Pointer>($library::RSA_new as *const ()),
                free: transmute::<*const (), unsafe extern "C" fn(Pointer)>($library::RSA_free as *const ()),
                set0_key: transmute::<*const (), unsafe extern "C" fn(Pointer, Pointer, Pointer, Pointer) -> c_int>(
                    $library::RSA_set0_key as *const (),
                ),
                set0_factors: transmute::<*const (), unsafe extern "C" fn(Pointer, Pointer, Pointer) -> c_int>(
                    $library::RSA_set0_factors as *const (),
                ),
                set0_crt_params: transmute::<
                    *const (),
                    unsafe extern "C" fn(Pointer, Pointer, Pointer, Pointer) -> c_int,
                >($library::RSA_set0_crt_params as *const ()),
                private_encrypt: transmute::<
                    *const (),
                    unsafe extern "C" fn(usize, *const u8, *mut u8, Pointer, c_int) -> c_int,
                >($library::RSA_private_encrypt as *const ()),
            }
        }
    }};
}

/// Returns the libraries, named according to the pass. OpenSSL is the system's, loaded at run time because its names
/// collide with BoringSSL's.
pub(crate) fn all(pass: Pass) -> Result<Vec<Rival>, Box<dyn Error>> {
    let library = open_openssl()?;
    let rivals = [
        ("openssl", openssl(&library)?, Some(library)),
        ("boringssl", linked!(boring), None),
        #[cfg(feature = "aws-lc")]
        ("aws-lc", linked!(aws_lc), None),
    ];
    let named = |(name, rsa, _library): (&str, Rsa, _)| Rival { name: pass.name_of(name), rsa, _library };
    Ok(rivals.into_iter().map(named).collect())
}

/// Returns the exact versions of the libraries.
pub(crate) fn versions() -> Result<Vec<String>, Box<dyn Error>> {
    let library = open_openssl()?;
    // SAFETY: this is the type of this function of OpenSSL; 0 requests the version, a static string.
    let openssl = unsafe {
        let version: Symbol<'_, unsafe extern "C" fn(c_int) -> *const c_char> =
            library.get(b"OpenSSL_version\0")?;
        CStr::from_ptr(version(0)).to_string_lossy().into_owned()
    };
    Ok(vec![
        format!("openssl: {openssl}"),
        format!("boringssl: of boring-sys {}", locked_version("boring-sys")),
        #[cfg(feature = "aws-lc")]
        format!("aws-lc: of aws-lc-sys {}", locked_version("aws-lc-sys")),
        #[cfg(not(feature = "aws-lc"))]
        "aws-lc: LEFT OUT, build with --features aws-lc".to_owned(),
    ])
}

/// Returns the version of a dependency in the workspace's lock file.
fn locked_version(package: &str) -> &'static str {
    let lock = include_str!("../../../Cargo.lock");
    let entry = lock.split("[[package]]").find(|entry| entry.contains(&format!("name = \"{package}\"\n")));
    let version = entry.and_then(|entry| entry.split("version = \"").nth(1)?.split('"').next());
    version.unwrap_or("unknown")
}

pub(crate) fn open_openssl() -> Result<Library, Box<dyn Error>> {
    // SAFETY: libcrypto's initialisers are sound, and BoringSSL, linked statically, is not looked up by name.
    let library = unsafe { Library::new("libcrypto.so.3") };
    library.map_err(|error| format!("OpenSSL 3 (Debian's package libssl3) is needed: {error}").into())
}

fn openssl(library: &Library) -> Result<Rsa, Box<dyn Error>> {
    // SAFETY: these are OpenSSL's names for functions of these types; lengths are far below 2^31.
    unsafe {
        Ok(Rsa {
            bn_bin2bn: *library.get(b"BN_bin2bn\0")?,
            new: *library.get(b"RSA_new\0")?,
            free: *library.get(b"RSA_free\0")?,
            set0_key: *library.get(b"RSA_set0_key\0")?,
            set0_factors: *library.get(b"RSA_set0_factors\0")?,
            set0_crt_params: *library.get(b"RSA_set0_crt_params\0")?,
            private_encrypt: *library.get(b"RSA_private_encrypt\0")?,
        })
    }
}

impl Rival {
    /// Returns this library as a contender, with its own copy of the key.
    pub(crate) fn contender<'a>(&'a self, key: &Key) -> Result<Contender<'a>, Box<dyn Error>> {
        let rsa = Handle::import(&self.rsa, key)?;
        let input = key.input();
        let mut output = vec![0; input.len()];
        let run = move || rsa.private_operation(&input, &mut output);
        Ok(Contender { name: self.name.clone(), is_rival: true, fill: 1, run: Box::new(run) })
    }
}

/// A key inside a rival.
struct Handle<'a> {
    functions: &'a Rsa,
    key: *mut c_void,
}

impl<'a> Handle<'a> {
    fn import(functions: &'a Rsa, key: &Key) -> Result<Self, Box<dyn Error>> {
        // SAFETY: the bytes are readable.
        let number =
            |bytes: &[u8]| unsafe { (functions.bn_bin2bn)(bytes.as_ptr(), bytes.len(), ptr::null_mut()) };
        let Components { n, e, p, q, dp, dq, qinv } = key.components();
        // SAFETY: all numbers are fresh, and the key takes them over.
        unsafe {
            let handle = Self { functions, key: (functions.new)() };
            let complete = (functions.set0_key)(handle.key, number(n), number(e), number(&key.d)) == 1
                && (functions.set0_factors)(handle.key, number(p), number(q)) == 1
                && (functions.set0_crt_params)(handle.key, number(dp), number(dq), number(qinv)) == 1;
            complete.then_some(handle).ok_or_else(|| "a rival rejects the key".into())
        }
    }

    fn private_operation(&self, input: &[u8], output: &mut [u8]) {
        let private_encrypt = self.functions.private_encrypt;
        // SAFETY: the key is complete; both buffers are as long as the modulus.
        let written = unsafe {
            private_encrypt(input.len(), input.as_ptr(), output.as_mut_ptr(), self.key, NO_PADDING)
        };
        assert_eq!(written, output.len() as c_int, "the rival computes");
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // SAFETY: the key is owned.
        unsafe { (self.functions.free)(self.key) };
    }
}

/// A new key, big-endian.
pub(crate) struct Key {
    numbers: [Vec<u8>; 7],
    d: Vec<u8>,
}

impl Key {
    /// Generates a key with BoringSSL, e = 65537.
    pub(crate) fn generate(size: KeySize) -> Result<Self, Box<dyn Error>> {
        // SAFETY: every object is checked and freed; the getters borrow from the key.
        unsafe {
            let (rsa, e) = (boring::RSA_new(), boring::BN_new());
            let made = boring::BN_set_word(e, 65537) == 1
                && boring::RSA_generate_key_ex(rsa, size.bits() as c_int, e, ptr::null_mut()) == 1;
            boring::BN_free(e);
            if !made {
                boring::RSA_free(rsa);
                return Err("BoringSSL could not generate a key".into());
            }
            let bytes = |number: *const boring::BIGNUM| {
                let mut bytes = vec![0; boring::BN_num_bytes(number) as usize];
                boring::BN_bn2bin(number, bytes.as_mut_ptr());
                bytes
            };
            let numbers = [
                bytes(boring::RSA_get0_n(rsa)),
                bytes(boring::RSA_get0_e(rsa)),
                bytes(boring::RSA_get0_p(rsa)),
                bytes(boring::RSA_get0_q(rsa)),
                bytes(boring::RSA_get0_dmp1(rsa)),
                bytes(boring::RSA_get0_dmq1(rsa)),
                bytes(boring::RSA_get0_iqmp(rsa)),
            ];
            let d = bytes(boring::RSA_get0_d(rsa));
            boring::RSA_free(rsa);
            Ok(Self { numbers, d })
        }
    }

    pub(crate) fn components(&self) -> Components<'_> {
        let [n, e, p, q, dp, dq, qinv] = &self.numbers;
        Components { n, e, p, q, dp, dq, qinv }
    }

    /// Returns a number below n, with the length of n.
    pub(crate) fn input(&self) -> Vec<u8> {
        let mut input = self.numbers[0].clone();
        input[0] = 0;
        input
    }
}
