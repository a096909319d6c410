//! Generates the AVX-512 IFMA kernels of X25519: the Montgomery ladder and the fixed-base comb, eight scalars at once.
//!
//! A field element is five digits of 52 bits, each a vector of eight lanes. `x25519_stream.rs` has the operations on them,
//! `docs/kernels/x25519.md` the bounds. The carry chain that ends a multiplication is a long sequence of short
//! instructions: so two operations that do not depend on each other are generated as two [`Stream`]s, with registers of
//! their own, and merged line by line.

use crate::asm::Assembly;
use crate::x25519_stream::{
    CONSTANTS, DIGITS, MINUS_ONE, ONE, Operand, Place, SPARE, Stream, TOP_BIT, Term, VECTOR, WORD, at,
    broadcast, nth,
};

/// What every name begins with.
const PREFIX: &str = "quadrille_x25519";
/// Additions of the comb, whose windows have five bits.
pub(crate) const WINDOWS: usize = 51;

/// The kernels and, after them, `table`: the text of the comb's table (see `x25519_table.rs`).
pub(crate) fn kernels(table: &str) -> String {
    let mut asm = Assembly::new(PREFIX);
    asm.export("multiply", multiply);
    asm.export("square", square);
    asm.export("ladder", ladder);
    asm.export("comb", comb);
    asm.lines([".section .rodata", ".p2align 6"]);
    for constant in CONSTANTS {
        asm.place(constant.label);
        asm.lines(constant.values.iter().map(|value| format!(".quad {value}")));
    }
    asm.finish() + table + ".text\n"
}

/// `(rdi out, rsi a, rdx b)`: out = a * b.
fn multiply(asm: &mut Assembly) {
    load_constants(asm);
    let mut stream = Stream::first();
    stream.multiply(("rdi", 0), ("rsi", 0), ("rdx", 0));
    asm.lines(stream.lines);
    asm.lines(["vzeroupper", "ret"]);
}

/// `(rdi x, rsi count)`: squares x in place, `count` times. Each squaring waits for the one before: so the digits stay
/// in registers.
fn square(asm: &mut Assembly) {
    const KEPT: usize = 16;
    load_constants(asm);
    asm.lines((0..DIGITS).map(|i| format!("vmovdqa64 zmm{}, {}", KEPT + i, at(("rdi", i)))));
    let next = asm.label();
    asm.place(&next);
    let mut stream = Stream::first();
    stream.square_of(&Operand::Registers(KEPT));
    asm.lines(stream.lines);
    asm.lines((0..DIGITS).map(|i| format!("vmovdqa64 zmm{}, zmm{i}", KEPT + i)));
    asm.lines(["dec rsi".to_owned(), format!("jnz {next}")]);
    let mut stream = Stream::first();
    stream.store_clean(("rdi", 0));
    asm.lines(stream.lines);
    asm.lines(["vzeroupper", "ret"]);
}

