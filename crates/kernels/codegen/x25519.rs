//! Generates the AVX-512 IFMA kernels of X25519: the Montgomery ladder and the fixed-base comb, eight scalars at once.
//!
//! A field element is five digits of 52 bits, each a vector of eight lanes. `x25519_stream.rs` has the operations on
//! them, `docs/kernels/x25519.md` the bounds. The carry chain at the end of a multiplication is a long sequence of
//! short instructions; two independent operations, or two whole ladders, are therefore generated as two [`Stream`]s,
//! with separate registers, and merged line by line.

use crate::asm::Assembly;
use crate::x25519_step::{STATE, Step};
use crate::x25519_stream::{
    CONSTANTS, DIGITS, MINUS_ONE, ONE, Operand, Place, SPARE, Stream, TOP_BIT, Term, VECTOR, WORDS, at,
    broadcast, nth,
};

/// Prefix of all names.
const PREFIX: &str = "quadrille_x25519";
/// Number of additions of the comb, which has windows of five bits.
pub(crate) const WINDOWS: usize = 51;

/// Generates the kernels, followed by `table`: the text of the comb's table (see `x25519_table.rs`).
pub(crate) fn kernels(table: &str) -> String {
    let mut asm = Assembly::new(PREFIX);
    asm.export("multiply", multiply);
    asm.export("square", square);
    asm.export("ladder", ladder);
    asm.export("ladders", ladders);
    asm.export("comb", comb);
    asm.lines([".section .rodata", ".p2align 6"]);
    for constant in CONSTANTS {
        asm.place(constant.label);
        asm.lines(constant.values.iter().map(|value| format!(".quad {value}")));
    }
    asm.finish() + table + ".text\n"
}

/// Generates `(rdi out, rsi a, rdx b)`: out = a * b.
fn multiply(asm: &mut Assembly) {
    load_constants(asm);
    let mut stream = Stream::first();
    stream.multiply(("rdi", 0), ("rsi", 0), ("rdx", 0));
    asm.lines(stream.lines);
    asm.lines(["vzeroupper", "ret"]);
}

/// Generates `(rdi x, rsi count)`: squares x in place, `count` times. Each squaring depends on the previous one, so
/// the digits stay in registers.
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

/// Generates `(rdi state, rsi differences)`: 256 steps of the ladder, from bit 255 of the scalars, a zero, down to
/// bit 0.
///
/// The state is x1, x2, z2, x3, z3 and room for 15 more elements. `differences` are four vectors, the highest word
/// first, with a set bit where a bit of the scalar differs from the one above.
///
/// The doubled point is x2 : z2, the sum x3 : z3. The sum is symmetric in the two up to a sign that is squared away,
/// so there is no swap: only the operand of the next doubling is chosen.
fn ladder(asm: &mut Assembly) {
    let step = Step::new(0, "k1", WORDS[0]);
    load_constants(asm);
    let (word, next) = (asm.label(), asm.label());
    asm.line("mov r8d, 4");
    asm.place(&word);
    asm.lines([format!("vmovdqa64 {}, [rsi]", step.word), "mov ecx, 64".into()]);
    asm.place(&next);
    step.next_bit(asm);
    let [first, second] = [Stream::first, Stream::second];
    both(asm, first(), |s| step.sums(s), second(), |s| step.differences(s));
    both(asm, first(), |s| step.choose_a(s), second(), |s| step.choose_b(s));
    both(asm, first(), |s| step.da(s), second(), |s| step.aa(s));
    both(asm, first(), |s| step.cb(s), second(), |s| step.bb(s));
    both(asm, first(), |s| step.t_and_s(s), second(), |s| step.e(s));
    both(asm, first(), |s| step.tt(s), second(), |s| step.g(s));
    both(asm, first(), |s| step.x2(s), second(), |s| step.x3(s));
    both(asm, first(), |s| step.z3(s), second(), |s| step.z2(s));
    asm.lines(["dec ecx".to_owned(), format!("jnz {next}")]);
    asm.lines([format!("add rsi, {VECTOR}"), "dec r8d".into(), format!("jnz {word}")]);
    asm.lines(["kxorw k1, k1, k1", "vzeroupper", "ret"]);
}

