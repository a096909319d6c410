//! Generates the AVX2 kernels of X25519: the Montgomery ladder and the fixed-base comb, four scalars at once.
//!
//! They compute the same as those of `x25519.rs`, in the arithmetic of `x25519_avx2_field.rs`. Sixteen registers only
//! hold the columns of one multiplication, so nothing is merged here: the CPU overlaps the carries of one operation
//! with the products of the next. Products and squares are subroutines, so that a step of the ladder fits the cache
//! of decoded instructions of any CPU.

use crate::asm::Assembly;
use crate::x25519::WINDOWS;
use crate::x25519_avx2_field::{
    DIGITS, ONE, PRODUCTS, Place, VECTOR, add_and_subtract, add_small_multiple, choose, constant, constants,
    digit, load_constants, multiply, nineteenfold, square, subtract, twice_p,
};

/// Prefix of all names.
pub(crate) const PREFIX: &str = "quadrille_x25519_avx2";

/// Locations of subroutine operands: these registers point four vectors past the beginning, since offsets below 128
/// are one byte long.
const OUT: Place = ("r9", -BIAS);
const A: Place = ("r10", -BIAS);
const B: Place = ("r11", -BIAS);
const SCRATCH: Place = ("rdx", -BIAS);
const BIAS: isize = 4;

/// Generates the kernels, followed by `table`: the text of the comb's table (see `x25519_table.rs`).
pub(crate) fn kernels(table: &str) -> String {
    let mut asm = Assembly::new(PREFIX);
    asm.export("multiply", multiply_once);
    asm.export("square", square_repeatedly);
    asm.export("ladder", ladder);
    asm.export("comb", comb);
    asm.begin_subroutine("product");
    multiply(&mut asm, OUT, A, B, SCRATCH);
    asm.line("ret");
    asm.begin_subroutine("squared");
    square(&mut asm, OUT, A, SCRATCH);
    asm.line("ret");
    asm.lines([".section .rodata", ".p2align 6"]);
    constants(&mut asm);
    asm.finish() + table + ".text\n"
}

/// Generates `(rdi out, rsi a, rdx b, rcx scratch)`: out = a b; the scratch is one element.
fn multiply_once(asm: &mut Assembly) {
    load_constants(asm);
    nineteenfold(asm, ("rcx", 0), ("rdx", 0), 1);
    multiply(asm, ("rdi", 0), ("rsi", 0), ("rdx", 0), ("rcx", 0));
    asm.lines(["vzeroupper", "ret"]);
}

/// Generates `(rdi x, rsi count, rdx scratch)`: squares x in place, `count` times; the scratch is one element.
fn square_repeatedly(asm: &mut Assembly) {
    load_constants(asm);
    let next = asm.label();
    asm.place(&next);
    square(asm, ("rdi", 0), ("rdi", 0), ("rdx", 0));
    asm.lines(["dec rsi".to_owned(), format!("jnz {next}")]);
    asm.lines(["vzeroupper", "ret"]);
}