/// `(rdi state, rsi differences)`: 255 steps of the ladder, from bit 254 of the scalars down to bit 0.
///
/// The state is x1, x2, z2, x3, z3 and room for 15 more elements. `differences` are four vectors, the highest word first,
/// whose bits say whether a bit of the scalar differs from the one above; bit 254 is the top bit of the first.
///
/// The point that was doubled is x2 : z2, the sum x3 : z3. The sum is symmetric in the two up to a sign that is squared
/// away, so nothing is swapped: only the operand of the next doubling is chosen.
fn ladder(asm: &mut Assembly) {
    let [x1, x2, z2, x3, z3, a, b, c, d, chosen_a, chosen_b, aa, bb, da, cb, e, g, s, t, tt] = slots();
    load_constants(asm);
    let (word, step) = (asm.label(), asm.label());
    asm.lines(["mov ecx, 63", "mov r8d, 4"]);
    asm.place(&word);
    asm.line(format!("vmovdqa64 {WORD}, [rsi]"));
    asm.place(&step);
    asm.line(format!("vptestmq k1, {WORD}, {}", broadcast(TOP_BIT, 0)));
    asm.line(format!("vpaddq {WORD}, {WORD}, {WORD}"));
    both(
        asm,
        |one| {
            one.add(a, x2, z2);
            one.subtract(b, x2, z2);
        },
        |two| {
            two.add(c, x3, z3);
            two.subtract(d, x3, z3);
        },
    );
    both(asm, |one| one.choose(chosen_a, a, c), |two| two.choose(chosen_b, b, d));
    both(asm, |one| one.multiply(da, d, a), |two| two.square(aa, chosen_a));
    both(asm, |one| one.multiply(cb, c, b), |two| two.square(bb, chosen_b));
    both(
        asm,
        |one| {
            one.subtract(t, da, cb);
            one.add(s, da, cb);
        },
        |two| two.subtract(e, aa, bb),
    );
    both(asm, |one| one.square(tt, t), |two| two.add_small_multiple(g, aa, e));
    both(asm, |one| one.multiply(x2, aa, bb), |two| two.square(x3, s));
    both(asm, |one| one.multiply(z3, x1, tt), |two| two.multiply(z2, e, g));
    asm.lines(["dec ecx".to_owned(), format!("jnz {step}")]);
    asm.lines([format!("add rsi, {VECTOR}"), "mov ecx, 64".into(), "dec r8d".into(), format!("jnz {word}")]);
    asm.lines(["kxorw k1, k1, k1", "vzeroupper", "ret"]);
}

/// `(rdi state, rsi digits)`: the sum of digit_i 32^i B over 51 vectors of digits from -16 to 15, and of 32^51 B.
///
/// The state is x, y, z, t in extended twisted Edwards coordinates and room for 12 more elements. It leaves z + y in place
/// of x and z - y in place of t. The addition is that of Hisil, Wong, Carter and Dawson (2008), section 3.1, with a = -1
/// and a second operand of which the table holds y + x, y - x and 2dxy.
fn comb(asm: &mut Assembly) {
    let [x, y, z, t, plus, minus, product, lower, upper, a, b, c, e, f, g, h] = slots();
    load_constants(asm);
    asm.line(format!("lea rax, [rip+{PREFIX}_start]"));
    for (i, coordinate) in [x, y, z, t].into_iter().enumerate() {
        for digit in 0..DIGITS {
            asm.line(format!("vpbroadcastq zmm0, qword ptr [rax+{}]", 8 * (i * DIGITS + digit)));
            asm.line(format!("vmovdqa64 {}, zmm0", nth(coordinate, digit)));
        }
    }
    asm.line(format!("lea rdx, [rip+{PREFIX}_table]"));
    asm.line(format!("mov ecx, {WINDOWS}"));
    let next = asm.label();
    asm.place(&next);
    look_up(asm, [plus, minus, product]);
    both(asm, |one| one.subtract(lower, y, x), |two| two.add(upper, y, x));
    both(asm, |one| one.multiply(a, lower, minus), |two| two.multiply(b, upper, plus));
    both(
        asm,
        |one| one.multiply(c, t, product),
        |two| {
            two.subtract(e, b, a);
            two.add(h, b, a);
        },
    );
    both(asm, |one| one.double_and(z, Term::Minus(c)), |two| two.double_and(z, Term::Plus(c)));
    store_swapped_where_negative(asm, f, g);
    both(asm, |one| one.multiply(x, e, f), |two| two.multiply(y, g, h));
    both(asm, |one| one.multiply(z, f, g), |two| two.multiply(t, e, h));
    asm.lines([format!("add rsi, {VECTOR}"), format!("add rdx, {}", 3 * DIGITS * 2 * VECTOR)]);
    asm.lines(["dec ecx".to_owned(), format!("jnz {next}")]);
    both(asm, |one| one.add(x, z, y), |two| two.subtract(t, z, y));
    asm.lines(["kxorw k1, k1, k1", "kxorw k2, k2, k2", "kxorw k3, k3, k3", "vzeroupper", "ret"]);
}

