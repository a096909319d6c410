//! Polynomials modulo q and x^256 + 1 in memory, in blocks of 16 coefficients.

/// FIPS 204, table 1.
pub(crate) const Q: i32 = 8_380_417;
/// Number of coefficients of a polynomial.
pub(crate) const N: usize = 256;
/// Number of coefficients of a block.
pub(crate) const BLOCK: usize = 16;
/// Number of blocks of a polynomial.
pub(crate) const BLOCKS: usize = N / BLOCK;

/// Coefficients of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Block(pub(crate) [i32; BLOCK]);

/// Coefficients of a polynomial, the constant one first; or its transform, in the order of [`ntt`](super::ntt::ntt).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Polynomial(pub(crate) [Block; BLOCKS]);

impl Polynomial {
    pub(crate) const ZERO: Self = Self([Block([0; BLOCK]); BLOCKS]);

    pub(crate) fn get(&self, i: usize) -> i32 {
        self.0[i / BLOCK].0[i % BLOCK]
    }

    pub(crate) fn set(&mut self, i: usize, coefficient: i32) {
        self.0[i / BLOCK].0[i % BLOCK] = coefficient;
    }

    pub(crate) fn coefficients(&self) -> impl Iterator<Item = i32> + '_ {
        self.0.iter().flat_map(|block| block.0)
    }

    pub(crate) fn coefficients_mut(&mut self) -> impl Iterator<Item = &mut i32> {
        self.0.iter_mut().flat_map(|block| &mut block.0)
    }

    /// Returns the 16 x 16 numbers transposed: converts transforms between the standard's order and ours.
    pub(crate) fn transposed(&self) -> Self {
        let mut transposed = Self::ZERO;
        for i in 0..N {
            transposed.set(BLOCK * (i % BLOCK) + i / BLOCK, self.get(i));
        }
        transposed
    }

    /// Reduces every coefficient modulo q to the nearest number to zero, in constant time.
    pub(crate) fn centre(&mut self) {
        for x in self.coefficients_mut() {
            *x = centred(i64::from(*x));
        }
    }

    /// Reduces coefficients between -q and q to numbers from 0 to q - 1, in constant time.
    pub(crate) fn make_canonical(&mut self) {
        for x in self.coefficients_mut() {
            *x += (*x >> 31) & Q;
        }
    }
}

/// Returns the number modulo q nearest to zero, without a branch or a division. The number is below 2^34 in absolute
/// value.
fn centred(x: i64) -> i32 {
    // 2^40 / q, rounded: the quotient is right or next to it.
    const RECIPROCAL: i64 = (1 << 40) / Q as i64;
    let mut x = x - ((x * RECIPROCAL) >> 40) * i64::from(Q);
    for _ in 0..2 {
        x -= i64::from(Q) & ((i64::from(Q / 2) - x) >> 63);
    }
    x as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centred_numbers_are_the_nearest() {
        let q = i64::from(Q);
        let near = |x: i64| (x - 3..=x + 3).chain([-x, x / 2, -x / 2]);
        for x in [0, q / 2, q, 3 * q / 2, 9 * q, 1 << 31, 1 << 33].into_iter().flat_map(near) {
            let found = i64::from(centred(x));
            assert!((x - found) % q == 0 && found.abs() <= q / 2, "{x} became {found}");
        }
    }
}
