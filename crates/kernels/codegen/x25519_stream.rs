//! Operations modulo 2^255 - 19 on eight lanes, as lines of assembly:
//!
//! ```text
//! product:  columns c0 .. c9  =  sums of low halves (column i + j) and of high halves (column i + j + 1)
//! reduce:   carry c5 -> c9;   c_k += 608 c_(k+5)  (2^260 = 608);   c0 += 19 (c4 >> 47)  (2^255 = 19);   carry c0 -> c4
//! ```
//!
//! The bounds are argued in `docs/kernels/x25519.md`.

/// Number of vectors of a field element: digits of 52 bits.
pub(crate) const DIGITS: usize = 5;
/// Size of a vector in bytes: eight lanes of 64 bits.
pub(crate) const VECTOR: usize = 64;

/// Location of a vector: a register, and an offset in vectors. An element is five vectors.
pub(crate) type Place = (&'static str, usize);

/// Registers not used by a stream during a sum or a lookup.
pub(crate) const SPARE: [&str; 4] = ["zmm25", "zmm24", "zmm23", "zmm22"];
/// Registers for the remaining bits of a word, for each ladder.
pub(crate) const WORDS: [&str; 2] = ["zmm26", "zmm27"];

/// Quadwords in memory, and the register that holds the first of them in every lane.
#[derive(Clone, Copy)]
pub(crate) struct Constant {
    pub(crate) label: &'static str,
    pub(crate) values: &'static [u64],
    pub(crate) register: Option<&'static str>,
}

const MASK_47: &str = "zmm28";
const NINETEEN: &str = "zmm29";
const FOLD: &str = "zmm30";
const MASK_52: &str = "zmm31";

pub(crate) const TOP_BIT: Constant = in_memory(".Lquadrille_x25519_top_bit", &[1 << 63]);
pub(crate) const MINUS_ONE: Constant = in_memory(".Lquadrille_x25519_minus_one", &[u64::MAX]);
pub(crate) const ONE: Constant = in_memory(".Lquadrille_x25519_one", &[1]);
const A24: Constant = in_memory(".Lquadrille_x25519_a24", &[121_665]);
/// Digits of 2p that exceed those of every reduced element.
const TWICE_P: Constant = in_memory(
    ".Lquadrille_x25519_twice_p",
    &[(1 << 53) - 38, (1 << 53) - 2, (1 << 53) - 2, (1 << 53) - 2, (1 << 48) - 2],
);

pub(crate) const CONSTANTS: [Constant; 9] = [
    TOP_BIT,
    MINUS_ONE,
    ONE,
    TWICE_P,
    A24,
    in_register(".Lquadrille_x25519_mask_47", &[(1 << 47) - 1], MASK_47),
    in_register(".Lquadrille_x25519_nineteen", &[19], NINETEEN),
    in_register(".Lquadrille_x25519_fold", &[608], FOLD),
    in_register(".Lquadrille_x25519_mask_52", &[(1 << 52) - 1], MASK_52),
];

pub(crate) const fn in_memory(label: &'static str, values: &'static [u64]) -> Constant {
    Constant { label, values, register: None }
}

pub(crate) const fn in_register(
    label: &'static str,
    values: &'static [u64],
    register: &'static str,
) -> Constant {
    Constant { label, values, register: Some(register) }
}

pub(crate) enum Operand {
    Memory(Place),
    /// Five registers, beginning with this one.
    Registers(usize),
}

pub(crate) enum Term {
    Plus(Place),
    Minus(Place),
}

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

    /// Computes out = a * b, in clean digits: the bits above their 52 are zero.
    pub(crate) fn multiply(&mut self, out: Place, a: Place, b: Place) {
        self.clear();
        for i in 0..DIGITS {
            let x = self.load(10, &Operand::Memory(a), i);
            for j in 0..DIGITS {
                let y = self.load(11, &Operand::Memory(b), j);
                self.product(i + j, &x, &y);
            }
        }
        self.reduce();
        self.store_clean(out);
    }

    /// Computes out = a^2, in clean digits.
    pub(crate) fn square(&mut self, out: Place, a: Place) {
        self.square_of(&Operand::Memory(a));
        self.store_clean(out);
    }

    /// Computes a^2, left in the columns, not clean.
    pub(crate) fn square_of(&mut self, a: &Operand) {
        self.clear();
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
        self.reduce();
    }

    /// Computes out = a + b of clean digits; the result is not clean, and is for multiplications, which read 52 bits
    /// of a digit.
    pub(crate) fn add(&mut self, out: Place, a: Place, b: Place) {
        for k in 0..DIGITS {
            let c = self.load_column(a, k);
            self.line(format!("vpaddq {c}, {c}, {}", nth(b, k)));
        }
        self.carry();
        self.store(out);
    }

    /// Computes out = a - b of clean digits; the result is not clean.
    pub(crate) fn subtract(&mut self, out: Place, a: Place, b: Place) {
        for k in 0..DIGITS {
            let c = self.load_column(a, k);
            self.subtract_digit(&c, b, k);
        }
        self.carry();
        self.store(out);
    }

    /// Computes 2 a + c or 2 a - c of clean digits, left in the columns, not clean.
    pub(crate) fn double_and(&mut self, a: Place, term: Term) {
        for k in 0..DIGITS {
            let c = self.load_column(a, k);
            self.line(format!("vpaddq {c}, {c}, {c}"));
            match term {
                Term::Plus(b) => self.line(format!("vpaddq {c}, {c}, {}", nth(b, k))),
                Term::Minus(b) => self.subtract_digit(&c, b, k),
            }
        }
        self.carry();
    }

    /// Computes out = a + 121665 b, a in clean digits, out not.
    pub(crate) fn add_small_multiple(&mut self, out: Place, a: Place, b: Place) {
        let (beyond, excess, last) = (self.register(12), self.register(11), self.column(4));
        self.line(format!("vpxorq {beyond}, {beyond}, {beyond}"));
        for k in 0..DIGITS {
            self.load_column(a, k);
        }
        for k in 0..DIGITS {
            let x = self.load(10, &Operand::Memory(b), k);
            let above = if k + 1 < DIGITS { self.column(k + 1) } else { beyond.clone() };
            self.line(format!("vpmadd52luq {}, {x}, {}", self.column(k), broadcast(A24, 0)));
            self.line(format!("vpmadd52huq {above}, {x}, {}", broadcast(A24, 0)));
        }
        self.line(format!("vpsrlq {excess}, {last}, 47"));
        self.line(format!("vpsllq {beyond}, {beyond}, 5"));
        self.line(format!("vpaddq {excess}, {excess}, {beyond}"));
        self.fold_excess(&excess);
        self.store(out);
    }

    /// Computes out = b in the lanes of the mask, a in the others.
    pub(crate) fn choose(&mut self, mask: &str, out: Place, a: Place, b: Place) {
        for k in 0..DIGITS {
            let c = self.load_column(a, k);
            self.line(format!("vmovdqa64 {c}{{{mask}}}, {}", nth(b, k)));
        }
        self.store(out);
    }

    /// Masks the digits in the columns and stores them.
    pub(crate) fn store_clean(&mut self, out: Place) {
        for k in 0..DIGITS - 1 {
            let c = self.column(k);
            self.line(format!("vpandq {c}, {c}, {MASK_52}"));
        }
        self.store(out);
    }

    /// Returns the register of column `k`.
    pub(crate) fn column(&self, k: usize) -> String {
        self.register(k)
    }

    /// Reduces ten columns to five digits, the last below 2^47 + 2^4.
    fn reduce(&mut self) {
        for k in DIGITS..2 * DIGITS - 1 {
            self.carry_from(k);
        }
        for k in 0..DIGITS - 1 {
            let high = self.column(DIGITS + k);
            self.line(format!("vpmadd52luq {}, {high}, {FOLD}", self.column(k)));
            self.line(format!("vpmadd52huq {}, {high}, {FOLD}", self.column(k + 1)));
        }
        // 608 c9 may have more than 52 bits, 19 c9 does not.
        let (excess, last) = (self.register(12), self.column(4));
        self.line(format!("vpxorq {excess}, {excess}, {excess}"));
        self.line(format!("vpmadd52luq {excess}, {}, {NINETEEN}", self.column(9)));
        self.line(format!("vpsllq {excess}, {excess}, 5"));
        self.line(format!("vpaddq {last}, {last}, {excess}"));
        self.line(format!("vpsrlq {excess}, {last}, 47"));
        self.fold_excess(&excess);
    }

    /// Folds the bits from 255 up, which `excess` holds, into the first digit, and carries.
    fn fold_excess(&mut self, excess: &str) {
        let last = self.column(4);
        self.line(format!("vpandq {last}, {last}, {MASK_47}"));
        self.line(format!("vpmadd52luq {}, {excess}, {NINETEEN}", self.column(0)));
        self.carry();
    }

    fn carry(&mut self) {
        for k in 0..DIGITS - 1 {
            self.carry_from(k);
        }
    }

    fn carry_from(&mut self, k: usize) {
        let (carry, c, above) = (self.register(12), self.column(k), self.column(k + 1));
        self.line(format!("vpsrlq {carry}, {c}, 52"));
        self.line(format!("vpaddq {above}, {above}, {carry}"));
    }

    fn product(&mut self, k: usize, x: &str, y: &str) {
        self.line(format!("vpmadd52luq {}, {x}, {y}", self.column(k)));
        self.line(format!("vpmadd52huq {}, {x}, {y}", self.column(k + 1)));
    }

    fn subtract_digit(&mut self, c: &str, b: Place, k: usize) {
        self.line(format!("vpaddq {c}, {c}, {}", broadcast(TWICE_P, k)));
        self.line(format!("vpsubq {c}, {c}, {}", nth(b, k)));
    }

    fn store(&mut self, out: Place) {
        for k in 0..DIGITS {
            let c = self.column(k);
            self.line(format!("vmovdqa64 {}, {c}", nth(out, k)));
        }
    }

    fn clear(&mut self) {
        for k in 0..2 * DIGITS {
            let c = self.column(k);
            self.line(format!("vpxorq {c}, {c}, {c}"));
        }
    }

    fn load_column(&mut self, a: Place, k: usize) -> String {
        let c = self.column(k);
        self.line(format!("vmovdqa64 {c}, {}", nth(a, k)));
        c
    }

    /// Returns the register that holds digit `i` of the operand: its own, or `register` after a load.
    fn load(&mut self, register: usize, operand: &Operand, i: usize) -> String {
        match operand {
            Operand::Registers(first) => format!("zmm{}", first + i),
            Operand::Memory(place) => {
                let register = self.register(register);
                self.line(format!("vmovdqa64 {register}, {}", nth(*place, i)));
                register
            }
        }
    }

    fn register(&self, i: usize) -> String {
        format!("zmm{}", self.base + i)
    }

    fn line(&mut self, line: String) {
        self.lines.push(line);
    }
}

/// Returns the `i`-th quadword of a constant, in every lane.
pub(crate) fn broadcast(constant: Constant, i: usize) -> String {
    format!("qword ptr [rip+{}+{}]{{1to8}}", constant.label, 8 * i)
}

/// Returns the `i`-th vector from a place.
pub(crate) fn nth((register, vectors): Place, i: usize) -> String {
    at((register, vectors + i))
}

pub(crate) fn at((register, vectors): Place) -> String {
    format!("[{register}+{}]", vectors * VECTOR)
}
