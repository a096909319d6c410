//! Generates the kernels for multiples of arbitrary points on P-256: doublings, additions, and windows of both.
//!
//! A point is x / z^2, v / (2 z^3): v, which is 2y, saves the doubling a halving and costs the addition nothing. A
//! doubling yields the point's negative, which suffices: a window has four of them, and the sign of y is not used.

use crate::asm::Assembly;
use crate::p256::{HALVES, SIGNS, both, finish, load_constants};
use crate::p256_stream::{
    FIVE_P, FOUR_P, INDEX, MINUS_ONE, ONE, OWN_DIGIT_BITS, Stream, THRICE_P, TWICE_P, quadword,
};
use crate::x25519_stream::{DIGITS, Place, VECTOR, broadcast, nth};

/// Bits of a window, the highest of which is the sign.
const WINDOW_BITS: usize = 4;
/// Number of points of a lane's table: 1, 3 .. 15 times its point, as x and v with z = 1.
const ENTRIES: usize = 1 << (WINDOW_BITS - 1);
/// Position of the sign in [`OWN_DIGIT_BITS`].
const SIGN: usize = WINDOW_BITS - 1;

/// Appends the functions.
pub(crate) fn write(asm: &mut Assembly) {
    asm.begin_subroutine("doubling");
    doubling(asm);
    asm.line("ret");
    asm.begin_subroutine("addition");
    addition(asm);
    asm.line("ret");
    asm.export("double", |asm| alone(asm, "doubling"));
    asm.export("add", |asm| alone(asm, "addition"));
    asm.export("windows_begin", windows_begin);
    asm.export("windows_add", windows_add);
}

/// State of all functions, at `rdi`: a point with its z^2, another one with z = 1, and temporaries.
struct State {
    x: Place,
    v: Place,
    z: Place,
    zz: Place,
    entry_x: Place,
    entry_v: Place,
    /// Twice the addition's h, the factor of z.
    h2: Place,
    room: [Place; 9],
}

impl State {
    fn new() -> Self {
        let slots: [Place; 16] = std::array::from_fn(|i| ("rdi", i * DIGITS));
        let [x, v, z, zz, entry_x, entry_v, h2, room @ ..] = slots;
        Self { x, v, z, zz, entry_x, entry_v, h2, room }
    }
}

/// Generates `(rdi state)`: one subroutine, with positive entries only.
fn alone(asm: &mut Assembly, subroutine: &str) {
    load_constants(asm);
    let [positive, negative] = SIGNS;
    asm.line(format!("kxorw {negative}, {negative}, {negative}"));
    asm.line(format!("kxnorw {positive}, {positive}, {positive}"));
    asm.call(subroutine);
    finish(asm);
}

/// Computes minus twice the point:
///
/// ```text
///   m = 3 (x - z^2) (x + z^2)      g = v^2      s = x g
///   x' = m^2 - 2s                  v' = 2m (x' - s) + g^2      z' = v z
/// ```
fn doubling(asm: &mut Assembly) {
    let State { x, v, z, zz, room, .. } = State::new();
    let [low, high, third, g, s, m, mm, e, _] = room;
    let factors = |one: &mut Stream| {
        one.sum(low, TWICE_P, &[x], &[zz]);
        one.plain_sum(high, &[x, zz]);
        one.multiply(third, low, high);
    };
    both(asm, factors, |two| two.square(g, v));
    let slope = |two: &mut Stream| {
        two.plain_sum(m, &[third, third, third]);
        two.square(mm, m);
    };
    both(asm, |one| one.multiply(s, x, g), slope);
    let new_x = |one: &mut Stream| {
        one.reduced_sum(x, THRICE_P, &[mm], &[s, s]);
        one.sum(e, FOUR_P, &[x, x], &[s, s]);
    };
    both(asm, new_x, |two| two.multiply(z, v, z));
    both(asm, |one| one.square_and_product(v, g, [m, e]), |two| two.square(zz, z));
}

