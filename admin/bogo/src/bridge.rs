//! Bridge between the shim, BoringSSL and the engine.

use boring::ssl::SslRef;
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use quadrille_engine::{
    Backend, Engine, Exchange, ExchangeError, Job, KeyType, P256, P256SecretOperation, Policy, Scalar,
    ServerShare, Settings, Unobserved,
};
use quadrille_kernels::{Ceiling, Lanes, P256Agreement};
use quadrille_key_share::{hand_over, predict};
use std::{
    env,
    ffi::{CString, c_char, c_int},
    fs::OpenOptions,
    future::Future,
    io::Write,
    num::NonZeroUsize,
    os::unix::ffi::OsStringExt,
    pin::pin,
    ptr, slice,
    sync::{LazyLock, OnceLock},
    task::{Context, Poll, Waker},
};

type SelectCertificate = unsafe extern "C" fn(*const ffi::SSL_CLIENT_HELLO) -> ffi::ssl_select_cert_result_t;

unsafe extern "C" {
    /// `int main(int, char **)` of `bssl_shim.cc`, renamed, in C++'s spelling.
    #[link_name = "_Z14bssl_shim_mainiPPc"]
    fn bssl_shim_main(count: c_int, arguments: *mut *mut c_char) -> c_int;

    fn __real_SSL_CTX_set_select_certificate_cb(
        context: *mut ffi::SSL_CTX,
        callback: Option<SelectCertificate>,
    );
}

/// The callback that the shim has set.
static CALLBACK: OnceLock<SelectCertificate> = OnceLock::new();

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let (policy, one) = (Policy::default(), NonZeroUsize::MIN);
    let settings = Settings { policy, threads: one, yields: 0, capacity: one, key_exchange: true };
    Engine::start(settings, LoneP256(Lanes::up_to(Ceiling::default())), Unobserved).expect("a thread")
});

/// A backend with the P-256 kernels, in lanes or BoringSSL's, for a lone client too: there is never a second client
/// here.
struct LoneP256(Lanes);

impl Backend for LoneP256 {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn width(&self, _: KeyType) -> usize {
        1
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        Scalar.compute(batch);
    }

    fn verifies(&self) -> bool {
        Scalar.verifies()
    }

    fn p256(&self) -> Option<&dyn P256> {
        Some(self)
    }
}

impl P256 for LoneP256 {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn width(&self) -> usize {
        8
    }

    fn crossover(&self) -> usize {
        1
    }

    fn secrets(&self, operations: &mut [P256SecretOperation<'_>]) {
        for P256SecretOperation { private, peer, secret, complete } in operations {
            let mut one = [P256Agreement::new(private, peer, secret)];
            self.0.agree_p256(&mut one);
            *complete = one[0].is_computed();
        }
    }

    fn public_keys(&self, private: &[[u8; 32]], public: &mut [[u8; 65]]) {
        self.0.p256_public_keys(private, public);
    }
}

pub(crate) fn run_shim() {
    let arguments: Vec<CString> =
        env::args_os().map(|argument| CString::new(argument.into_vec()).expect("no zero byte")).collect();
    let mut pointers: Vec<*mut c_char> = arguments.iter().map(|text| text.as_ptr().cast_mut()).collect();
    let count = c_int::try_from(pointers.len()).expect("few arguments");
    pointers.push(ptr::null_mut());
    // SAFETY: the arguments are those of this process, in C's form, and live until the shim returns.
    let status = unsafe { bssl_shim_main(count, pointers.as_mut_ptr()) };
    std::process::exit(status);
}

/// Replacement that the shim calls in place of `SSL_CTX_set_select_certificate_cb`.
///
/// # Safety
/// The requirements of the replaced function.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_SSL_CTX_set_select_certificate_cb(
    context: *mut ffi::SSL_CTX,
    callback: Option<SelectCertificate>,
) {
    if let Some(callback) = callback {
        CALLBACK.get_or_init(|| callback);
    }
    // SAFETY: guaranteed by the caller; the callback lives forever.
    unsafe {
        __real_SSL_CTX_set_select_certificate_cb(
            context,
            callback.map(|_| select_certificate as SelectCertificate),
        )
    };
}

/// Computes the key exchange, then calls the shim's callback.
unsafe extern "C" fn select_certificate(
    hello: *const ffi::SSL_CLIENT_HELLO,
) -> ffi::ssl_select_cert_result_t {
    // SAFETY: BoringSSL passes the ClientHello of a live connection in its handshake.
    if let Some(answer) = unsafe { exchange(hello) } {
        // SAFETY: as above; nothing else refers to the connection now.
        let ssl = unsafe { SslRef::from_ptr_mut((*hello).ssl) };
        hand_over(ssl, &answer).expect("memory");
        count();
    }
    match CALLBACK.get() {
        // SAFETY: as above; the callback is the shim's own for this.
        Some(callback) => unsafe { callback(hello) },
        None => ffi::ssl_select_cert_result_t::ssl_select_cert_success,
    }
}

/// Tries all groups. The groups of the shim's servers depend on flags, and the order often on the client; BoringSSL
/// ignores a share of a group that it does not choose.
///
/// # Safety
/// The ClientHello must be live.
unsafe fn exchange(hello: *const ffi::SSL_CLIENT_HELLO) -> Option<ServerShare> {
    const X25519MLKEM768: u16 = 0x11ec;
    const X25519: u16 = 0x001d;
    const P256: u16 = 0x0017;
    // SAFETY: guaranteed by the caller.
    let extension = |code| unsafe { extension(hello, code) };
    let predicted = |group| predict(extension, &[group], |group| ENGINE.exchanges(group));
    let share = [X25519MLKEM768, X25519, P256].into_iter().find_map(predicted)?;
    match at_once(ENGINE.exchange(share)) {
        Ok(answer) => Some(answer),
        Err(ExchangeError::InvalidShare) => None,
        Err(error) => panic!("{error}"),
    }
}

/// # Safety
/// The ClientHello must live as long as the result is used.
unsafe fn extension<'a>(hello: *const ffi::SSL_CLIENT_HELLO, code: u16) -> Option<&'a [u8]> {
    let (mut data, mut len) = (ptr::null(), 0);
    // SAFETY: the ClientHello is live, and the outputs are writable.
    let found =
        unsafe { ffi::SSL_early_callback_ctx_extension_get(hello, code, &raw mut data, &raw mut len) };
    // SAFETY: BoringSSL returns this number of bytes of the ClientHello.
    (found == 1).then(|| if len == 0 { &[][..] } else { unsafe { slice::from_raw_parts(data, len) } })
}

/// Returns the result, which is available at once on a thread without an event loop.
fn at_once(exchange: Exchange) -> Result<ServerShare, ExchangeError> {
    match pin!(exchange).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => Err(ExchangeError::Failed),
    }
}

/// Appends one byte per exchange to the file named by `QUADRILLE_BOGO_EXCHANGES`: evidence that the tests have used
/// them.
fn count() {
    if let Some(path) = env::var_os("QUADRILLE_BOGO_EXCHANGES") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(b".")).expect("the file of the exchanges");
    }
}
