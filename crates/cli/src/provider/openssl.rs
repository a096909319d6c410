//! A test signature through another program's libcrypto, called by its C functions.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW, Symbol};
use std::{
    ffi::{CStr, CString, c_char, c_int, c_ulong, c_void},
    fs,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    ptr::{null, null_mut},
};

/// Signs through a libcrypto.
#[derive(clap::Args)]
pub(crate) struct Probe {
    libcrypto: PathBuf,
    configuration: PathBuf,
    key: PathBuf,
}

type P = *mut c_void;
const MESSAGE: &[u8] = b"quadrille provider check";

impl Probe {
    pub(super) fn run(&self) -> Result<(), String> {
        // SAFETY: it is the OpenSSL of a server on this machine, loaded as that server loads it. Its own symbols take
        // precedence over this program's (RTLD_DEEPBIND).
        let library = unsafe { Library::open(Some(&self.libcrypto), RTLD_NOW | RTLD_LOCAL | DEEPBIND) };
        let library = library.map_err(|error| format!("{}: {error}", self.libcrypto.display()))?;
        let found = OpenSsl(library).sign(self)?;
        println!("{found}");
        Ok(())
    }
}

/// `RTLD_DEEPBIND` of glibc.
const DEEPBIND: c_int = 8;

struct OpenSsl(Library);

impl OpenSsl {
    fn sign(&self, probe: &Probe) -> Result<String, String> {
        let configuration =
            CString::new(probe.configuration.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        let pem =
            fs::read(&probe.key).map_err(|error| format!("cannot read {}: {error}", probe.key.display()))?;
        let length = c_int::try_from(pem.len()).map_err(|_| "the key file is too long".to_owned())?;
        // SAFETY: the functions have the types that OpenSSL 3 documents for their names, and receive each other's
        // objects and buffers with their lengths. Nothing is freed: the process exits after this.
        unsafe {
            let context = self.get::<unsafe extern "C" fn() -> P>("OSSL_LIB_CTX_new")?();
            let load =
                self.get::<unsafe extern "C" fn(P, *const c_char) -> c_int>("OSSL_LIB_CTX_load_config")?;
            self.good(load(context, configuration.as_ptr()), "the configuration is rejected")?;
            let bio = self.get::<unsafe extern "C" fn(*const c_void, c_int) -> P>("BIO_new_mem_buf")?;
            let bio = bio(pem.as_ptr().cast(), length);
            let read = self.get::<unsafe extern "C" fn(P, *mut P, P, P, P, *const c_char) -> P>(
                "PEM_read_bio_PrivateKey_ex",
            )?;
            let key = read(bio, null_mut(), null_mut(), null_mut(), context, null());
            self.good(c_int::from(!key.is_null()), "the key cannot be read")?;
            let provider = self.get::<unsafe extern "C" fn(P) -> P>("EVP_PKEY_get0_provider")?(key);
            let name =
                self.get::<unsafe extern "C" fn(P) -> *const c_char>("OSSL_PROVIDER_get0_name")?(provider);
            let name =
                if name.is_null() { c"none" } else { CStr::from_ptr(name) }.to_string_lossy().into_owned();
            let new = self.get::<unsafe extern "C" fn() -> P>("EVP_MD_CTX_new")?;
            type Init = unsafe extern "C" fn(P, *mut P, *const c_char, P, *const c_char, P, P) -> c_int;
            let (signing, mut signature, mut size) = (new(), vec![0_u8; 1024], 1024_usize);
            let init = self.get::<Init>("EVP_DigestSignInit_ex")?;
            let begun = init(signing, null_mut(), c"SHA256".as_ptr(), context, null(), key, null_mut());
            self.good(begun, "signing cannot begin")?;
            let sign = self.get::<unsafe extern "C" fn(P, *mut u8, *mut usize, *const u8, usize) -> c_int>(
                "EVP_DigestSign",
            )?;
            let signed = sign(signing, signature.as_mut_ptr(), &mut size, MESSAGE.as_ptr(), MESSAGE.len());
            self.good(signed, "signing failed")?;
            let verifying = new();
            let init = self.get::<Init>("EVP_DigestVerifyInit_ex")?;
            let begun = init(verifying, null_mut(), c"SHA256".as_ptr(), context, null(), key, null_mut());
            self.good(begun, "verifying cannot begin")?;
            let verify = self.get::<unsafe extern "C" fn(P, *const u8, usize, *const u8, usize) -> c_int>(
                "EVP_DigestVerify",
            )?;
            let good = verify(verifying, signature.as_ptr(), size, MESSAGE.as_ptr(), MESSAGE.len());
            self.good(good, "the signature is wrong")?;
            let version = self.get::<unsafe extern "C" fn(c_int) -> *const c_char>("OpenSSL_version")?(0);
            let version = CStr::from_ptr(version).to_string_lossy();
            if name != "quadrille" {
                return Err(format!("{version}: the key is in the provider `{name}`, not in quadrille"));
            }
            Ok(format!("{version}, a signature of {size} bytes by the {name} provider, verified"))
        }
    }

    /// # Safety
    /// `F` is the type of the function of this name.
    unsafe fn get<F: Copy>(&self, name: &str) -> Result<F, String> {
        // SAFETY: the caller's contract.
        let symbol: Symbol<F> = unsafe { self.0.get(name.as_bytes()) }
            .map_err(|_| format!("the function {name} is missing: this OpenSSL is older than 3.0"))?;
        Ok(*symbol)
    }

    /// Succeeds if `result` is 1; the error otherwise includes the reasons in OpenSSL's error queue.
    fn good(&self, result: c_int, otherwise: &str) -> Result<(), String> {
        if result == 1 {
            return Ok(());
        }
        let mut reasons = Vec::new();
        // SAFETY: the functions have the types that OpenSSL documents; the text fits its buffer.
        unsafe {
            type Get = unsafe extern "C" fn(
                *mut *const c_char,
                *mut c_int,
                *mut *const c_char,
                *mut *const c_char,
                *mut c_int,
            ) -> c_ulong;
            let get = self.get::<Get>("ERR_get_error_all")?;
            let describe =
                self.get::<unsafe extern "C" fn(c_ulong, *mut c_char, usize)>("ERR_error_string_n")?;
            let (mut data, mut flags): (*const c_char, c_int) = (null(), 0);
            loop {
                let code = get(null_mut(), null_mut(), null_mut(), &mut data, &mut flags);
                if code == 0 {
                    break;
                }
                let mut text = [0 as c_char; 256];
                describe(code, text.as_mut_ptr(), text.len());
                let mut reason = CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned();
                if !data.is_null() {
                    reason = format!("{reason}: {}", CStr::from_ptr(data).to_string_lossy());
                }
                reasons.push(reason);
            }
        }
        Err(format!("{otherwise} ({})", reasons.join("; ")))
    }
}
