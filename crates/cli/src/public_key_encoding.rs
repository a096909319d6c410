//! Public keys on curves are encoded once per thread, not twice in each handshake.
//!
//! Where a handshake has been given any hint, `ssl_private_key_sign` encodes the certificate's public key each time it is
//! entered, to compare it with a predicted signature. A key on P-256 is stored in Jacobian coordinates, so each encoding
//! costs an inversion: five per cent of a handshake. BoringSSL has no switch for it, so the linker leads its calls of
//! `EVP_marshal_public_key` here (`--wrap`, see `build.rs`). The bytes are the same as BoringSSL's. Without the linker's
//! help everything works as before, and costs what it did.

use boring::pkey::{PKey, Public};
use boring_sys as ffi;
use foreign_types::ForeignType;
use std::{cell::RefCell, ffi::c_int, ptr, slice};

/// So many keys are remembered by a thread: certificates in use, and clients' keys, which come and go.
const CAPACITY: usize = 16;

thread_local! {
    static ENCODINGS: RefCell<Encodings> = const { RefCell::new(Encodings { known: Vec::new(), next: 0 }) };
}

/// Encodings by the address of their key. Each entry owns a reference, so that no other key can get that address.
struct Encodings {
    known: Vec<Encoding>,
    /// The entry that the next new key replaces when all places are taken.
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
    /// BoringSSL's own, under the name that `--wrap` gives it.
    fn __real_EVP_marshal_public_key(cbb: *mut ffi::CBB, key: *const ffi::EVP_PKEY) -> c_int;
}

/// Appends the key as a `SubjectPublicKeyInfo` in DER (RFC 5280, section 4.1), as `EVP_marshal_public_key` does.
///
/// # Safety
/// As of BoringSSL's function: `cbb` is initialised, and `key` is live.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_EVP_marshal_public_key(cbb: *mut ffi::CBB, key: *const ffi::EVP_PKEY) -> c_int {
    let appended = ENCODINGS.try_with(|encodings| {
        let encodings = encodings.try_borrow().ok()?;
        let der = encodings.find(key)?;
        // SAFETY: the caller's, and the bytes are readable for their length.
        Some(unsafe { ffi::CBB_add_bytes(cbb, der.as_ptr(), der.len()) })
    });
    if let Ok(Some(status)) = appended {
        return status;
    }
    // SAFETY: the caller's. Flushed, so that its length can be asked for.
    let before = match unsafe { ffi::CBB_flush(cbb) } {
        // SAFETY: as above.
        1 => unsafe { ffi::CBB_len(cbb) },
        status => return status,
    };
    // SAFETY: the caller's.
    let status = unsafe { __real_EVP_marshal_public_key(cbb, key) };
    if status == 1 {
        // SAFETY: the real one has succeeded, so that it has appended to `cbb`, and all of it is written.
        unsafe { remember(cbb, before, key) };
    }
    status
}

/// Remembers what was appended to `cbb` behind its first `before` bytes, if it is worth it.
///
/// # Safety
/// `cbb` is initialised, flushed, and has at least `before` bytes; `key` is live.
unsafe fn remember(cbb: *const ffi::CBB, before: usize, key: *const ffi::EVP_PKEY) {
    // SAFETY: the caller's; keys are counted by reference behind a pointer to const too.
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
    // A thread that is about to end remembers nothing any more.
    let _ = ENCODINGS.try_with(|encodings| {
        if let Ok(mut encodings) = encodings.try_borrow_mut() {
            encodings.remember(Encoding { key, der });
        }
    });
}

/// Whether it is a key on a curve, and without its private half: a reference from here would let a private key live on.
///
/// # Safety
/// The key is live.
unsafe fn is_public_point(key: *const ffi::EVP_PKEY) -> bool {
    // SAFETY: the caller's. The kind is asked for first: a key of another kind would leave an error in the thread's
    // queue, where libssl would find it.
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

    /// Calls BoringSSL's function, by the name that libssl calls, behind two bytes of something else.
    fn marshal<T: HasPublic>(key: &PKey<T>) -> Vec<u8> {
        let mut cbb = MaybeUninit::uninit();
        // SAFETY: `CBB_init` initialises it, and whatever was allocated for it is freed at the end.
        unsafe {
            assert_eq!(ffi::CBB_init(cbb.as_mut_ptr(), 0), 1);
            assert_eq!(ffi::CBB_add_u16(cbb.as_mut_ptr(), 0x1234), 1);
            assert_eq!(ffi::EVP_marshal_public_key(cbb.as_mut_ptr(), key.as_ptr()), 1);
            assert_eq!(ffi::CBB_flush(cbb.as_mut_ptr()), 1);
            let bytes =
                slice::from_raw_parts(ffi::CBB_data(cbb.as_ptr()), ffi::CBB_len(cbb.as_ptr())).to_vec();
            ffi::CBB_cleanup(cbb.as_mut_ptr());
            assert_eq!(bytes[..2], [0x12, 0x34]);
            assert_eq!(ffi::ERR_peek_error(), 0, "libssl would take it for its own");
            bytes[2..].to_vec()
        }
    }

    fn key_pair() -> EcKey<Private> {
        let curve = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).expect("P-256 is known");
        EcKey::generate(&curve).expect("a key pair can be made")
    }

    fn public(pair: &EcKey<Private>) -> PKey<Public> {
        let public =
            EcKey::from_public_key(pair.group(), pair.public_key()).expect("the point is on the curve");
        PKey::from_ec_key(public).expect("it is a key")
    }

    #[test]
    fn a_public_point_is_encoded_once() {
        let key = public(&key_pair());
        // Another function of BoringSSL's, which the linker leads nowhere else.
        let expected = key.public_key_to_der().expect("it has an encoding");
        assert_eq!(
            (marshal(&key), known()),
            (expected.clone(), 1),
            "the linker has led BoringSSL's callers elsewhere"
        );
        assert_eq!((marshal(&key), known()), (expected, 1));
    }

    #[test]
    fn private_keys_and_other_kinds_are_not_remembered() {
        let pair = PKey::from_ec_key(key_pair()).expect("it is a key");
        assert_eq!(marshal(&pair), pair.public_key_to_der().expect("it has an encoding"));
        let rsa = PKey::from_rsa(Rsa::generate(2048).expect("a key pair can be made")).expect("it is a key");
        assert_eq!(marshal(&rsa), rsa.public_key_to_der().expect("it has an encoding"));
        assert_eq!(known(), 0);
    }

    #[test]
    fn new_keys_replace_old_ones() {
        for _ in 0..2 * CAPACITY {
            let key = public(&key_pair());
            let expected = key.public_key_to_der().expect("it has an encoding");
            assert_eq!((marshal(&key), marshal(&key)), (expected.clone(), expected));
        }
        assert_eq!(known(), CAPACITY);
    }
}