/// Generates `(rdi states, rsi differences)`: two ladders, with consecutive states and consecutive groups of four
/// vectors of differences. The second ladder is half a step ahead, so that the carries of each overlap the products
/// of the other; its differences therefore begin with bit 254, and its computation after the last step is not used.
fn ladders(asm: &mut Assembly) {
    let steps = [Step::new(0, "k1", WORDS[0]), Step::new(STATE, "k2", WORDS[1])];
    load_constants(asm);
    let (word, next) = (asm.label(), asm.label());
    asm.lines(["kxorw k2, k2, k2", "mov r8d, 4"]);
    let mut stream = Stream::second();
    steps[1].first_half(&mut stream);
    asm.lines(stream.lines);
    asm.place(&word);
    asm.line(format!("vmovdqa64 {}, [rsi]", WORDS[0]));
    asm.line(format!("vmovdqa64 {}, {}", WORDS[1], at(("rsi", 4))));
    asm.line("mov ecx, 64");
    asm.place(&next);
    steps[0].next_bit(asm);
    let [first, second] = [Stream::first, Stream::second];
    both(asm, first(), |s| steps[0].first_half(s), second(), |s| steps[1].second_half(s));
    steps[1].next_bit(asm);
    both(asm, first(), |s| steps[0].second_half(s), second(), |s| steps[1].first_half(s));
    asm.lines(["dec ecx".to_owned(), format!("jnz {next}")]);
    asm.lines([format!("add rsi, {VECTOR}"), "dec r8d".into(), format!("jnz {word}")]);
    asm.lines(["kxorw k1, k1, k1", "kxorw k2, k2, k2", "vzeroupper", "ret"]);
}

/// Generates `(rdi state, rsi digits)`: the sum of digit_i 32^i B over 51 vectors of digits from -16 to 15, and of
/// 32^51 B.
///
/// The state is x, y, z, t in extended twisted Edwards coordinates and room for 12 more elements. The result is z + y
/// in place of x and z - y in place of t. The addition is that of Hisil, Wong, Carter and Dawson (2008), section 3.1,
/// with a = -1 and a second operand stored in the table as y + x, y - x and 2dxy.
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
    let [first, second] = [Stream::first, Stream::second];
    both(asm, first(), |s| s.subtract(lower, y, x), second(), |s| s.add(upper, y, x));
    both(asm, first(), |s| s.multiply(a, lower, minus), second(), |s| s.multiply(b, upper, plus));
    let e_and_h = |s: &mut Stream| {
        s.subtract(e, b, a);
        s.add(h, b, a);
    };
    both(asm, first(), |s| s.multiply(c, t, product), second(), e_and_h);
    both(asm, first(), |s| s.double_and(z, Term::Minus(c)), second(), |s| s.double_and(z, Term::Plus(c)));
    store_swapped_where_negative(asm, f, g);
    both(asm, first(), |s| s.multiply(x, e, f), second(), |s| s.multiply(y, g, h));
    both(asm, first(), |s| s.multiply(z, f, g), second(), |s| s.multiply(t, e, h));
    asm.lines([format!("add rsi, {VECTOR}"), format!("add rdx, {}", 3 * DIGITS * 2 * VECTOR)]);
    asm.lines(["dec ecx".to_owned(), format!("jnz {next}")]);
    both(asm, first(), |s| s.add(x, z, y), second(), |s| s.subtract(t, z, y));
    asm.lines(["kxorw k1, k1, k1", "kxorw k2, k2, k2", "kxorw k3, k3, k3", "vzeroupper", "ret"]);
}

/// Looks up the entry of the window at `rdx` for the digits at `rsi`. Negative digits, which k1 then marks, exchange
/// y + x and y - x; a zero takes the neutral element: 1, 1, 0. A digit of all 16 points is two vectors, from which
/// each lane takes its own by a permutation: no address depends on it.
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

/// Stores f and g, which the two streams have left in their columns, exchanged where the point is negative: its 2dxy,
/// and with it c, has the other sign.
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

/// Returns the elements of a state, which begins at `rdi`.
fn slots<const N: usize>() -> [Place; N] {
    std::array::from_fn(|i| ("rdi", i * DIGITS))
}

/// Generates two independent operations and merges them, in proportion to their lengths.
fn both(
    asm: &mut Assembly,
    mut one: Stream,
    generate_one: impl FnOnce(&mut Stream),
    mut two: Stream,
    generate_two: impl FnOnce(&mut Stream),
) {
    generate_one(&mut one);
    generate_two(&mut two);
    asm.merged(one.lines, two.lines);
}