/// Computes the sum with the entry (x2, v2), which is negated by negating t:
///
/// ```text
///   u = x2 z^2      t = v2 z z^2      h = u - x      i = (2h)^2      j = h i      w = x i      r = t - v
///   x' = r^2 - j - 2w                 v' = 2r (w - x') - 2 v j       z' = 2 z h
/// ```
fn addition(asm: &mut Assembly) {
    let State { x, v, z, zz, entry_x, entry_v, h2, room } = State::new();
    let [u, t, h, i, j, r, rr, w, e] = room;
    both(asm, |one| one.multiply(u, entry_x, zz), |two| two.multiply(t, z, zz));
    let differences = |two: &mut Stream| {
        two.sum(h, TWICE_P, &[u], &[x]);
        two.sum(h2, FOUR_P, &[u, u], &[x, x]);
        two.square(i, h2);
    };
    both(asm, |one| one.multiply(t, entry_v, t), differences);
    let slope = |one: &mut Stream| {
        one.signed_difference(r, [FIVE_P; 2], t, v, SIGNS);
        one.square(rr, r);
    };
    both(asm, slope, |two| two.multiply(j, h, i));
    both(asm, |one| one.multiply(w, x, i), |two| two.multiply(z, z, h2));
    let (minus_v, twice_j) = (u, t);
    let point = |one: &mut Stream| {
        one.reduced_sum(x, FIVE_P, &[rr], &[j, w, w]);
        one.sum(e, FOUR_P, &[w, w], &[x, x]);
        one.sum(minus_v, FIVE_P, &[], &[v]);
        one.plain_sum(twice_j, &[j, j]);
        one.products(v, [r, e], [minus_v, twice_j]);
    };
    both(asm, point, |two| two.square(zz, z));
}

/// Generates `(rdi state, rsi digits, rdx table)`: the entries of the highest window, which are positive.
fn windows_begin(asm: &mut Assembly) {
    let State { x, v, z, zz, entry_x, entry_v, .. } = State::new();
    load_constants(asm);
    look_up(asm);
    for k in 0..DIGITS {
        asm.lines([
            format!("vmovdqa64 zmm0, {}", nth(entry_x, k)),
            format!("vmovdqa64 {}, zmm0", nth(x, k)),
            format!("vmovdqa64 zmm1, {}", nth(entry_v, k)),
            format!("vmovdqa64 {}, zmm1", nth(v, k)),
            format!("vpbroadcastq zmm2, {}", quadword(ONE, k)),
            format!("vmovdqa64 {}, zmm2", nth(z, k)),
            format!("vmovdqa64 {}, zmm2", nth(zz, k)),
        ]);
    }
    finish(asm);
}

/// Generates `(rdi state, rsi digits, rdx table, ecx count)`: for each of `count` windows doublings, and the addition
/// of its entry.
fn windows_add(asm: &mut Assembly) {
    load_constants(asm);
    let next = asm.label();
    asm.place(&next);
    for _ in 0..WINDOW_BITS {
        asm.call("doubling");
    }
    look_up(asm);
    asm.call("addition");
    asm.line(format!("add rsi, {VECTOR}"));
    asm.lines(["dec ecx".to_owned(), format!("jnz {next}")]);
    finish(asm);
}

/// Looks up the entries of the lanes' tables at `rdx` for the digits at `rsi`. A digit's highest bit is one for
/// positive multiples; the other bits are the index, all inverted for negative ones. The whole table is read: no
/// address depends on a digit.
fn look_up(asm: &mut Assembly) {
    let State { entry_x, entry_v, .. } = State::new();
    let [positive, negative] = SIGNS;
    let sign = broadcast(OWN_DIGIT_BITS, SIGN);
    asm.lines([
        format!("vmovdqa64 {INDEX}, [rsi]"),
        format!("vptestmq {positive}, {INDEX}, {sign}"),
        format!("vptestnmq {negative}, {INDEX}, {sign}"),
        format!("vpxorq {INDEX}{{{negative}}}, {INDEX}, {}", broadcast(MINUS_ONE, 0)),
    ]);
    for (bit, half) in HALVES.iter().enumerate() {
        asm.line(format!("vptestmq {half}, {INDEX}, {}", broadcast(OWN_DIGIT_BITS, bit)));
    }
    let [odd, second, fourth] = HALVES;
    for row in 0..2 * DIGITS {
        let found: [String; ENTRIES / 2] = std::array::from_fn(|i| format!("zmm{}", row % 4 * 4 + i));
        for (i, register) in found.iter().enumerate() {
            let entry = |j: usize| nth(("rdx", 2 * DIGITS * j), row);
            asm.line(format!("vmovdqa64 {register}, {}", entry(2 * i)));
            asm.line(format!("vmovdqa64 {register}{{{odd}}}, {}", entry(2 * i + 1)));
        }
        let [a, b, c, d] = found;
        let out = if row < DIGITS { nth(entry_x, row) } else { nth(entry_v, row - DIGITS) };
        asm.lines([
            format!("vmovdqa64 {a}{{{second}}}, {b}"),
            format!("vmovdqa64 {c}{{{second}}}, {d}"),
            format!("vmovdqa64 {a}{{{fourth}}}, {c}"),
            format!("vmovdqa64 {out}, {a}"),
        ]);
    }
}
