//! A per-thread cache of encoded elliptic-curve public keys, which BoringSSL would encode twice in each handshake.
//!
//! If a handshake has handshake hints, `ssl_private_key_sign` encodes the certificate's public key on each call, to
//! compare it with a predicted signature. A P-256 key is stored in Jacobian coordinates, so each encoding costs an
//! inversion: five per cent of a handshake. BoringSSL has no switch for it, so the linker redirects its calls of
//! `EVP_marshal_public_key` here (`--wrap`, see `build.rs`). The bytes are the same as BoringSSL's. Without the
//! redirection, everything works at BoringSSL's cost.

use boring::pkey::{PKey, Public};
use boring_sys as ffi;
use foreign_types::ForeignType;
use std::{cell::RefCell, ffi::c_int, ptr, slice};

/// Maximum number of keys cached by a thread: keys of certificates in use, and short-lived keys of clients.
const CAPACITY: usize = 16;

thread_local! {
    static ENCODINGS: RefCell<Encodings> = const { RefCell::new(Encodings { known: Vec::new(), next: 0 }) };
}

/// Encodings by the address of their key. Each entry owns a reference, so that no other key can have that address.
struct Encodings {
    known: Vec<Encoding>,
    /// The entry that the next new key replaces when the cache is full.
    next: usize,
}

struct Encoding {
    key: PKey<Public>,
    der: Box<[u8]>,
}

impl Encodings {
    fn find(&self, key: *const ffi::EVP_PKEY) -> Option<&[u8]> {
        self.known.iter().find(|known| ptr::eq(known.key.as_ptr(), key)).map(|known| &*known.der)
    }

    fn remember(&mut self, encoding: Encoding) {
        if self.known.len() < CAPACITY {
            self.known.push(encoding);
        } else {
            self.known[self.next] = encoding;
            self.next = (self.next + 1) % CAPACITY;
        }
    }
}

unsafe extern "C" {
    /// BoringSSL's function, under the name that `--wrap` gives it.
    fn __real_EVP_marshal_public_key(cbb: *mut ffi::CBB, key: *const ffi::EVP_PKEY) -> c_int;
}

/// Appends the key as a `SubjectPublicKeyInfo` in DER (RFC 5280, section 4.1), as `EVP_marshal_public_key` does.
///
/// # Safety
/// Same as for BoringSSL's function: `cbb` is initialised, and `key` is live.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_EVP_marshal_public_key(cbb: *mut ffi::CBB, key: *const ffi::EVP_PKEY) -> c_int {
    let appended = ENCODINGS.try_with(|encodings| {
        let encodings = encodings.try_borrow().ok()?;
        let der = encodings.find(key)?;
        // SAFETY: the caller's contract, and the bytes are readable for their length.
        Some(unsafe { ffi::CBB_add_bytes(cbb, der.as_ptr(), der.len()) })
    });
    if let Ok(Some(status)) = appended {
        return status;
    }
    // SAFETY: the caller's contract. `CBB_len` requires a flushed `cbb`.
    let before = match unsafe { ffi::CBB_flush(cbb) } {
        // SAFETY: as above.
        1 => unsafe { ffi::CBB_len(cbb) },
        status => return status,
    };
    // SAFETY: the caller's contract.
    let status = unsafe { __real_EVP_marshal_public_key(cbb, key) };
    if status == 1 {
        // SAFETY: the real function has succeeded, so it has appended to `cbb`, and all of `cbb` is written.
        unsafe { remember(cbb, before, key) };
    }
    status
}

/// Caches the bytes of `cbb` after the first `before`, if the key is cacheable.
///
/// # Safety
/// `cbb` is initialised, flushed, and has at least `before` bytes; `key` is live.
unsafe fn remember(cbb: *const ffi::CBB, before: usize, key: *const ffi::EVP_PKEY) {
    // SAFETY: the caller's contract; the reference count changes through a pointer to const too.
    let (bytes, key) = unsafe {
        if !is_public_point(key) {
            return;
        }
        let bytes = slice::from_raw_parts(ffi::CBB_data(cbb), ffi::CBB_len(cbb));
        if ffi::EVP_PKEY_up_ref(key.cast_mut()) != 1 {
            return;
        }
        (bytes, PKey::from_ptr(key.cast_mut()))
    };
    let der = bytes.get(before..).unwrap_or_default().into();
    // A thread that is about to end has no cache any more.
    let _ = ENCODINGS.try_with(|encodings| {
        if let Ok(mut encodings) = encodings.try_borrow_mut() {
            encodings.remember(Encoding { key, der });
        }
    });
}