/// Generates `(rdi state, rsi differences)`: 256 steps of the ladder, on a state of twenty elements that begins with
/// x1, x2, z2, x3, z3; see `ladder` in `x25519.rs`.
fn ladder(asm: &mut Assembly) {
    let [x1, x2, z2, x3, z3, a, b, c, d, chosen_a, chosen_b, aa, bb, da, cb, x1_nineteen, scratch, bits] =
        slots();
    // Names of RFC 7748, in places that are free by then; g is AA + a24 E, and s, t are DA + CB and DA - CB.
    let [s, t, e, g, tt] = [a, b, c, d, chosen_a];
    let word = PRODUCTS[0];
    load_constants(asm);
    nineteenfold(asm, x1_nineteen, x1, 1);
    let (next_word, next) = (asm.label(), asm.label());
    asm.line("mov r8d, 4");
    asm.place(&next_word);
    asm.line(format!("vmovdqa {word}, {}", digit(("rsi", 0), 0)));
    asm.line(format!("vmovdqa {}, {word}", digit(bits, 0)));
    asm.line("mov ecx, 64");
    asm.place(&next);
    add_and_subtract(asm, a, b, x2, z2);
    add_and_subtract(asm, c, d, x3, z3);
    asm.line(format!("vmovdqa {word}, {}", digit(bits, 0)));
    choose(asm, word, chosen_a, a, c);
    choose(asm, word, chosen_b, b, d);
    asm.line(format!("vpaddq {word}, {word}, {word}"));
    asm.line(format!("vmovdqa {}, {word}", digit(bits, 0)));
    call_multiply(asm, da, d, a, scratch);
    call_multiply(asm, cb, c, b, scratch);
    call_square(asm, aa, chosen_a, scratch);
    call_square(asm, bb, chosen_b, scratch);
    add_and_subtract(asm, s, t, da, cb);
    subtract(asm, e, aa, bb);
    call_square(asm, tt, t, scratch);
    call_square(asm, x3, s, scratch);
    add_small_multiple(asm, g, aa, e);
    call_multiply(asm, x2, aa, bb, scratch);
    call_prepared(asm, z3, tt, x1, x1_nineteen);
    call_multiply(asm, z2, e, g, scratch);
    asm.lines(["dec ecx".to_owned(), format!("jnz {next}")]);
    asm.lines([format!("add rsi, {VECTOR}"), "dec r8d".into(), format!("jnz {next_word}")]);
    asm.lines(["vzeroupper", "ret"]);
}

/// Generates `(rdi state, rsi digits)`: the sum of digit_i 32^i B over 51 vectors of digits from -16 to 15, and of
/// 32^51 B, on a state of sixteen elements; see `comb` in `x25519.rs`.
fn comb(asm: &mut Assembly) {
    let [x, y, z, t, plus, minus, product, lower, upper, a, b, c, scratch] = slots();
    // Uses places that are free by then.
    let [e, h, f, g] = [lower, upper, plus, minus];
    load_constants(asm);
    asm.line(format!("lea rax, [rip+{PREFIX}_start]"));
    for (i, coordinate) in [x, y, z, t].into_iter().enumerate() {
        for j in 0..DIGITS {
            asm.line(format!("vpbroadcastq ymm0, qword ptr [rax+{}]", 8 * (i * DIGITS + j)));
            asm.line(format!("vmovdqa {}, ymm0", digit(coordinate, j)));
        }
    }
    asm.line(format!("lea rax, [rip+{PREFIX}_table]"));
    asm.line(format!("mov ecx, {WINDOWS}"));
    let next = asm.label();
    asm.place(&next);
    look_up(asm, [plus, minus, product]);
    add_and_subtract(asm, upper, lower, y, x);
    call_multiply(asm, a, lower, minus, scratch);
    call_multiply(asm, b, upper, plus, scratch);
    call_multiply(asm, c, t, product, scratch);
    add_and_subtract(asm, h, e, b, a);
    double(asm, z);
    add_and_subtract(asm, g, f, z, c);
    // The second operand is multiplied by 19, for which f is too large.
    call_multiply(asm, x, f, e, scratch);
    call_multiply(asm, z, f, g, scratch);
    call_multiply(asm, y, g, h, scratch);
    call_prepared(asm, t, e, h, scratch);
    asm.lines([format!("add rsi, {VECTOR}"), format!("add rax, {}", 3 * DIGITS * 2 * VECTOR)]);
    asm.lines(["dec ecx".to_owned(), format!("jnz {next}")]);
    add_and_subtract(asm, x, t, z, y);
    asm.lines(["vzeroupper", "ret"]);
}

