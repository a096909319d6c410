//! Arithmetic of P-256 on eight lanes, as lines of assembly: Montgomery multiplication with R = 2^260, modulo the
//! field's prime p and modulo the group's order n, and sums.
//!
//! ```text
//! product:  columns c0 .. c9  =  sums of low halves (column i + j) and of high halves (column i + j + 1)
//! reduce:   for i in 0 .. 5:  c_i .. c_(i+5)  +=  m times the modulus, m such that c_i becomes a multiple of 2^52;
//!                             c_(i+1) += c_i >> 52
//!           carry c5 -> c9, which are the result
//! ```
//!
//! p = -1 modulo 2^96, so m is c_i itself, and p + 1 = 2^96 + 2^192 - 2^224 + 2^256 has few bits. The bounds are argued in
//! `docs/kernels/p256.md`.

use crate::x25519_stream::{Constant, DIGITS, Place, broadcast, in_memory, in_register, nth};

/// Registers not used by a stream during a computation.
pub(crate) const INDEX: &str = "zmm27";

const P1: &str = "zmm28";
const P3: &str = "zmm29";
const P4: &str = "zmm30";
const MASK_52: &str = "zmm31";

pub(crate) const MINUS_ONE: Constant = in_memory(".Lquadrille_p256_minus_one", &[u64::MAX]);
/// One in Montgomery form: 2^260 mod p.
pub(crate) const ONE: Constant = in_memory(
    ".Lquadrille_p256_one",
    &[0x10, 0xf_0000_0000_0000, 0xf_ffff_ffff_ffff, 0xf_feff_ffff_ffff, 0xf_ffff],
);
pub(crate) const TWICE_P: Constant = in_memory(
    ".Lquadrille_p256_twice_p",
    &[0xf_ffff_ffff_fffe, 0x1fff_ffff_ffff, 0, 0x20_0000_0000, 0x1_ffff_fffe_0000],
);
pub(crate) const THRICE_P: Constant = in_memory(
    ".Lquadrille_p256_thrice_p",
    &[0xf_ffff_ffff_fffd, 0x2fff_ffff_ffff, 0, 0x30_0000_0000, 0x2_ffff_fffd_0000],
);
pub(crate) const FOUR_P: Constant = in_memory(
    ".Lquadrille_p256_four_p",
    &[0xf_ffff_ffff_fffc, 0x3fff_ffff_ffff, 0, 0x40_0000_0000, 0x3_ffff_fffc_0000],
);
pub(crate) const FIVE_P: Constant = in_memory(
    ".Lquadrille_p256_five_p",
    &[0xf_ffff_ffff_fffb, 0x4fff_ffff_ffff, 0, 0x50_0000_0000, 0x4_ffff_fffb_0000],
);
/// Bits of a window's digit that select the half, quarter and so on of the table, the highest last.
pub(crate) const DIGIT_BITS: Constant = in_memory(".Lquadrille_p256_digit_bits", &[16, 32, 64]);
/// Bits of a window's digit for per-lane tables, followed by the sign.
pub(crate) const OWN_DIGIT_BITS: Constant = in_memory(".Lquadrille_p256_own_digit_bits", &[1, 2, 4, 8]);
const N: Constant = in_memory(
    ".Lquadrille_p256_n",
    &[0x9_cac2_fc63_2551, 0xa_da71_79e8_4f3b, 0xf_ffff_ffbc_e6fa, 0xf_ffff_ffff, 0xffff_ffff_0000],
);
/// -1 / n mod 2^52
const N_INVERSE: Constant = in_memory(".Lquadrille_p256_n_inverse", &[0x1_c8aa_ee00_bc4f]);

pub(crate) const CONSTANTS: [Constant; 14] = [
    MINUS_ONE,
    ONE,
    TWICE_P,
    THRICE_P,
    FOUR_P,
    FIVE_P,
    DIGIT_BITS,
    OWN_DIGIT_BITS,
    N,
    N_INVERSE,
    // Non-zero digits of (p + 1) / 2^52.
    in_register(".Lquadrille_p256_p1", &[1 << 44], P1),
    in_register(".Lquadrille_p256_p3", &[1 << 36], P3),
    in_register(".Lquadrille_p256_p4", &[(1 << 48) - (1 << 16)], P4),
    in_register(".Lquadrille_p256_mask_52", &[(1 << 52) - 1], MASK_52),
];

/// Lines of one operation: ten registers of columns, and three for operands and carries.
pub(crate) struct Stream {
    base: usize,
    pub(crate) lines: Vec<String>,
}

impl Stream {
    pub(crate) fn first() -> Self {
        Self { base: 0, lines: Vec::new() }
    }

    pub(crate) fn second() -> Self {
        Self { base: 13, lines: Vec::new() }
    }

    /// Computes out = a * b / R mod p, in clean digits: the bits above their 52 are zero.
    pub(crate) fn multiply(&mut self, out: Place, a: Place, b: Place) {
        self.clear();
        self.add_product(a, b);
        self.reduce();
        self.store_clean(out);
    }

