//! Compression of the polynomials of a ciphertext: Compress_10 and Compress_4, and the packing of their bits (FIPS
//! 203, section 4.2.1).

use super::ML_KEM_CIPHERTEXT_BYTES;
use super::ntt::{Polynomials, Q, reduce};
use super::vector::{VECTOR_BYTES, Vector};

/// Bytes of one polynomial of u.
const U_BYTES: usize = 320;

/// Ciphertexts of all lanes.
pub(crate) type Ciphertexts = [[u8; ML_KEM_CIPHERTEXT_BYTES]; 8];

/// Writes u, in the lower three words of each lane, and v, in the highest. Coefficients are below 2^15 - q in
/// absolute value.
#[inline(always)]
pub(crate) fn compress<V: Vector>(polynomials: &Polynomials<V>, ciphertexts: &mut Ciphertexts) {
    // Of 32 coefficients, u takes 20 words and v 8: five and two lanes.
    let mut u = [[V::zero(); 40]; 3];
    let mut v = [V::zero(); 16];
    for (i, coefficients) in polynomials.as_chunks::<32>().0.iter().enumerate() {
        let mut tens = [V::zero(); 20];
        let mut fours = [V::zero(); 8];
        for (j, eight) in coefficients.as_chunks::<8>().0.iter().enumerate() {
            let (mut ten_bits, mut four_bits) = ([V::zero(); 8], [V::zero(); 8]);
            for (i, x) in eight.iter().enumerate() {
                let x = canonical(*x);
                (ten_bits[i], four_bits[i]) = (compress_10(x), compress_4(x));
            }
            tens[5 * j..][..5].copy_from_slice(&pack_10_bits(&ten_bits));
            fours[2 * j..][..2].copy_from_slice(&pack_4_bits(&four_bits));
        }
        for (j, words) in tens.as_chunks().0.iter().enumerate() {
            let [u0, u1, u2, _] = V::transpose_words(*words);
            (u[0][5 * i + j], u[1][5 * i + j], u[2][5 * i + j]) = (u0, u1, u2);
        }
        for (j, words) in fours.as_chunks().0.iter().enumerate() {
            let [_, _, _, v3] = V::transpose_words(*words);
            v[2 * i + j] = v3;
        }
    }
    for (i, u) in u.iter().enumerate() {
        write(u, U_BYTES * i, ciphertexts);
    }
    write(&v, 3 * U_BYTES, ciphertexts);
}

/// Writes the lanes' bytes, 64 for each eight vectors.
#[inline(always)]
fn write<V: Vector>(vectors: &[V], at: usize, ciphertexts: &mut Ciphertexts) {
    for (i, rows) in vectors.as_chunks().0.iter().enumerate() {
        for (row, ciphertext) in V::transpose_lanes(*rows).into_iter().zip(&mut *ciphertexts) {
            let to = ciphertext[at + VECTOR_BYTES * i..].first_chunk_mut().expect("long enough");
            row.store(to);
        }
    }
}

/// Reduces modulo q to the range 0 to q - 1.
#[inline(always)]
pub(super) fn canonical<V: Vector>(x: V) -> V {
    let x = reduce(x);
    x.plus(x.shift_right_signed::<15>().and(V::words(Q)))
}

/// Computes 2^10 x / q, rounded, modulo 2^10.
#[inline(always)]
pub(super) fn compress_10<V: Vector>(x: V) -> V {
    // With n = 2^10 x + (q - 1) / 2, the result is the quotient of n and q. n / 64 is an integer, and 20158 / 2^26 is
    // so close to 1 / q from below that the quotient is right or too small by one. The remainder, below 2 q, shows
    // which.
    let q = V::words(Q);
    let sixty_fourth = x.shift_left::<4>().plus(V::words(26));
    let quotient = sixty_fourth.times_high_unsigned(V::words(20158)).shift_right::<4>();
    let remainder = sixty_fourth.shift_left::<6>().minus(quotient.times_low(q));
    let too_small = V::words(Q - 1).minus(remainder).shift_right::<15>();
    quotient.plus(too_small).and(V::words(0x3ff))
}

/// Computes 2^4 x / q, rounded, modulo 2^4.
#[inline(always)]
pub(super) fn compress_4<V: Vector>(x: V) -> V {
    // The quotient of n = 2^4 x + (q - 1) / 2 and q: n is below 2^16, where n 40318 / 2^27 is less than 1 / q above n /
    // q.
    let n = x.shift_left::<4>().plus(V::words((Q - 1) / 2));
    n.times_high_unsigned(V::words(40318_u16 as i16)).shift_right::<11>().and(V::words(15))
}

/// Packs eight numbers of ten bits into five words.
#[inline(always)]
fn pack_10_bits<V: Vector>([a, b, c, d, e, f, g, h]: &[V; 8]) -> [V; 5] {
    [
        a.or(b.shift_left::<10>()),
        b.shift_right::<6>().or(c.shift_left::<4>()).or(d.shift_left::<14>()),
        d.shift_right::<2>().or(e.shift_left::<8>()),
        e.shift_right::<8>().or(f.shift_left::<2>()).or(g.shift_left::<12>()),
        g.shift_right::<4>().or(h.shift_left::<6>()),
    ]
}

/// Packs eight numbers of four bits into two words.
#[inline(always)]
fn pack_4_bits<V: Vector>([a, b, c, d, e, f, g, h]: &[V; 8]) -> [V; 2] {
    [
        a.or(b.shift_left::<4>()).or(c.shift_left::<8>()).or(d.shift_left::<12>()),
        e.or(f.shift_left::<4>()).or(g.shift_left::<8>()).or(h.shift_left::<12>()),
    ]
}
