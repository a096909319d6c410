//! The OpenSSL that loaded this module: the functions that it passes to providers, and the ASYNC functions found in
//! the process.

use crate::abi::{Dispatch, Param, core};
use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicPtr, Ordering},
    },
};

/// One load of the module: OpenSSL loads it once for each library context that requests it.
pub(crate) struct Core {
    handle: *const c_void,
    new_error: Option<unsafe extern "C" fn(*const c_void)>,
    set_error_debug: Option<unsafe extern "C" fn(*const c_void, *const c_char, c_int, *const c_char)>,
    vset_error: Option<unsafe extern "C" fn(*const c_void, u32, *const c_char, *mut c_void)>,
    get_params: Option<unsafe extern "C" fn(*const c_void, *mut Param) -> c_int>,
    bio_read: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, usize, *mut usize) -> c_int>,
    bio_gets: Option<unsafe extern "C" fn(*mut c_void, *mut c_char, c_int) -> c_int>,
}

// SAFETY: the handle is an identifier for OpenSSL's functions, which may be called from any thread.
unsafe impl Send for Core {}
// SAFETY: as above.
unsafe impl Sync for Core {}

/// Unloaded instances. They are never freed, because an error may be raised through one at any time; their number is
/// that of the library contexts.
static ENDED: Mutex<Vec<&'static Core>> = Mutex::new(Vec::new());

/// Loaded instances.
static LOADED: Mutex<Vec<&'static Core>> = Mutex::new(Vec::new());

/// The most recent instance. Errors are raised through it, without a lock that a fork could leave locked.
static CURRENT: AtomicPtr<Core> = AtomicPtr::new(std::ptr::null_mut());

/// Returns the most recently loaded instance that is still loaded.
pub(crate) fn current() -> Option<&'static Core> {
    // SAFETY: it is null, or an instance that is never freed.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// Registers a load.
pub(crate) fn enter(core: Core) -> &'static Core {
    let core: &'static Core = Box::leak(Box::new(core));
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    loaded.push(core);
    CURRENT.store(std::ptr::from_ref(core).cast_mut(), Ordering::Release);
    core
}

/// Registers an unload. Returns whether it was the last instance.
pub(crate) fn leave(core: &'static Core) -> bool {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    loaded.retain(|other| !std::ptr::eq(*other, core));
    let last = loaded.last().map_or(std::ptr::null(), |core| std::ptr::from_ref(*core));
    CURRENT.store(last.cast_mut(), Ordering::Release);
    ENDED.lock().unwrap_or_else(PoisonError::into_inner).push(core);
    loaded.is_empty()
}

impl Core {
    /// # Safety
    /// `handle` and `table` are what OpenSSL passed to `OSSL_provider_init`.
    pub(crate) unsafe fn new(handle: *const c_void, table: *const Dispatch) -> Self {
        let find = |id: c_int| {
            let mut entry = table;
            loop {
                // SAFETY: the table ends with an entry of number 0, which ends the loop.
                let this = unsafe { entry.as_ref()? };
                match this.id() {
                    0 => return None,
                    found if found == id => return Some(this.function()),
                    // SAFETY: that was not the last entry.
                    _ => entry = unsafe { entry.add(1) },
                }
            }
        };
        // SAFETY: core_dispatch.h gives each number its function's type, as declared in the fields.
        unsafe {
            Self {
                handle,
                new_error: find(core::NEW_ERROR).map(|f| std::mem::transmute(f)),
                set_error_debug: find(core::SET_ERROR_DEBUG).map(|f| std::mem::transmute(f)),
                vset_error: find(core::VSET_ERROR).map(|f| std::mem::transmute(f)),
                get_params: find(core::GET_PARAMS).map(|f| std::mem::transmute(f)),
                bio_read: find(core::BIO_READ_EX).map(|f| std::mem::transmute(f)),
                bio_gets: find(core::BIO_GETS).map(|f| std::mem::transmute(f)),
            }
        }
    }

    /// Adds an error to OpenSSL's queue.
    pub(crate) fn raise(&self, reason: u32, detail: &str) {
        let (Some(new), Some(set)) = (self.new_error, self.vset_error) else { return };
        // The text is a printf format; without directives, no arguments are read.
        let format = CString::new(detail.replace('%', "%%").replace('\0', " ")).unwrap_or_default();
        let format = if detail.is_empty() { std::ptr::null() } else { format.as_ptr() };
        let mut no_arguments = [0_u64; 8];
        // SAFETY: the functions are OpenSSL's for this handle. A `va_list` is passed as the address of a structure of
        // at most 32 bytes on x86-64 and AArch64, which is not read here.
        unsafe {
            new(self.handle);
            if let Some(debug) = self.set_error_debug {
                debug(self.handle, c"quadrille".as_ptr(), 0, c"quadrille provider".as_ptr());
            }
            set(self.handle, reason, format, no_arguments.as_mut_ptr().cast());
        }
    }

    /// Returns a setting of the provider's section in openssl.cnf.
    pub(crate) fn setting(&self, name: &'static CStr) -> Option<String> {
        let mut text: *const c_char = std::ptr::null();
        let place = (&raw mut text).cast();
        let asked = Param { data: place, ..crate::params::described(name, crate::abi::PARAM_TEXT_PTR) };
        let mut asked = [asked, crate::params::end()];
        // SAFETY: the list requests one pointer to a text, and has the place for it.
        let answered = unsafe { self.get_params?(self.handle, asked.as_mut_ptr()) };
        // SAFETY: on success, it is a C string of OpenSSL's.
        let text = unsafe { crate::abi::text(text) }?;
        (answered == 1).then(|| text.to_owned())
    }