    /// Computes out = a^2 / R mod p, in clean digits.
    pub(crate) fn square(&mut self, out: Place, a: Place) {
        self.clear();
        self.add_square(a);
        self.reduce();
        self.store_clean(out);
    }

    /// Computes out = (a^2 + b * c) / R mod p, in clean digits.
    pub(crate) fn square_and_product(&mut self, out: Place, a: Place, [b, c]: [Place; 2]) {
        self.clear();
        self.add_square(a);
        self.add_product(b, c);
        self.reduce();
        self.store_clean(out);
    }

    /// Computes out = (a * b + c * d) / R mod p, in clean digits.
    pub(crate) fn products(&mut self, out: Place, [a, b]: [Place; 2], [c, d]: [Place; 2]) {
        self.clear();
        self.add_product(a, b);
        self.add_product(c, d);
        self.reduce();
        self.store_clean(out);
    }

    /// Computes out = a * b / R mod n, in clean digits.
    pub(crate) fn multiply_modulo_n(&mut self, out: Place, a: Place, b: Place) {
        self.clear();
        self.add_product(a, b);
        self.reduce_modulo_n();
        self.store_clean(out);
    }

    /// Computes out = bias + the terms of plus - the terms of minus, which are all clean; the result is not clean,
    /// and is for multiplications, which read 52 bits of a digit. The sum must not be negative.
    pub(crate) fn sum(&mut self, out: Place, bias: Constant, plus: &[Place], minus: &[Place]) {
        self.add_terms(Some(bias), plus, minus);
        self.carry_signed();
        self.store(out);
    }

    /// Computes out = the sum of the terms, which are clean; the result is not clean.
    pub(crate) fn plain_sum(&mut self, out: Place, terms: &[Place]) {
        self.add_terms(None, terms, &[]);
        self.carry_signed();
        self.store(out);
    }

    /// Like [`sum`](Self::sum), in clean digits, and below 2^256 (1 + 2^-27) if the sum is below 16p: the multiple of
    /// p given by the bits above 256 is subtracted.
    pub(crate) fn reduced_sum(&mut self, out: Place, bias: Constant, plus: &[Place], minus: &[Place]) {
        self.add_terms(Some(bias), plus, minus);
        let (multiple, part) = (self.register(11), self.register(12));
        let highest = self.column(DIGITS - 1);
        self.line(format!("vpsraq {multiple}, {highest}, 48"));
        // p = 2^256 - 2^224 + 2^192 + 2^96 - 1
        for (operation, k, shift) in
            [("vpsubq", 4, 48), ("vpaddq", 4, 16), ("vpsubq", 3, 36), ("vpsubq", 1, 44)]
        {
            let c = self.column(k);
            self.line(format!("vpsllq {part}, {multiple}, {shift}"));
            self.line(format!("{operation} {c}, {c}, {part}"));
        }
        let lowest = self.column(0);
        self.line(format!("vpaddq {lowest}, {lowest}, {multiple}"));
        self.carry_signed();
        for k in 0..DIGITS - 1 {
            self.clean(k);
        }
        self.store(out);
    }

    fn add_terms(&mut self, bias: Option<Constant>, plus: &[Place], minus: &[Place]) {
        for k in 0..DIGITS {
            let (c, plus) = match bias {
                Some(bias) => (self.load_constant(bias, k), plus),
                None => (self.load(k, plus[0], k), &plus[1..]),
            };
            for place in plus {
                self.line(format!("vpaddq {c}, {c}, {}", nth(*place, k)));
            }
            for place in minus {
                self.line(format!("vpsubq {c}, {c}, {}", nth(*place, k)));
            }
        }
    }

    /// Computes out = bias + b - a, or the other bias - b - a in the lanes of `negative`; `positive` are the others.
    pub(crate) fn signed_difference(
        &mut self,
        out: Place,
        [bias, other]: [Constant; 2],
        b: Place,
        a: Place,
        [positive, negative]: [&str; 2],
    ) {
        for k in 0..DIGITS {
            let c = self.load_constant(bias, k);
            if other.label != bias.label {
                self.line(format!("vpbroadcastq {c}{{{negative}}}, {}", quadword(other, k)));
            }
            let b = self.load(10, b, k);
            self.line(format!("vpsubq {c}, {c}, {}", nth(a, k)));
            self.line(format!("vpaddq {c}{{{positive}}}, {c}, {b}"));
            self.line(format!("vpsubq {c}{{{negative}}}, {c}, {b}"));
        }
        self.carry_signed();
        self.store(out);
    }

