//! ECDH operations on P-256.

use super::P256_BYTES;
use super::modulus::{Number, P, from_bytes, subtract};
use std::fmt;

/// Length of a point in bytes: 4, x and y (SEC 1, section 2.3.3, without compression).
pub const P256_POINT_BYTES: usize = 1 + 2 * P256_BYTES;

/// First byte of an uncompressed point.
pub(super) const UNCOMPRESSED: u8 = 4;

/// ECDH on P-256 in a batch: the secret of a scalar and a point (SP 800-56A, section 5.7.1.2).
pub struct P256Agreement<'a> {
    pub(super) scalar: &'a [u8; P256_BYTES],
    pub(super) point: &'a [u8; P256_POINT_BYTES],
    pub(super) secret: &'a mut [u8; P256_BYTES],
    pub(super) computed: bool,
}

impl<'a> P256Agreement<'a> {
    /// Creates an operation for [`Lanes::agree_p256`](crate::Lanes::agree_p256), which stores the x-coordinate of the
    /// point's multiple in `secret`. All numbers are big-endian.
    pub fn new(
        scalar: &'a [u8; P256_BYTES],
        point: &'a [u8; P256_POINT_BYTES],
        secret: &'a mut [u8; P256_BYTES],
    ) -> Self {
        Self { scalar, point, secret, computed: false }
    }

    /// Returns whether `secret` holds the secret. If not, it is unchanged: the point is not on the curve, or not in
    /// uncompressed form, or the scalar is zero or not below the group's order.
    pub fn is_computed(&self) -> bool {
        self.computed
    }

    /// Returns the coordinates, if they are below p. Does not check whether the point is on the curve.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn coordinates(&self) -> Option<[Number; 2]> {
        let (form, coordinates) = self.point.split_first()?;
        let (coordinates, _) = coordinates.as_chunks();
        let [x, y] = coordinates else { return None };
        let coordinates = [x, y].map(from_bytes);
        let below = |number| subtract(number, &P.words).1 != 0;
        (*form == UNCOMPRESSED && coordinates.iter().all(below)).then_some(coordinates)
    }
}

impl fmt::Debug for P256Agreement<'_> {
    /// Does not show scalar, point or secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("P256Agreement").field("computed", &self.computed).finish_non_exhaustive()
    }
}
