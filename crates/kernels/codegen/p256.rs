//! Generates the AVX-512 IFMA kernels of P-256: multiplications modulo p and n, and the fixed-base comb, eight
//! scalars at once. `p256_multiple.rs` generates the kernels for arbitrary points.
//!
//! A number is five digits of 52 bits in Montgomery form, each a vector of eight lanes. `p256_stream.rs` has the
//! operations on them, `docs/kernels/p256.md` the bounds. Two independent operations are generated as two
//! [`Stream`]s, with separate registers, and merged line by line.

use crate::asm::Assembly;
use crate::p256_multiple;
use crate::p256_stream::{CONSTANTS, DIGIT_BITS, FOUR_P, INDEX, MINUS_ONE, ONE, Stream, THRICE_P, quadword};
use crate::x25519_stream::{DIGITS, Place, VECTOR, at, broadcast, nth};

/// Prefix of all names.
const PREFIX: &str = "quadrille_p256";
/// Bits of a window, the highest of which is the sign; at least 5.
pub(crate) const WINDOW_BITS: usize = 6;
/// Number of windows of a scalar.
pub(crate) const WINDOWS: usize = 256usize.div_ceil(WINDOW_BITS);
/// Number of points of a window, which are the odd multiples.
pub(crate) const ENTRIES: usize = 1 << (WINDOW_BITS - 1);
/// Number of quadwords of an entry: x, y, and the tag.
pub(crate) const ROWS: usize = 2 * DIGITS + 1;

/// Generates the kernels, followed by `table`: the text of the comb's table (see `p256_table.rs`).
pub(crate) fn kernels(table: &str) -> String {
    let mut asm = Assembly::new(PREFIX);
    asm.export("multiply", |asm| multiply(asm, Stream::multiply));
    asm.export("multiply_modulo_n", |asm| multiply(asm, Stream::multiply_modulo_n));
    asm.export("comb_begin", comb_begin);
    asm.export("comb_add", comb_add);
    p256_multiple::write(&mut asm);
    asm.lines([".section .rodata", ".p2align 6"]);
    for constant in CONSTANTS {
        asm.place(constant.label);
        asm.lines(constant.values.iter().map(|value| format!(".quad {value}")));
    }
    asm.finish() + table + ".text\n"
}

/// Generates `(rdi out, rsi a, rdx b)`: out = a * b / R.
fn multiply(asm: &mut Assembly, operation: fn(&mut Stream, Place, Place, Place)) {
    load_constants(asm);
    let mut stream = Stream::first();
    operation(&mut stream, ("rdi", 0), ("rsi", 0), ("rdx", 0));
    asm.lines(stream.lines);
    asm.lines(["vzeroupper", "ret"]);
}

/// State of the comb: the sum so far as x / z^2, y / z^3, z^2, the sum of tags, and temporaries.
struct State {
    x: Place,
    y: Place,
    z: Place,
    zz: Place,
    tags: Place,
    entry_x: Place,
    entry_y: Place,
    u: Place,
    t: Place,
    s: Place,
    h: Place,
    w: Place,
    r: Place,
    hh: Place,
    v: Place,
    hhh: Place,
    fall: Place,
    minus_y: Place,
}

/// Masks of lanes with a positive entry, and of lanes with a negated entry.
pub(crate) const SIGNS: [&str; 2] = ["k1", "k2"];
/// Masks of lanes with an entry in the upper half of all entries, of the lower half, and so on; as [`DIGIT_BITS`].
pub(crate) const HALVES: [&str; 3] = ["k3", "k4", "k5"];

/// Generates `(rdi state, rsi digits)`: the entries of the first window.
fn comb_begin(asm: &mut Assembly) {
    let state = State::new();
    load_constants(asm);
    asm.line(format!("lea rdx, [rip+{PREFIX}_table]"));
    look_up(asm, &state);
    let mut stream = Stream::first();
    stream.negate_unless(state.y, state.entry_y, SIGNS[0]);
    asm.lines(stream.lines);
    for k in 0..DIGITS {
        asm.lines([
            format!("vmovdqa64 zmm0, {}", nth(state.entry_x, k)),
            format!("vmovdqa64 {}, zmm0", nth(state.x, k)),
            format!("vpbroadcastq zmm1, {}", quadword(ONE, k)),
            format!("vmovdqa64 {}, zmm1", nth(state.z, k)),
            format!("vmovdqa64 {}, zmm1", nth(state.zz, k)),
        ]);
    }
    finish(asm);
}