    /// Computes out = a, or 3p - a in the lanes that are not `positive`, in clean digits.
    pub(crate) fn negate_unless(&mut self, out: Place, a: Place, positive: &str) {
        for k in 0..DIGITS {
            let c = self.load_constant(THRICE_P, k);
            let a = self.load(10, a, k);
            self.line(format!("vpsubq {c}, {c}, {a}"));
            self.line(format!("vmovdqa64 {c}{{{positive}}}, {a}"));
        }
        self.carry_signed();
        for k in 0..DIGITS {
            self.clean(k);
        }
        self.store(out);
    }

    /// Reduces ten columns to five digits, in columns 5 .. 9.
    fn reduce(&mut self) {
        for i in 0..DIGITS {
            let m = self.column(i);
            self.product(i + 1, &m, P1);
            self.carry_from(i);
            self.product(i + 3, &m, P3);
            self.product(i + 4, &m, P4);
        }
        self.carry_upper();
    }

    fn reduce_modulo_n(&mut self) {
        let m = self.register(11);
        for i in 0..DIGITS {
            self.line(format!("vpxorq {m}, {m}, {m}"));
            self.line(format!("vpmadd52luq {m}, {}, {}", self.column(i), broadcast(N_INVERSE, 0)));
            for j in 0..DIGITS {
                self.product(i + j, &m, &broadcast(N, j));
                if j == 0 {
                    self.carry_from(i);
                }
            }
        }
        self.carry_upper();
    }

    fn carry_upper(&mut self) {
        for k in DIGITS..2 * DIGITS - 1 {
            self.carry_from(k);
        }
    }

    fn carry_from(&mut self, k: usize) {
        let (carry, c, above) = (self.register(12), self.column(k), self.column(k + 1));
        self.line(format!("vpsrlq {carry}, {c}, 52"));
        self.line(format!("vpaddq {above}, {above}, {carry}"));
    }

    /// Carries columns 0 .. 4, which may be negative, although their total is not.
    fn carry_signed(&mut self) {
        for k in 0..DIGITS - 1 {
            let (carry, c, above) = (self.register(12), self.column(k), self.column(k + 1));
            self.line(format!("vpsraq {carry}, {c}, 52"));
            self.line(format!("vpaddq {above}, {above}, {carry}"));
        }
    }

    fn clear(&mut self) {
        for k in 0..2 * DIGITS {
            let c = self.column(k);
            self.line(format!("vpxorq {c}, {c}, {c}"));
        }
    }

    fn add_product(&mut self, a: Place, b: Place) {
        for i in 0..DIGITS {
            let x = self.load(10, a, i);
            for j in 0..DIGITS {
                let y = self.load(11, b, j);
                self.product(i + j, &x, &y);
            }
        }
    }

    /// Adds a^2 to columns that are zero.
    fn add_square(&mut self, a: Place) {
        for i in 0..DIGITS {
            let x = self.load(10, a, i);
            for j in i + 1..DIGITS {
                let y = self.load(11, a, j);
                self.product(i + j, &x, &y);
            }
        }
        for k in 1..2 * DIGITS - 1 {
            let c = self.column(k);
            self.line(format!("vpaddq {c}, {c}, {c}"));
        }
        for i in 0..DIGITS {
            let x = self.load(10, a, i);
            self.product(2 * i, &x, &x);
        }
    }

    fn product(&mut self, k: usize, x: &str, y: &str) {
        self.line(format!("vpmadd52luq {}, {x}, {y}", self.column(k)));
        self.line(format!("vpmadd52huq {}, {x}, {y}", self.column(k + 1)));
    }

    /// Masks the upper five columns and stores them.
    fn store_clean(&mut self, out: Place) {
        for k in 0..DIGITS {
            if k < DIGITS - 1 {
                self.clean(DIGITS + k);
            }
            self.line(format!("vmovdqa64 {}, {}", nth(out, k), self.column(DIGITS + k)));
        }
    }

    fn clean(&mut self, k: usize) {
        let c = self.column(k);
        self.line(format!("vpandq {c}, {c}, {MASK_52}"));
    }

    fn store(&mut self, out: Place) {
        for k in 0..DIGITS {
            self.line(format!("vmovdqa64 {}, {}", nth(out, k), self.column(k)));
        }
    }

    fn load_constant(&mut self, constant: Constant, k: usize) -> String {
        let c = self.column(k);
        self.line(format!("vpbroadcastq {c}, {}", quadword(constant, k)));
        c
    }

    fn load(&mut self, register: usize, place: Place, i: usize) -> String {
        let register = self.register(register);
        self.line(format!("vmovdqa64 {register}, {}", nth(place, i)));
        register
    }

    fn column(&self, k: usize) -> String {
        self.register(k)
    }

    fn register(&self, i: usize) -> String {
        format!("zmm{}", self.base + i)
    }

    fn line(&mut self, line: String) {
        self.lines.push(line);
    }
}

/// Returns the `i`-th quadword of a constant.
pub(crate) fn quadword(constant: Constant, i: usize) -> String {
    format!("qword ptr [rip+{}+{}]", constant.label, 8 * i)
}