/// The entry of the window at `rdx` for the digits at `rsi`. Negative digits, which k1 then marks, exchange y + x and y - x;
/// a zero takes the neutral element: 1, 1, 0. A digit of all 16 points is two vectors, from which each lane takes its
/// own by a permutation: no address depends on it.
fn look_up(asm: &mut Assembly, [plus, minus, product]: [Place; 3]) {
    let [index, one, first, second] = SPARE;
    asm.lines([
        format!("vmovdqa64 {index}, [rsi]"),
        format!("vptestmq k1, {index}, {}", broadcast(TOP_BIT, 0)),
        format!("vptestmq k2, {index}, {index}"),
        format!("vptestnmq k3, {index}, {index}"),
        format!("vpabsq {index}, {index}"),
        format!("vpaddq {index}, {index}, {}", broadcast(MINUS_ONE, 0)),
        format!("vpbroadcastq {one}, qword ptr [rip+{}]", ONE.label),
    ]);
    for i in 0..3 * DIGITS {
        asm.line(format!("vmovdqa64 zmm{i}, {}", at(("rdx", 2 * i))));
        asm.line(format!("vpermt2q zmm{i}{{k2}}{{z}}, {index}, {}", at(("rdx", 2 * i + 1))));
    }
    asm.lines([0, DIGITS].map(|lowest| format!("vmovdqa64 zmm{lowest}{{k3}}, {one}")));
    for i in 0..DIGITS {
        asm.lines([
            format!("vpblendmq {first}{{k1}}, zmm{i}, zmm{}", DIGITS + i),
            format!("vpblendmq {second}{{k1}}, zmm{}, zmm{i}", DIGITS + i),
            format!("vmovdqa64 {}, {first}", nth(plus, i)),
            format!("vmovdqa64 {}, {second}", nth(minus, i)),
            format!("vmovdqa64 {}, zmm{}", nth(product, i), 2 * DIGITS + i),
        ]);
    }
}

/// Stores f and g, which the two streams have left in their columns, exchanged where the point is negative: its 2dxy, and
/// with it c, has the other sign.
fn store_swapped_where_negative(asm: &mut Assembly, f: Place, g: Place) {
    let [_, _, first, second] = SPARE;
    let (one, two) = (Stream::first(), Stream::second());
    for i in 0..DIGITS {
        let (one, two) = (one.column(i), two.column(i));
        asm.lines([
            format!("vpblendmq {first}{{k1}}, {one}, {two}"),
            format!("vpblendmq {second}{{k1}}, {two}, {one}"),
            format!("vmovdqa64 {}, {first}", nth(f, i)),
            format!("vmovdqa64 {}, {second}", nth(g, i)),
        ]);
    }
}

fn load_constants(asm: &mut Assembly) {
    for constant in CONSTANTS {
        if let Some(register) = constant.register {
            asm.line(format!("vpbroadcastq {register}, qword ptr [rip+{}]", constant.label));
        }
    }
}

/// The elements of a state, which begins at `rdi`.
fn slots<const N: usize>() -> [Place; N] {
    std::array::from_fn(|i| ("rdi", i * DIGITS))
}

/// Generates two operations that do not depend on each other and merges them, in proportion to their lengths.
fn both(asm: &mut Assembly, one: impl FnOnce(&mut Stream), two: impl FnOnce(&mut Stream)) {
    let mut streams = [Stream::first(), Stream::second()];
    one(&mut streams[0]);
    two(&mut streams[1]);
    let [one, two] = streams.map(|stream| stream.lines);
    let (longer, shorter) = if one.len() < two.len() { (two, one) } else { (one, two) };
    let mut written = 0;
    for (i, line) in longer.iter().enumerate() {
        asm.line(line);
        let due = (i + 1) * shorter.len() / longer.len();
        asm.lines(&shorter[written..due]);
        written = due;
    }
}