/// Looks up the entry of the window at `rax` for the digits at `rsi`. Negative digits exchange y + x and y - x and
/// take 2p - 2dxy; a zero takes the neutral element: 1, 1, 0. A digit of eight points is a vector of 32-bit words,
/// from which each lane takes its own by a permutation: no address depends on it. The upper half of a lane is ignored
/// by multiplications.
fn look_up(asm: &mut Assembly, [plus, minus, product]: [Place; 3]) {
    let [index, negative, zero, upper] = ["ymm10", "ymm11", "ymm12", "ymm13"];
    asm.lines([
        format!("vmovdqa {index}, {}", digit(("rsi", 0), 0)),
        format!("vpxor {zero}, {zero}, {zero}"),
        format!("vpcmpgtq {negative}, {zero}, {index}"),
        format!("vpcmpeqq {zero}, {zero}, {index}"),
        format!("vpxor {index}, {index}, {negative}"),
        format!("vpsubq {index}, {index}, {negative}"),
        format!("vpsubq {index}, {index}, {}", constant(ONE)),
        format!("vpsllq {upper}, {index}, 60"),
    ]);
    let table = |coordinate: usize, i: usize| ("rax", (2 * (coordinate * DIGITS + i)) as isize);
    let take = |asm: &mut Assembly, out: &str, room: &str, coordinate: usize, i: usize| {
        asm.line(format!("vpermd {out}, {index}, {}", digit(table(coordinate, i), 0)));
        asm.line(format!("vpermd {room}, {index}, {}", digit(table(coordinate, i), 1)));
        asm.line(format!("vblendvpd {out}, {out}, {room}, {upper}"));
        asm.line(format!("vpandn {out}, {zero}, {out}"));
    };
    for i in 0..DIGITS {
        take(asm, "ymm0", "ymm2", 0, i);
        take(asm, "ymm1", "ymm3", 1, i);
        take(asm, "ymm4", "ymm5", 2, i);
        if i == 0 {
            asm.line(format!("vpand ymm2, {zero}, {}", constant(ONE)));
            asm.lines(["vpor ymm0, ymm0, ymm2", "vpor ymm1, ymm1, ymm2"]);
        }
        asm.lines([
            format!("vblendvpd ymm2, ymm0, ymm1, {negative}"),
            format!("vblendvpd ymm3, ymm1, ymm0, {negative}"),
            format!("vmovdqa ymm5, {}", twice_p(i)),
            "vpsubq ymm5, ymm5, ymm4".to_owned(),
            format!("vblendvpd ymm4, ymm4, ymm5, {negative}"),
            format!("vmovdqa {}, ymm2", digit(plus, i)),
            format!("vmovdqa {}, ymm3", digit(minus, i)),
            format!("vmovdqa {}, ymm4", digit(product, i)),
        ]);
    }
}

/// Computes x = 2 x, not carried.
fn double(asm: &mut Assembly, x: Place) {
    for i in 0..DIGITS {
        asm.line(format!("vmovdqa ymm{i}, {}", digit(x, i)));
        asm.line(format!("vpaddq ymm{i}, ymm{i}, ymm{i}"));
        asm.line(format!("vmovdqa {}, ymm{i}", digit(x, i)));
    }
}

/// Computes out = a b; the scratch then holds b's digits except the lowest, 19 times each.
fn call_multiply(asm: &mut Assembly, out: Place, a: Place, b: Place, scratch: Place) {
    nineteenfold(asm, scratch, b, 1);
    call_prepared(asm, out, a, b, scratch);
}

/// Like `call_multiply`, with the 19-fold digits already computed.
fn call_prepared(asm: &mut Assembly, out: Place, a: Place, b: Place, nineteen: Place) {
    let operands = [(OUT, out), (A, a), (B, b), (SCRATCH, nineteen)];
    operands.into_iter().for_each(|(register, place)| point(asm, register, place));
    asm.call("product");
}

/// Computes out = x^2.
fn call_square(asm: &mut Assembly, out: Place, x: Place, scratch: Place) {
    let operands = [(OUT, out), (A, x), (SCRATCH, scratch)];
    operands.into_iter().for_each(|(register, place)| point(asm, register, place));
    asm.call("squared");
}

fn point(asm: &mut Assembly, (register, _): Place, (base, vectors): Place) {
    asm.line(format!("lea {register}, [{base}+{}]", (vectors + BIAS) * VECTOR as isize));
}

/// Returns the elements of a state, which begins at `rdi`.
fn slots<const N: usize>() -> [Place; N] {
    std::array::from_fn(|i| ("rdi", (i * DIGITS) as isize))
}