/// Returns whether `key` is an elliptic-curve key without its private half: the cache's reference would extend the
/// life of a private key.
///
/// # Safety
/// The key is live.
unsafe fn is_public_point(key: *const ffi::EVP_PKEY) -> bool {
    // SAFETY: the caller's contract. The type is checked first: for a key of another type, `EVP_PKEY_get0_EC_KEY`
    // would leave an error in the thread's queue, where libssl would find it.
    unsafe {
        ffi::EVP_PKEY_id(key) == ffi::EVP_PKEY_EC
            && ffi::EC_KEY_get0_private_key(ffi::EVP_PKEY_get0_EC_KEY(key)).is_null()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use boring::{
        ec::{EcGroup, EcKey},
        nid::Nid,
        pkey::{HasPublic, Private},
        rsa::Rsa,
    };
    use std::mem::MaybeUninit;

    fn known() -> usize {
        ENCODINGS.with(|encodings| encodings.borrow().known.len())
    }

    /// Calls BoringSSL's function by the name that libssl calls, after two unrelated bytes.
    fn marshal<T: HasPublic>(key: &PKey<T>) -> Vec<u8> {
        let mut cbb = MaybeUninit::uninit();
        // SAFETY: `CBB_init` initialises it, and its allocations are freed at the end.
        unsafe {
            assert_eq!(ffi::CBB_init(cbb.as_mut_ptr(), 0), 1);
            assert_eq!(ffi::CBB_add_u16(cbb.as_mut_ptr(), 0x1234), 1);
            assert_eq!(ffi::EVP_marshal_public_key(cbb.as_mut_ptr(), key.as_ptr()), 1);
            assert_eq!(ffi::CBB_flush(cbb.as_mut_ptr()), 1);
            let bytes =
                slice::from_raw_parts(ffi::CBB_data(cbb.as_ptr()), ffi::CBB_len(cbb.as_ptr())).to_vec();
            ffi::CBB_cleanup(cbb.as_mut_ptr());
            assert_eq!(bytes[..2], [0x12, 0x34]);
            assert_eq!(ffi::ERR_peek_error(), 0, "libssl would find this error");
            bytes[2..].to_vec()
        }
    }

    fn key_pair() -> EcKey<Private> {
        let curve = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).expect("P-256 is supported");
        EcKey::generate(&curve).expect("a key pair is generated")
    }

    fn public(pair: &EcKey<Private>) -> PKey<Public> {
        let public =
            EcKey::from_public_key(pair.group(), pair.public_key()).expect("the point is on the curve");
        PKey::from_ec_key(public).expect("a valid key")
    }

    #[test]
    fn a_public_point_is_encoded_once() {
        let key = public(&key_pair());
        // Another function of BoringSSL, which the linker does not redirect.
        let expected = key.public_key_to_der().expect("an encoding");
        assert_eq!(
            (marshal(&key), known()),
            (expected.clone(), 1),
            "the linker has redirected BoringSSL's calls"
        );
        assert_eq!((marshal(&key), known()), (expected, 1));
    }

    #[test]
    fn private_keys_and_other_kinds_are_not_remembered() {
        let pair = PKey::from_ec_key(key_pair()).expect("a valid key");
        assert_eq!(marshal(&pair), pair.public_key_to_der().expect("an encoding"));
        let rsa = PKey::from_rsa(Rsa::generate(2048).expect("a key pair is generated")).expect("a valid key");
        assert_eq!(marshal(&rsa), rsa.public_key_to_der().expect("an encoding"));
        assert_eq!(known(), 0);
    }

    #[test]
    fn new_keys_replace_old_ones() {
        for _ in 0..2 * CAPACITY {
            let key = public(&key_pair());
            let expected = key.public_key_to_der().expect("an encoding");
            assert_eq!((marshal(&key), marshal(&key)), (expected.clone(), expected));
        }
        assert_eq!(known(), CAPACITY);
    }
}
