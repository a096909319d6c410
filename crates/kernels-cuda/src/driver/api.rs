//! Functions of the CUDA driver API, loaded from a shared library when the process starts.
//!
//! Names and types are those of cuda.h; if it defines a name with a version (`cuMemAlloc` is `cuMemAlloc_v2`), the
//! version is given here. All of them are in every driver since CUDA 11.

use super::unavailable::Unavailable;
use libloading::Library;
use std::{
    ffi::{OsStr, c_char, c_int, c_uint, c_void},
    fmt,
};

/// Status code; 0 is success.
pub(crate) type Status = c_int;
/// Address in the device's memory.
pub(crate) type Address = u64;
/// A context, a module, a function or a stream: all are opaque pointers.
pub(crate) type Handle = *mut c_void;

macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($argument:ty),*);)*) => {
        /// Functions, and the library that contains them.
        pub(crate) struct Api {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> Status,)*
            _library: Library,
        }

        impl Api {
            /// Loads the library and looks up every function.
            pub(crate) fn load(library: &OsStr) -> Result<Self, Unavailable> {
                // SAFETY: the initialisers that loading runs are those of NVIDIA's driver library, or of an
                // administrator's replacement.
                let loaded = unsafe { Library::new(library) };
                let library = loaded.map_err(|error| Unavailable::NoDriver(error.to_string()))?;
                Ok(Self {
                    $($field: {
                        // SAFETY: cuda.h declares this symbol with this type, and the pointer lives as long as the
                        // library beside it.
                        let symbol = unsafe { library.get(concat!($symbol, "\0").as_bytes()) };
                        *symbol.map_err(|_| Unavailable::OldDriver($symbol))?
                    },)*
                    _library: library,
                })
            }
        }
    };
}

functions! {
    init = "cuInit": fn(c_uint);
    device_count = "cuDeviceGetCount": fn(*mut c_int);
    device = "cuDeviceGet": fn(*mut c_int, c_int);
    device_name = "cuDeviceGetName": fn(*mut c_char, c_int, c_int);
    device_attribute = "cuDeviceGetAttribute": fn(*mut c_int, c_int, c_int);
    context_flags = "cuDevicePrimaryCtxSetFlags_v2": fn(c_int, c_uint);
    context_retain = "cuDevicePrimaryCtxRetain": fn(*mut Handle, c_int);
    context_release = "cuDevicePrimaryCtxRelease_v2": fn(c_int);
    context_current = "cuCtxSetCurrent": fn(Handle);
    module_load = "cuModuleLoadData": fn(*mut Handle, *const c_void);
    module_unload = "cuModuleUnload": fn(Handle);
    module_function = "cuModuleGetFunction": fn(*mut Handle, Handle, *const c_char);
    occupancy = "cuOccupancyMaxActiveBlocksPerMultiprocessor": fn(*mut c_int, Handle, c_int, usize);
    memory_info = "cuMemGetInfo_v2": fn(*mut usize, *mut usize);
    memory_alloc = "cuMemAlloc_v2": fn(*mut Address, usize);
    memory_free = "cuMemFree_v2": fn(Address);
    memory_set = "cuMemsetD8Async": fn(Address, u8, usize, Handle);
    host_alloc = "cuMemHostAlloc": fn(*mut *mut c_void, usize, c_uint);
    host_free = "cuMemFreeHost": fn(*mut c_void);
    to_device = "cuMemcpyHtoDAsync_v2": fn(Address, *const c_void, usize, Handle);
    to_host = "cuMemcpyDtoHAsync_v2": fn(*mut c_void, Address, usize, Handle);
    stream_create = "cuStreamCreate": fn(*mut Handle, c_uint);
    stream_destroy = "cuStreamDestroy_v2": fn(Handle);
    stream_wait = "cuStreamSynchronize": fn(Handle);
    launch = "cuLaunchKernel": fn(
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
    );
    error_name = "cuGetErrorName": fn(Status, *mut *const c_char);
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}