    /// Reads up to `limit` bytes, or to the end.
    ///
    /// # Safety
    /// `bio` is an `OSSL_CORE_BIO` passed by OpenSSL.
    pub(crate) unsafe fn read(&self, bio: *mut c_void, limit: usize) -> Option<zeroize::Zeroizing<Vec<u8>>> {
        let read = self.bio_read?;
        let mut bytes = zeroize::Zeroizing::new(vec![0; limit]);
        let mut length = 0;
        while length < limit {
            let mut count = 0;
            let rest = &mut bytes[length..];
            // SAFETY: `rest` can be written, and `bio` is as the caller promises.
            let done = unsafe { read(bio, rest.as_mut_ptr().cast(), rest.len(), &mut count) };
            if done != 1 || count == 0 {
                break;
            }
            length += count;
        }
        bytes.truncate(length);
        Some(bytes)
    }

    /// Reads a line with its end, or a part of a long line; `None` at the end.
    ///
    /// # Safety
    /// See [`read`](Self::read).
    pub(crate) unsafe fn line(&self, bio: *mut c_void) -> Option<String> {
        let gets = self.bio_gets?;
        let mut line = [0_u8; 256];
        // SAFETY: `line` can be written up to its length.
        let length = unsafe { gets(bio, line.as_mut_ptr().cast(), 256) };
        let length = usize::try_from(length).ok().filter(|length| *length > 0)?;
        let text = String::from_utf8_lossy(line.get(..length)?).into_owned();
        zeroize::Zeroize::zeroize(&mut line);
        Some(text)
    }
}

/// Functions for ASYNC jobs (`ASYNC_start_job(3)`, `ASYNC_WAIT_CTX_new(3)`). OpenSSL does not pass them to providers.
pub(crate) struct Async {
    pub(crate) current_job: unsafe extern "C" fn() -> *mut c_void,
    pub(crate) wait_context: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    pub(crate) pause: unsafe extern "C" fn() -> c_int,
    pub(crate) get_fd:
        unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_int, *mut *mut c_void) -> c_int,
    pub(crate) set_fd: unsafe extern "C" fn(*mut c_void, *const c_void, c_int, *mut c_void, Cleanup) -> c_int,
    /// Available since OpenSSL 3.0.
    pub(crate) get_callback:
        Option<unsafe extern "C" fn(*mut c_void, *mut Option<Callback>, *mut *mut c_void) -> c_int>,
}

/// Function that a server stored in a wait context, called when its job can continue.
pub(crate) type Callback = unsafe extern "C" fn(*mut c_void) -> c_int;

/// Called when a wait context is freed.
pub(crate) type Cleanup = unsafe extern "C" fn(*mut c_void, *const c_void, c_int, *mut c_void);

impl Async {
    /// Returns the functions of the process; `None` if its OpenSSL lacks them, and operations then block.
    pub(crate) fn get() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Async>> = OnceLock::new();
        FOUND.get_or_init(Self::find).as_ref()
    }

    #[allow(clippy::missing_transmute_annotations, reason = "the types are those of the fields")]
    fn find() -> Option<Self> {
        // SAFETY: the names are C strings; the types are those of openssl/async.h.
        unsafe {
            Some(Self {
                current_job: std::mem::transmute::<*mut c_void, _>(symbol(c"ASYNC_get_current_job")?),
                wait_context: std::mem::transmute::<*mut c_void, _>(symbol(c"ASYNC_get_wait_ctx")?),
                pause: std::mem::transmute::<*mut c_void, _>(symbol(c"ASYNC_pause_job")?),
                get_fd: std::mem::transmute::<*mut c_void, _>(symbol(c"ASYNC_WAIT_CTX_get_fd")?),
                set_fd: std::mem::transmute::<*mut c_void, _>(symbol(c"ASYNC_WAIT_CTX_set_wait_fd")?),
                get_callback: symbol(c"ASYNC_WAIT_CTX_get_callback")
                    .map(|found| std::mem::transmute::<*mut c_void, _>(found)),
            })
        }
    }
}

/// Looks up a function in the libcrypto that loaded this module, identified by the functions that it passed; the
/// process may contain another libcrypto.
fn symbol(name: &CStr) -> Option<*mut c_void> {
    let core = current()?;
    let inside = core.new_error.map(|function| function as *const c_void)?;
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr looks up an address and fills `info`; dlopen with RTLD_NOLOAD finds only loaded libraries, and
    // its reference is kept, so that the functions stay mapped.
    unsafe {
        let known = libc::dladdr(inside, info.as_mut_ptr()) != 0;
        let file = info.assume_init().dli_fname;
        if known && !file.is_null() {
            let library = libc::dlopen(file, libc::RTLD_NOLOAD | libc::RTLD_LAZY);
            if !library.is_null() {
                let found = libc::dlsym(library, name.as_ptr());
                if !found.is_null() {
                    return Some(found);
                }
            }
        }
        // Node links OpenSSL into the executable.
        let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        (!found.is_null()).then_some(found)
    }
}
