//! Polynomials sampled from seeds: the matrix A, and s1 and s2 (FIPS 204, algorithms 30 to 33).
//!
//! A is public. The branches of `sample_small` depend on the bytes that it rejects, which are independent of those
//! that it keeps, and on their places; it runs once a key.

use super::kernels::Kernels;
use super::ntt::Matrix;
use super::parameters::Parameters;
use super::polynomial::{N, Polynomial, Q};
use super::sponge::{RATE_128, RATE_256, State};
use super::vector::STATES;
use zeroize::Zeroize;

/// Samples A from its seed, with a column of zeros to its right.
pub(super) fn expand_matrix<K: Kernels>(kernels: K, parameters: &Parameters, seed: &[u8; 32]) -> Matrix {
    let mut matrix = Matrix::new(parameters.k, parameters.l + 1);
    let places = (0..parameters.k * parameters.l).map(|i| (i / parameters.l, i % parameters.l));
    let places: Vec<(usize, usize)> = places.collect();
    for places in places.chunks(STATES) {
        let mut entries = [Polynomial::ZERO; STATES];
        let seeds = places.iter().map(|(row, column)| seed_with(seed, &[*column as u8, *row as u8]));
        let seeds: Vec<[u8; 34]> = seeds.collect();
        sample(kernels, RATE_128, &seeds, &mut entries, sample_uniform);
        for ((row, column), entry) in places.iter().zip(&mut entries) {
            entry.centre();
            matrix.set(*row, *column, &entry.transposed());
        }
    }
    matrix
}

/// Samples s1 and then s2 from their seed.
pub(super) fn expand_small<K: Kernels>(
    kernels: K,
    parameters: &Parameters,
    seed: &[u8; 64],
) -> Vec<Polynomial> {
    let mut polynomials = vec![Polynomial::ZERO; parameters.k + parameters.l];
    let sample_small = if parameters.eta == 2 { sample_small::<2> } else { sample_small::<4> };
    for (i, polynomials) in polynomials.chunks_mut(STATES).enumerate() {
        let numbers = (STATES * i..).take(polynomials.len());
        let mut seeds: Vec<[u8; 66]> = numbers.map(|n| seed_with(seed, &(n as u16).to_le_bytes())).collect();
        sample(kernels, RATE_256, &seeds, polynomials, sample_small);
        seeds.zeroize();
    }
    polynomials
}

fn seed_with<const LEN: usize>(seed: &[u8], suffix: &[u8]) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    let (first, last) = bytes.split_at_mut(seed.len());
    first.copy_from_slice(seed);
    last.copy_from_slice(suffix);
    bytes
}

/// Appends the coefficients that bytes yield, until the polynomial is complete. The number of coefficients comes last.
type Sample = fn(&[u8], &mut Polynomial, &mut usize);

/// Samples a polynomial from the output for each seed, block by block.
fn sample<K: Kernels, const LEN: usize>(
    kernels: K,
    rate: usize,
    seeds: &[[u8; LEN]],
    polynomials: &mut [Polynomial],
    sample: Sample,
) {
    let mut states = State::ZERO;
    for (state, seed) in seeds.iter().enumerate() {
        states.absorb_short(state, seed, rate);
    }
    let mut counts = [0; STATES];
    let mut block = [0; 8 * RATE_128];
    while counts[..seeds.len()].iter().any(|count| *count < N) {
        kernels.keccak(&mut states);
        for state in 0..seeds.len() {
            states.squeeze(state, &mut block[..8 * rate]);
            sample(&block[..8 * rate], &mut polynomials[state], &mut counts[state]);
        }
    }
    block.zeroize();
    states.0.as_flattened_mut().zeroize();
}

/// `RejNTTPoly`: numbers of 23 bits below q.
fn sample_uniform(bytes: &[u8], polynomial: &mut Polynomial, count: &mut usize) {
    for [a, b, c] in bytes.as_chunks().0 {
        let number = i32::from(*a) | i32::from(*b) << 8 | i32::from(*c & 0x7f) << 16;
        if number < Q && *count < N {
            polynomial.set(*count, number);
            *count += 1;
        }
    }
}

/// `RejBoundedPoly`: numbers from -ETA to ETA.
fn sample_small<const ETA: i32>(bytes: &[u8], polynomial: &mut Polynomial, count: &mut usize) {
    let bound = if ETA == 2 { 15 } else { 9 };
    for half in bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]).map(i32::from) {
        if half < bound && *count < N {
            // Modulo 5, without a division.
            let number = if ETA == 2 { half - 5 * ((205 * half) >> 10) } else { half };
            polynomial.set(*count, ETA - number);
            *count += 1;
        }
    }
}
