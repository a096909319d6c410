//! RSA with BoringSSL, one operation at a time: the tier for all CPUs, and the oracle of the tests.

use std::ptr;

use boring_sys as ffi;

use quadrille_rsa_numbers::{Components, KeyError, PrivateOperationError};

/// Key in BoringSSL's form. BoringSSL clears the memory when the key is freed.
pub(crate) struct ScalarKey(ptr::NonNull<ffi::RSA>);

// SAFETY: BoringSSL's RSA objects may be used from several threads after their fields are set; the fields are set in
// `new` alone, and the lazily computed Montgomery contexts are behind a lock of its own.
unsafe impl Send for ScalarKey {}
// SAFETY: as above.
unsafe impl Sync for ScalarKey {}

impl ScalarKey {
    /// Imports and checks a key.
    pub(crate) fn new(components: &Components<'_>) -> Result<Self, KeyError> {
        let key = Self::import(components);
        // A rejected key leaves entries in this thread's error queue, where the next caller of BoringSSL would see
        // them.
        // SAFETY: no arguments, touches the calling thread's queue only.
        unsafe { ffi::ERR_clear_error() };
        key.ok_or(KeyError::Inconsistent)
    }

    fn import(components: &Components<'_>) -> Option<Self> {
        let [n, e, p, q] = [components.n, components.e, components.p, components.q].map(Number::new);
        let [dp, dq, qinv] = [components.dp, components.dq, components.qinv].map(Number::new);
        let (n, e, p, q, dp, dq, qinv) = (n?, e?, p?, q?, dp?, dq?, qinv?);
        let d = private_exponent(&e, &p, &q)?;
        // SAFETY: all eight numbers are valid; the function copies them.
        let rsa = unsafe {
            ffi::RSA_new_private_key_large_e(
                n.get(),
                e.get(),
                d.get(),
                p.get(),
                q.get(),
                dp.get(),
                dq.get(),
                qinv.get(),
            )
        };
        let key = Self(ptr::NonNull::new(rsa)?);
        // SAFETY: the key is valid.
        (unsafe { ffi::RSA_check_key(key.0.as_ptr()) } == 1).then_some(key)
    }

    /// Computes output = input^d mod n; both are as long as the modulus. BoringSSL checks the result with the public
    /// exponent and rejects inputs from n upwards, which the caller has excluded.
    pub(crate) fn private_operation(
        &self,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), PrivateOperationError> {
        let mut written = 0;
        // SAFETY: the key is valid and is not changed by the call except for fields that BoringSSL locks; the buffers
        // have the lengths given.
        let ok = unsafe {
            ffi::RSA_sign_raw(
                self.0.as_ptr(),
                &mut written,
                output.as_mut_ptr(),
                output.len(),
                input.as_ptr(),
                input.len(),
                ffi::RSA_NO_PADDING,
            )
        };
        if ok == 1 && written == output.len() {
            return Ok(());
        }
        // SAFETY: as in `new`.
        unsafe { ffi::ERR_clear_error() };
        Err(PrivateOperationError::Fault)
    }
}

impl ScalarKey {
    /// Returns whether result^e = input mod n; both are as long as the modulus and below it.
    pub(crate) fn confirms(&self, input: &[u8], result: &[u8]) -> bool {
        let mut raised = vec![0; input.len()];
        let mut written = 0;
        // SAFETY: the key is valid and is not changed by the call except for fields that BoringSSL locks; the buffers
        // have the lengths given.
        let ok = unsafe {
            ffi::RSA_verify_raw(
                self.0.as_ptr(),
                &mut written,
                raised.as_mut_ptr(),
                raised.len(),
                result.as_ptr(),
                result.len(),
                ffi::RSA_NO_PADDING,
            )
        };
        // SAFETY: as in `new`.
        unsafe { ffi::ERR_clear_error() };
        ok == 1 && written == input.len() && raised == input
    }
}

impl Drop for ScalarKey {
    fn drop(&mut self) {
        // SAFETY: the key is valid and owned.
        unsafe { ffi::RSA_free(self.0.as_ptr()) };
    }
}

/// Computes d = e^-1 mod (p - 1)(q - 1), which BoringSSL requires although it is not used here.
fn private_exponent(e: &Number, p: &Number, q: &Number) -> Option<Number> {
    let (mut d, mut totient) = (Number::zero()?, Number::zero()?);
    let (mut p1, mut q1) = (Number::zero()?, Number::zero()?);
    // SAFETY: all numbers are valid and distinct; the context is freed below. The inverse modulo an even
    // number takes BoringSSL's constant-time path.
    unsafe {
        let context = ffi::BN_CTX_new();
        let ok = !context.is_null()
            && ffi::BN_sub(p1.get_mut(), p.get(), ffi::BN_value_one()) == 1
            && ffi::BN_sub(q1.get_mut(), q.get(), ffi::BN_value_one()) == 1
            && ffi::BN_mul(totient.get_mut(), p1.get(), q1.get(), context) == 1
            && ffi::BN_is_odd(totient.get()) == 0
            && !ffi::BN_mod_inverse(d.get_mut(), e.get(), totient.get(), context).is_null();
        ffi::BN_CTX_free(context);
        ok.then_some(d)
    }
}

/// BoringSSL number, cleared on drop.
struct Number(ptr::NonNull<ffi::BIGNUM>);

impl Number {
    fn new(bytes: &[u8]) -> Option<Self> {
        // SAFETY: the bytes are readable; a null destination requests a new number.
        let number = unsafe { ffi::BN_bin2bn(bytes.as_ptr(), bytes.len(), ptr::null_mut()) };
        ptr::NonNull::new(number).map(Self)
    }

    fn zero() -> Option<Self> {
        // SAFETY: no arguments.
        ptr::NonNull::new(unsafe { ffi::BN_new() }).map(Self)
    }

    fn get(&self) -> *const ffi::BIGNUM {
        self.0.as_ptr()
    }

    fn get_mut(&mut self) -> *mut ffi::BIGNUM {
        self.0.as_ptr()
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        // SAFETY: the number is valid and owned.
        unsafe { ffi::BN_clear_free(self.0.as_ptr()) };
    }
}

/// Computes x y mod n by BoringSSL, for tests of the kernels.
#[cfg(test)]
pub(crate) fn multiply_mod(x: &[u64], y: &[u64], n: &[u64]) -> quadrille_rsa_numbers::words::Secret {
    use quadrille_rsa_numbers::words;

    let number = |value: &[u64]| {
        let mut bytes = vec![0; 8 * value.len()];
        words::to_be_bytes(value, &mut bytes);
        Number::new(&bytes).expect("memory is available")
    };
    let (x, y, modulus) = (number(x), number(y), number(n));
    let mut product = Number::zero().expect("memory is available");
    let mut bytes = vec![0; 8 * n.len()];
    // SAFETY: all numbers are valid; the bytes have the length given.
    unsafe {
        let context = ffi::BN_CTX_new();
        assert_eq!(ffi::BN_mod_mul(product.get_mut(), x.get(), y.get(), modulus.get(), context), 1);
        assert_eq!(ffi::BN_bn2bin_padded(bytes.as_mut_ptr(), bytes.len(), product.get()), 1);
        ffi::BN_CTX_free(context);
    }
    words::from_be_bytes(&bytes, n.len()).expect("a residue fits")
}
