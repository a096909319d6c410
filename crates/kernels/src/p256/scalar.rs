//! ECDH with BoringSSL, one operation at a time: for tiers without lanes, for the few scalars that lanes do not
//! support, and as the oracle of the tests.

use super::P256_BYTES;
use super::agreement::{P256_POINT_BYTES, P256Agreement, UNCOMPRESSED};
use super::modulus::parsed_scalar;
use boring_sys as ffi;
use std::ptr;
use zeroize::Zeroizing;

/// Computes the secret, if scalar and point are valid.
pub(crate) fn agree(op: &mut P256Agreement<'_>) {
    if parsed_scalar(op.scalar).is_none() || op.point[0] != UNCOMPRESSED {
        return;
    }
    let multiple = Point::parse(op.point).and_then(|point| point.times(op.scalar));
    let encoded = multiple.and_then(|multiple| multiple.encode());
    if let Some(x) = encoded.as_ref().and_then(|encoded| encoded.get(1..=P256_BYTES)) {
        op.secret.copy_from_slice(x);
        op.computed = true;
    }
}

/// Computes the public key of a scalar; zeros for one that is zero or not below the order.
pub(crate) fn public_key(scalar: &[u8; P256_BYTES], public_key: &mut [u8; P256_POINT_BYTES]) {
    let multiple = parsed_scalar(scalar).and_then(|_| Point::base_times(scalar));
    let encoded = multiple.and_then(|multiple| multiple.encode());
    *public_key = encoded.map_or([0; P256_POINT_BYTES], |encoded| *encoded);
}

/// BoringSSL point, whose memory is wiped when freed.
struct Point(*mut ffi::EC_POINT);

impl Point {
    fn new() -> Option<Self> {
        // SAFETY: the group is a constant.
        let point = unsafe { ffi::EC_POINT_new(ffi::EC_group_p256()) };
        (!point.is_null()).then_some(Self(point))
    }

    /// Parses a point; accepts only points on the curve.
    fn parse(bytes: &[u8; P256_POINT_BYTES]) -> Option<Self> {
        let point = Self::new()?;
        let (start, len, context) = (bytes.as_ptr(), bytes.len(), ptr::null_mut());
        // SAFETY: the point is live, and the bytes are readable.
        let parsed = unsafe { ffi::EC_POINT_oct2point(ffi::EC_group_p256(), point.0, start, len, context) };
        (parsed == 1).then_some(point)
    }

    fn times(&self, scalar: &[u8; P256_BYTES]) -> Option<Self> {
        let (result, number) = (Self::new()?, Number::new(scalar)?);
        let (none, context) = (ptr::null(), ptr::null_mut());
        // SAFETY: both points and the number are live.
        let ok =
            unsafe { ffi::EC_POINT_mul(ffi::EC_group_p256(), result.0, none, self.0, number.0, context) };
        (ok == 1).then_some(result)
    }

    fn base_times(scalar: &[u8; P256_BYTES]) -> Option<Self> {
        let (result, number) = (Self::new()?, Number::new(scalar)?);
        let (no_point, none, context) = (ptr::null(), ptr::null(), ptr::null_mut());
        // SAFETY: the point and the number are live.
        let ok =
            unsafe { ffi::EC_POINT_mul(ffi::EC_group_p256(), result.0, number.0, no_point, none, context) };
        (ok == 1).then_some(result)
    }

    /// Encodes the point; `None` for infinity.
    fn encode(&self) -> Option<Zeroizing<[u8; P256_POINT_BYTES]>> {
        let mut bytes = Zeroizing::new([0; P256_POINT_BYTES]);
        let form = ffi::point_conversion_form_t::POINT_CONVERSION_UNCOMPRESSED;
        let (start, len, context) = (bytes.as_mut_ptr(), bytes.len(), ptr::null_mut());
        // SAFETY: the point is live, and the bytes have the given length.
        let written =
            unsafe { ffi::EC_POINT_point2oct(ffi::EC_group_p256(), self.0, form, start, len, context) };
        (written == len).then_some(bytes)
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        // SAFETY: it is live, and not used again.
        unsafe {
            ffi::EC_POINT_free(self.0);
            ffi::ERR_clear_error();
        }
    }
}

/// BoringSSL number.
struct Number(*mut ffi::BIGNUM);

impl Number {
    fn new(bytes: &[u8; P256_BYTES]) -> Option<Self> {
        // SAFETY: the bytes have the given length.
        let number = unsafe { ffi::BN_bin2bn(bytes.as_ptr(), bytes.len(), ptr::null_mut()) };
        (!number.is_null()).then_some(Self(number))
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        // SAFETY: it is live, and not used again.
        unsafe { ffi::BN_clear_free(self.0) };
    }
}
