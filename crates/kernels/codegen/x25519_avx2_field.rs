//! Arithmetic modulo 2^255 - 19 for AVX2: four numbers at once, ten digits each of alternately 26 and 25 bits, a
//! vector per digit.
//!
//! `vpmuludq` multiplies 32 bits by 32. Sums and differences are therefore not carried before multiplication, and a
//! digit may be multiplied by 19 beforehand, which moves the part above 2^255 into its column
//! (`docs/kernels/x25519.md` has the bounds).

use crate::asm::Assembly;

/// Number of digits.
pub(crate) const DIGITS: usize = 10;
/// Size of a vector in bytes.
pub(crate) const VECTOR: usize = 32;

/// Location of a number in memory: a register, and an offset in vectors.
pub(crate) type Place = (&'static str, isize);

/// Registers of the multiplied digit, its double (or quadruple), and products. `ymm0` .. `ymm9` are the columns.
const ONCE: &str = "ymm10";
const MORE: &str = "ymm11";
pub(crate) const PRODUCTS: [&str; 3] = ["ymm12", "ymm13", "ymm14"];
/// 19 in every lane.
const NINETEEN: &str = "ymm15";

/// Constants, four times each, at these labels.
const EVEN_MASK: (&str, u64) = (".Lx25519_avx2_even_mask", (1 << 26) - 1);
const ODD_MASK: (&str, u64) = (".Lx25519_avx2_odd_mask", (1 << 25) - 1);
const A24: (&str, u64) = (".Lx25519_avx2_a24", 121_665);
pub(crate) const ONE: (&str, u64) = (".Lx25519_avx2_one", 1);
const NINETEENS: (&str, u64) = (".Lx25519_avx2_nineteen", 19);
/// Digits of 2p: the lowest, and the others at even and at odd positions.
const TWICE_P: [(&str, u64); 3] = [
    (".Lx25519_avx2_twice_p_lowest", (1 << 27) - 38),
    (".Lx25519_avx2_twice_p_even", (1 << 27) - 2),
    (".Lx25519_avx2_twice_p_odd", (1 << 26) - 2),
];

/// Writes the constants into the section under construction.
pub(crate) fn constants(asm: &mut Assembly) {
    let others = [EVEN_MASK, ODD_MASK, A24, ONE, NINETEENS];
    for (label, value) in TWICE_P.into_iter().chain(others) {
        asm.place(label);
        asm.lines([value; 4].map(|value| format!(".quad {value}")));
    }
}

/// Memory operand of a constant.
pub(crate) fn constant((label, _): (&str, u64)) -> String {
    format!("ymmword ptr [rip+{label}]")
}

/// Loads the register constants of a multiplication.
pub(crate) fn load_constants(asm: &mut Assembly) {
    asm.line(format!("vmovdqa {NINETEEN}, {}", constant(NINETEENS)));
}

pub(crate) fn digit((register, vectors): Place, i: usize) -> String {
    format!("ymmword ptr [{register}{:+}]", VECTOR as isize * (vectors + i as isize))
}

fn column(i: usize) -> String {
    format!("ymm{i}")
}

/// Computes out = a - b + 2p, not carried.
pub(crate) fn subtract(asm: &mut Assembly, out: Place, a: Place, b: Place) {
    for i in 0..DIGITS {
        let difference = column(i);
        asm.line(format!("vmovdqa {difference}, {}", digit(a, i)));
        asm.line(format!("vpaddq {difference}, {difference}, {}", twice_p(i)));
        asm.line(format!("vpsubq {difference}, {difference}, {}", digit(b, i)));
        asm.line(format!("vmovdqa {}, {difference}", digit(out, i)));
    }
}

/// Computes sum = a + b and difference = a - b + 2p, not carried.
pub(crate) fn add_and_subtract(asm: &mut Assembly, sum: Place, difference: Place, a: Place, b: Place) {
    for i in 0..DIGITS {
        let (more, less) = (column(2 * (i % 5)), column(2 * (i % 5) + 1));
        asm.line(format!("vmovdqa {more}, {}", digit(a, i)));
        asm.line(format!("vmovdqa {}, {}", PRODUCTS[i % 3], digit(b, i)));
        asm.line(format!("vpaddq {less}, {more}, {}", twice_p(i)));
        asm.line(format!("vpaddq {more}, {more}, {}", PRODUCTS[i % 3]));
        asm.line(format!("vpsubq {less}, {less}, {}", PRODUCTS[i % 3]));
        asm.line(format!("vmovdqa {}, {more}", digit(sum, i)));
        asm.line(format!("vmovdqa {}, {less}", digit(difference, i)));
    }
}

/// Returns digit `i` of 2p.
pub(crate) fn twice_p(i: usize) -> String {
    constant(TWICE_P[if i == 0 { 0 } else { 1 + i % 2 }])
}

/// Computes out = `other` in lanes where the highest bit of the vector in `word` is set, otherwise `usual`.
pub(crate) fn choose(asm: &mut Assembly, word: &str, out: Place, usual: Place, other: Place) {
    for i in 0..DIGITS {
        let chosen = column(i);
        asm.line(format!("vmovdqa {chosen}, {}", digit(usual, i)));
        asm.line(format!("vblendvpd {chosen}, {chosen}, {}, {word}", digit(other, i)));
        asm.line(format!("vmovdqa {}, {chosen}", digit(out, i)));
    }
}

/// Computes out = the digits of b from `first` on, 19 times each.
pub(crate) fn nineteenfold(asm: &mut Assembly, out: Place, b: Place, first: usize) {
    for i in first..DIGITS {
        let product = PRODUCTS[i % 3];
        asm.line(format!("vpmuludq {product}, {NINETEEN}, {}", digit(b, i)));
        asm.line(format!("vmovdqa {}, {product}", digit(out, i)));
    }
}

/// Computes out = a b, carried, where `nineteen` has b's digits except the lowest, 19 times each.
pub(crate) fn multiply(asm: &mut Assembly, out: Place, a: Place, b: Place, nineteen: Place) {
    for i in 0..DIGITS {
        asm.line(format!("vmovdqa {ONCE}, {}", digit(a, i)));
        // Digits at odd positions are half a bit above their nominal position: a product of two of them counts twice.
        if i % 2 == 1 {
            asm.line(format!("vpaddq {MORE}, {ONCE}, {ONCE}"));
        }
        for j in 0..DIGITS {
            let factor = if i % 2 == 1 && j % 2 == 1 { MORE } else { ONCE };
            let operand = digit(if i + j < DIGITS { b } else { nineteen }, j);
            accumulate(asm, (i + j) % DIGITS, i == 0, factor, &operand, j);
        }
    }
    carry(asm);
    store(asm, out);
}

/// Computes out = x^2, carried. `scratch` then holds x's upper digits, 19 times each.
pub(crate) fn square(asm: &mut Assembly, out: Place, x: Place, scratch: Place) {
    nineteenfold(asm, scratch, x, DIGITS / 2);
    for i in 0..DIGITS {
        // Each product except the squares of digits counts twice, and once more as in a multiplication.
        asm.line(format!("vmovdqa {ONCE}, {}", digit(x, i)));
        if i % 2 == 1 {
            asm.line(format!("vpaddq {ONCE}, {ONCE}, {ONCE}"));
        }
        asm.line(format!("vpaddq {MORE}, {ONCE}, {ONCE}"));
        for j in i..DIGITS {
            let factor = if j != i && (i % 2 == 0 || j % 2 == 1) { MORE } else { ONCE };
            let operand = digit(if i + j < DIGITS { x } else { scratch }, j);
            accumulate(asm, (i + j) % DIGITS, i == 0, factor, &operand, j);
        }
    }
    carry(asm);
    store(asm, out);
}

/// Computes out = a + 121665 b, carried.
pub(crate) fn add_small_multiple(asm: &mut Assembly, out: Place, a: Place, b: Place) {
    asm.line(format!("vmovdqa {ONCE}, {}", constant(A24)));
    for i in 0..DIGITS {
        let sum = column(i);
        asm.line(format!("vpmuludq {sum}, {ONCE}, {}", digit(b, i)));
        asm.line(format!("vpaddq {sum}, {sum}, {}", digit(a, i)));
    }
    carry(asm);
    store(asm, out);
}

fn accumulate(asm: &mut Assembly, to: usize, first: bool, factor: &str, operand: &str, turn: usize) {
    let (to, product) = (column(to), PRODUCTS[turn % 3]);
    if first {
        asm.line(format!("vpmuludq {to}, {factor}, {operand}"));
    } else {
        asm.line(format!("vpmuludq {product}, {factor}, {operand}"));
        asm.line(format!("vpaddq {to}, {to}, {product}"));
    }
}

/// Reduces the columns to 26 and 25 bits, and slightly more in the second one, by two chains at once.
fn carry(asm: &mut Assembly) {
    for from in [0, 4, 1, 5, 2, 6, 3, 7, 4, 8, 9, 0] {
        let (digit, next) = (column(from), column((from + 1) % DIGITS));
        let (bits, mask) = if from % 2 == 0 { (26, EVEN_MASK) } else { (25, ODD_MASK) };
        let carried = PRODUCTS[from % 3];
        asm.line(format!("vpsrlq {carried}, {digit}, {bits}"));
        asm.line(format!("vpand {digit}, {digit}, {}", constant(mask)));
        if from == DIGITS - 1 {
            // 19 = 1 + 2 + 16: the carry has more than 32 bits.
            asm.line(format!("vpaddq {MORE}, {carried}, {carried}"));
            asm.line(format!("vpsllq {ONCE}, {carried}, 4"));
            asm.line(format!("vpaddq {MORE}, {MORE}, {carried}"));
            asm.line(format!("vpaddq {next}, {next}, {ONCE}"));
            asm.line(format!("vpaddq {next}, {next}, {MORE}"));
        } else {
            asm.line(format!("vpaddq {next}, {next}, {carried}"));
        }
    }
}

fn store(asm: &mut Assembly, out: Place) {
    asm.lines((0..DIGITS).map(|i| format!("vmovdqa {}, {}", digit(out, i), column(i))));
}