/// Generates `(rdi state, rsi digits, rdx offset, ecx count)`: adds the entries of `count` windows, the first of
/// which is `offset` bytes into the table.
///
/// With (x2, y2) for the entry, which is negated by negating s:
///
/// ```text
///   u = x2 z^2      t = z z^2       s = y2 t        h = u - x        w = -u - x       r = s - y
///   x' = r^2 + h^2 w                y' = r (x h^2 - x') - y h^3      z' = z h
/// ```
fn comb_add(asm: &mut Assembly) {
    let state = State::new();
    let State { x, y, z, zz, entry_x, entry_y, u, t, s, h, w, r, hh, v, hhh, fall, minus_y, .. } = state;
    load_constants(asm);
    asm.line(format!("lea rax, [rip+{PREFIX}_table]"));
    asm.line("add rdx, rax");
    let next = asm.label();
    asm.place(&next);
    look_up(asm, &state);
    both(asm, |one| one.multiply(u, entry_x, zz), |two| two.multiply(t, z, zz));
    let h_and_w = |two: &mut Stream| {
        two.sum(h, THRICE_P, &[u], &[x]);
        two.sum(w, FOUR_P, &[], &[u, x]);
    };
    both(asm, |one| one.multiply(s, entry_y, t), h_and_w);
    both(asm, |one| one.square(hh, h), |two| two.signed_difference(r, [THRICE_P, FOUR_P], s, y, SIGNS));
    both(asm, |one| one.multiply(hhh, h, hh), |two| two.multiply(v, x, hh));
    both(asm, |one| one.square_and_product(x, r, [hh, w]), |two| two.multiply(z, z, h));
    let factors = |one: &mut Stream| {
        one.sum(fall, THRICE_P, &[v], &[x]);
        one.sum(minus_y, THRICE_P, &[], &[y]);
        one.products(y, [r, fall], [minus_y, hhh]);
    };
    both(asm, factors, |two| two.square(zz, z));
    asm.lines([format!("add rsi, {VECTOR}"), format!("add rdx, {}", 8 * ROWS * ENTRIES)]);
    asm.lines(["dec ecx".to_owned(), format!("jnz {next}")]);
    finish(asm);
}

/// Looks up the entry of the window at `rdx` for the digits at `rsi`, and the sum of tags. A digit's highest bit is
/// one for positive multiples; the other bits are the index, all inverted for negative ones. An entry's quadword of
/// all points of a window is some vectors, from which each lane takes its own by permutations and blends: no address
/// depends on it.
fn look_up(asm: &mut Assembly, state: &State) {
    let [positive, negative] = SIGNS;
    let halves: &[&str] = &HALVES[..WINDOW_BITS - 5];
    let sign = broadcast(DIGIT_BITS, WINDOW_BITS - 5);
    asm.lines([
        format!("vmovdqa64 {INDEX}, [rsi]"),
        format!("vptestmq {positive}, {INDEX}, {sign}"),
        format!("vptestnmq {negative}, {INDEX}, {sign}"),
        format!("vpxorq {INDEX}{{{negative}}}, {INDEX}, {}", broadcast(MINUS_ONE, 0)),
    ]);
    for (bit, half) in halves.iter().enumerate() {
        asm.line(format!("vptestmq {half}, {INDEX}, {}", broadcast(DIGIT_BITS, bit)));
    }
    let vectors = ENTRIES / 8;
    for row in 0..ROWS {
        // Two vectors hold sixteen entries.
        let mut found: Vec<String> = (0..vectors / 2).map(|i| format!("zmm{}", row % 2 * 8 + i)).collect();
        for (i, register) in found.iter().enumerate() {
            let from = row * vectors + 2 * i;
            asm.line(format!("vmovdqa64 {register}, {}", at(("rdx", from))));
            asm.line(format!("vpermt2q {register}, {INDEX}, {}", at(("rdx", from + 1))));
        }
        for half in halves {
            for pair in found.chunks(2) {
                asm.line(format!("vmovdqa64 {}{{{half}}}, {}", pair[0], pair[1]));
            }
            found = found.into_iter().step_by(2).collect();
        }
        match row {
            0..DIGITS => asm.line(format!("vmovdqa64 {}, {}", nth(state.entry_x, row), found[0])),
            DIGITS..ROWS if row + 1 < ROWS => {
                asm.line(format!("vmovdqa64 {}, {}", nth(state.entry_y, row - DIGITS), found[0]));
            }
            _ => asm.lines([
                format!("vmovdqa64 zmm16, {}", nth(state.tags, 0)),
                format!("vpaddq zmm16{{{positive}}}, zmm16, {}", found[0]),
                format!("vpsubq zmm16{{{negative}}}, zmm16, {}", found[0]),
                format!("vmovdqa64 {}, zmm16", nth(state.tags, 0)),
            ]),
        }
    }
}

impl State {
    /// Returns the state at `rdi`.
    fn new() -> Self {
        let slots: [Place; 18] = std::array::from_fn(|i| ("rdi", i * DIGITS));
        let [x, y, z, zz, tags, entry_x, entry_y, u, t, s, h, w, r, hh, v, hhh, fall, minus_y] = slots;
        Self { x, y, z, zz, tags, entry_x, entry_y, u, t, s, h, w, r, hh, v, hhh, fall, minus_y }
    }
}

pub(crate) fn load_constants(asm: &mut Assembly) {
    for constant in CONSTANTS {
        if let Some(register) = constant.register {
            asm.line(format!("vpbroadcastq {register}, qword ptr [rip+{}]", constant.label));
        }
    }
}

pub(crate) fn finish(asm: &mut Assembly) {
    asm.lines(SIGNS.iter().chain(&HALVES).map(|mask| format!("kxorw {mask}, {mask}, {mask}")));
    asm.lines(["vzeroupper", "ret"]);
}

/// Generates two independent operations and merges them, in proportion to their lengths.
pub(crate) fn both(asm: &mut Assembly, one: impl FnOnce(&mut Stream), two: impl FnOnce(&mut Stream)) {
    let (mut first, mut second) = (Stream::first(), Stream::second());
    one(&mut first);
    two(&mut second);
    asm.merged(first.lines, second.lines);
}
