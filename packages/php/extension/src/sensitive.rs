//! Marks parameters as sensitive, so that backtraces show `Object(SensitiveParameterValue)` in their place.

use crate::{field::Field, key_ring::KeyRing, legacy::Legacy};
use ext_php_rs::{
    class::RegisteredClass,
    ffi::{zend_function, zend_string},
    types::{ZendHashTable, ZendStr},
};
use std::sync::Once;

unsafe extern "C" {
    /// Adds an attribute to a function (`offset` 0) or to one of its parameters, counted from 1.
    fn zend_add_attribute(
        attributes: *mut *mut ZendHashTable,
        name: *mut zend_string,
        arguments: u32,
        flags: u32,
        offset: u32,
        line: u32,
    ) -> *mut std::ffi::c_void;
}

/// Attribute flag for a lifetime beyond the request: `ZEND_ATTRIBUTE_PERSISTENT`.
const PERSISTENT: u32 = 1 << 0;

/// Marks the parameters before the first request: at module startup, its classes do not exist yet.
pub(crate) unsafe extern "C" fn mark_parameters(_type: i32, _module: i32) -> i32 {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        mark::<Field>("encrypt", 1);
        mark::<Field>("blindindex", 1);
        mark::<KeyRing>("parse", 1);
        mark::<KeyRing>("legacy", 1);
        mark::<KeyRing>("legacy", 2);
        mark::<Legacy>("encrypt", 1);
    });
    0
}

/// Marks a parameter. Method names are in lower case, as in PHP's tables; parameters are counted from 1.
fn mark<T: RegisteredClass>(method: &str, parameter: u32) {
    let functions = &T::get_metadata().ce().function_table;
    // SAFETY: the pointers in a function table point to functions.
    let Some(function) = functions.get(method).and_then(|entry| unsafe { entry.ptr::<zend_function>() })
    else {
        return;
    };
    let mut name = ZendStr::new("SensitiveParameter", true);
    // SAFETY: the class and its functions live as long as the process, and no script runs yet. PHP copies the name.
    unsafe {
        zend_add_attribute(
            &raw mut (*function).common.attributes,
            &raw mut *name,
            0,
            PERSISTENT,
            parameter,
            0,
        );
    }
}
