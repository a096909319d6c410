//! Generates the AVX-512 IFMA kernels: Montgomery multiplication and squaring, eight operations at once.
//!
//! Shape of the computation (the arithmetic and its bounds are argued in `docs/kernels/ifma.md`):
//!
//! ```text
//! columns 0 .. 2L of a*b + M*NH are summed in tiles of T columns, one zmm accumulator a column:
//!
//!   lower tiles (columns k < L):   rows a_i * b, triangle | rows m_i * NH, serial triangle -> new m digits
//!   upper tiles (columns k >= L):  head triangle, rows    | head triangle, rows, last row m' * n -> out
//! ```
//!
//! One *row* is a digit x of the left operand times the digits of the right operand that contribute to the tile: the
//! low halves of its products go to column c, the high halves to column c + 1. Subroutines take the address of x in
//! `rax` and, in `r10`, the address of the right-hand digit paired with x in the tile's first column. Both advance
//! one row at a time: x upwards, the right operand downwards.

use std::ops::Range;

use crate::asm::Assembly;

/// Size of a vector in bytes: eight lanes of 64 bits.
const VECTOR: usize = 64;

/// Registers preserved across subroutines (`zmm0..T` are the columns).
const CARRY: &str = "zmm20";
const X: [&str; 2] = ["zmm21", "zmm22"];
const Y: Range<usize> = 23..32;

/// Generates `<prefix>_multiply`, `<prefix>_square` and `<prefix>_select` for numbers of `limbs` digits, the first two in
/// tiles of `tile` columns.
pub(crate) fn kernels(prefix: &str, limbs: usize, tile: usize) -> String {
    assert!(tile.is_multiple_of(2) && tile <= 20, "tiles are even and leave registers for operands");
    assert!(limbs.is_multiple_of(tile), "tiles fill a number");
    let mut generator = Generator { asm: Assembly::new(prefix), limbs, tile, next_y: 0 };
    generator.subroutines();
    generator.entry("multiply", Operation::Multiply);
    generator.entry("square", Operation::Square);
    generator.asm.export("select", |asm| select(asm, limbs));
    generator.asm.finish()
}

/// Generates `<prefix>_wipe`, which clears every vector register.
pub(crate) fn support(prefix: &str) -> String {
    let mut asm = Assembly::new(prefix);
    asm.export("wipe", |asm| {
        asm.lines((16..32).map(|r| format!("vpxorq zmm{r}, zmm{r}, zmm{r}")));
        asm.lines(["vzeroall", "ret"]);
    });
    asm.finish()
}

/// Generates `(rdi out, rsi table, rdx index, rcx entries)`: out = table[index], each lane with its own index, by
/// reading every entry; up to twenty limbs at a time stay in registers.
fn select(asm: &mut Assembly, limbs: usize) {
    const INDEX: &str = "zmm20";
    const ENTRY: &str = "zmm21";
    const ONE: &str = "zmm22";
    const MASK: &str = "zmm23";
    asm.lines([format!("vmovdqu64 {INDEX}, [rdx]"), "mov eax, 1".into(), format!("vpbroadcastq {ONE}, rax")]);
    let parts = limbs.div_ceil(20);
    let mut start = 0;
    for part in 0..parts {
        let count = (limbs - start) / (parts - part);
        let next = asm.label();
        asm.lines((0..count).map(|i| format!("vpxorq zmm{i}, zmm{i}, zmm{i}")));
        asm.lines([
            format!("vpxorq {ENTRY}, {ENTRY}, {ENTRY}"),
            format!("lea rax, {}", at(("rsi", start))),
            "mov r8, rcx".into(),
        ]);
        asm.place(&next);
        asm.lines([
            format!("vpcmpeqq k1, {INDEX}, {ENTRY}"),
            format!("vpternlogq {MASK}{{k1}}{{z}}, {MASK}, {MASK}, 0xff"),
            format!("vpaddq {ENTRY}, {ENTRY}, {ONE}"),
        ]);
        // 0xf8: a or (b and c)
        asm.lines((0..count).map(|i| format!("vpternlogq zmm{i}, {MASK}, {}, 0xf8", at(("rax", i)))));
        asm.lines([format!("add rax, {}", VECTOR * limbs), "dec r8".into(), format!("jnz {next}")]);
        asm.lines((0..count).map(|i| format!("vmovdqa64 {}, zmm{i}", at(("rdi", start + i)))));
        start += count;
    }
    asm.lines(["vpxorq zmm23, zmm23, zmm23", "kxorw k1, k1, k1", "vzeroupper", "ret"]);
}

#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Multiply,
    Square,
}

/// Columns of the tile that one row reaches: with the low halves and with the high halves of its products.
struct Reach {
    low: Range<usize>,
    high: Range<usize>,
}

struct Generator {
    asm: Assembly,
    limbs: usize,
    tile: usize,
    next_y: usize,
}

/// Location of an operand: a register and an offset in vectors.
type Place = (&'static str, usize);

const OUT: &str = "rdi";
const A: &str = "rsi";
const B: &str = "rdx";
const MODULUS: &str = "rcx";
const DIGITS: &str = "r8";

impl Generator {
    /// Generates the kernel `(rdi out, rsi a, rdx b, rcx modulus, r8 digits)`.
    ///
    /// `modulus` is n', then NH (L vectors), then n (L vectors and a zero one); `digits` is room for the L + 1
    /// vectors 0, m_0 .. m_(L-1). `out` may be `a` or `b`.
    fn entry(&mut self, name: &str, operation: Operation) {
        self.asm.begin_export(name);
        self.asm.line(format!("vpxorq {CARRY}, {CARRY}, {CARRY}"));
        self.asm.line(format!("vmovdqa64 [{DIGITS}], {CARRY}"));
        for k in (0..self.limbs).step_by(self.tile) {
            self.lower_tile(operation, k);
        }
        for s in (0..self.limbs).step_by(self.tile) {
            self.upper_tile(operation, s);
        }
        self.asm.lines(["vzeroupper", "ret"]);
        self.asm.end_export(name);
    }

    /// Locations of NH and n, which follow n' in the modulus' constants.
    fn nh(&self, i: usize) -> Place {
        (MODULUS, 1 + i)
    }

    fn n(&self, i: usize) -> Place {
        (MODULUS, 1 + self.limbs + i)
    }

    /// Computes columns k .. k + T of the lower half: all their products, then the m digits they determine.
    fn lower_tile(&mut self, operation: Operation, k: usize) {
        self.clear();
        match operation {
            Operation::Multiply => {
                self.point((A, 0), (B, k));
                self.rows(k);
                self.asm.call("triangle");
            }
            Operation::Square => {
                self.point((A, 0), (A, k));
                self.rows(k / 2);
                self.asm.call("square_tail");
            }
        }
        self.asm.line(format!("vpaddq zmm0, zmm0, {CARRY}"));

        // Digit m_i is stored at digits[i + 1], so that row i' of the digits is paired with NH at column i'.
        if k == 0 {
            self.point((DIGITS, 0), self.nh(0));
            self.asm.call("digits");
        } else {
            self.point((DIGITS, 1), self.nh(k - 1));
            self.rows(k - 1);
            self.asm.call("digits_after_row");
        }
        self.last_digit(k + self.tile == self.limbs);
    }

    /// Computes columns L + s .. L + s + T: all their products, then normalised into the result.
    fn upper_tile(&mut self, operation: Operation, s: usize) {
        let (limbs, tile) = (self.limbs, self.tile);
        self.clear();
        match operation {
            Operation::Multiply => {
                self.point((A, s), (B, limbs));
                self.asm.call("head");
                self.rows(limbs - s - tile);
            }
            Operation::Square => {
                self.point((A, s), (A, limbs));
                if s + tile == limbs {
                    self.asm.call("square_cap");
                } else {
                    self.asm.call("head");
                    self.rows((limbs - s) / 2 - tile);
                    self.asm.call("square_tail");
                }
            }
        }

        self.point((DIGITS, s), self.nh(limbs));
        self.asm.call("head");
        self.rows(limbs - s - tile);
        // The last digit multiplies n itself, one column lower.
        self.point((DIGITS, limbs), self.n(s + 1));
        self.row(0, &self.full());
        self.normalise(s);
    }

    fn subroutines(&mut self) {
        let tile = self.tile;
        let full = self.full();

        // Computes r9d full rows, at least one. (Unrolled, they overflow the cache of decoded instructions.)
        self.asm.begin_subroutine("rows");
        let next = self.asm.label();
        self.asm.place(&next);
        self.row(0, &full);
        self.advance(1);
        self.asm.lines(["dec r9d".to_owned(), format!("jnz {next}"), "ret".to_owned()]);

        // Final T rows of a lower tile: row r begins at column r.
        self.asm.begin_subroutine("triangle");
        for r in paired(tile) {
            self.row(r, &Reach { low: r..tile, high: r + 1..tile });
        }
        self.asm.line("ret");

        // First T rows of an upper tile: row r ends at column r.
        self.asm.begin_subroutine("head");
        for r in paired(tile) {
            self.row(r, &Reach { low: 0..r, high: 0..r + 1 });
        }
        self.advance(tile);
        self.asm.line("ret");

        // Final T/2 rows of a tile of a square, then doubling and the squares of single digits.
        self.asm.begin_subroutine("square_tail");
        for r in paired(tile / 2) {
            self.row(r, &Reach { low: 2 * r + 1..tile, high: 2 * r + 2..tile });
        }
        self.double_and_add_diagonal(0);
        self.asm.line("ret");

        // Last tile of a square: head and tail at once.
        self.asm.begin_subroutine("square_cap");
        for r in paired(tile) {
            let start = (2 * r).saturating_sub(tile);
            let (low, high) = if r < tile / 2 { (0, 0) } else { (start + 1, start + 2) };
            self.row(r, &Reach { low: low..r.max(low), high: high..(r + 1).max(high) });
        }
        self.double_and_add_diagonal(tile / 2);
        self.asm.line("ret");

        // M digits of a lower tile: each is its column's low 52 bits, and contributes to the columns above.
        self.asm.begin_subroutine("digits_after_row");
        self.row(0, &Reach { low: 0..tile, high: 1..tile });
        self.asm.entry_point("digits");
        for r in 0..tile - 1 {
            self.asm.line(format!("vmovdqa64 [rax+{}], zmm{r}", VECTOR * (r + 1)));
            self.asm.line(format!("vpsrlq {CARRY}, zmm{r}, 52"));
            self.asm.line(format!("vpaddq zmm{}, zmm{}, {CARRY}", r + 1, r + 1));
            self.row_of(&format!("zmm{r}"), r + 1, &Reach { low: r + 1..tile, high: r + 2..tile });
        }
        self.asm.line("ret");
    }

    /// Computes the digit of a lower tile's last column. In the last lower tile it is m', that of the plain
    /// Montgomery step: m' = t * n' mod 2^52, and m' * n_0 clears the column.
    fn last_digit(&mut self, plain: bool) {
        let last = self.tile - 1;
        if plain {
            self.asm.lines([
                format!("vpxorq {0}, {0}, {0}", X[0]),
                format!("vpmadd52luq {}, zmm{last}, {}", X[0], at((MODULUS, 0))),
                format!("vpmadd52luq zmm{last}, {}, {}", X[0], at(self.n(0))),
                format!("vmovdqa64 {}, {}", at((DIGITS, self.limbs)), X[0]),
            ]);
        } else {
            self.asm.line(format!("vmovdqa64 [rax+{}], zmm{last}", VECTOR * self.tile));
        }
        self.asm.line(format!("vpsrlq {CARRY}, zmm{last}, 52"));
    }

    /// Carries along the tile and stores it; bits from 52 up remain, because they are not read.
    fn normalise(&mut self, s: usize) {
        self.asm.line(format!("vpaddq zmm0, zmm0, {CARRY}"));
        for c in 0..self.tile {
            self.asm.line(format!("vmovdqa64 {}, zmm{c}", at((OUT, s + c))));
            self.asm.line(format!("vpsrlq {CARRY}, zmm{c}, 52"));
            if c + 1 < self.tile {
                self.asm.line(format!("vpaddq zmm{}, zmm{}, {CARRY}", c + 1, c + 1));
            }
        }
    }

    fn double_and_add_diagonal(&mut self, first_row: usize) {
        self.asm.lines((0..self.tile).map(|c| format!("vpaddq zmm{c}, zmm{c}, zmm{c}")));
        for r in 0..self.tile / 2 {
            let x = self.fresh_y();
            self.asm.line(format!("vmovdqa64 {x}, [rax+{}]", VECTOR * (first_row + r)));
            self.asm.line(format!("vpmadd52luq zmm{}, {x}, {x}", 2 * r));
            self.asm.line(format!("vpmadd52huq zmm{}, {x}, {x}", 2 * r + 1));
        }
    }

    /// Computes row `r` after the current one, its x loaded from memory.
    fn row(&mut self, r: usize, reach: &Reach) {
        let x = X[r % 2];
        self.asm.line(format!("vmovdqa64 {x}, [rax+{}]", VECTOR * r));
        self.row_of(x, r, reach);
    }

    fn row_of(&mut self, x: &str, r: usize, reach: &Reach) {
        // Product with the digit at column c - r: low half to column c, high half to column c + 1.
        for c in -1..self.tile as isize {
            let low = usize::try_from(c).ok().filter(|c| reach.low.contains(c));
            let high = usize::try_from(c + 1).ok().filter(|c| reach.high.contains(c));
            if low.is_none() && high.is_none() {
                continue;
            }
            let y = self.fresh_y();
            self.asm.line(format!("vmovdqa64 {y}, [r10{:+}]", VECTOR as isize * (c - r as isize)));
            if let Some(c) = low {
                self.asm.line(format!("vpmadd52luq zmm{c}, {x}, {y}"));
            }
            if let Some(c) = high {
                self.asm.line(format!("vpmadd52huq zmm{c}, {x}, {y}"));
            }
        }
    }

    /// Computes `count` full rows, if any.
    fn rows(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        self.asm.line(format!("mov r9d, {count}"));
        self.asm.call("rows");
    }

    fn point(&mut self, x: Place, y: Place) {
        self.asm.line(format!("lea rax, {}", at(x)));
        self.asm.line(format!("lea r10, {}", at(y)));
    }

    fn advance(&mut self, rows: usize) {
        self.asm.lines([format!("add rax, {}", rows * VECTOR), format!("sub r10, {}", rows * VECTOR)]);
    }

    fn full(&self) -> Reach {
        Reach { low: 0..self.tile, high: 0..self.tile }
    }

    fn clear(&mut self) {
        self.asm.lines((0..self.tile).map(|c| format!("vpxorq zmm{c}, zmm{c}, zmm{c}")));
    }

    fn fresh_y(&mut self) -> String {
        self.next_y = (self.next_y + 1) % Y.len();
        format!("zmm{}", Y.start + self.next_y)
    }
}

fn at((register, vectors): Place) -> String {
    format!("[{register}+{}]", vectors * VECTOR)
}

/// Returns 0, n-1, 1, n-2, ...: a wide row beside a narrow one, so that no column waits for its own last product.
fn paired(rows: usize) -> impl Iterator<Item = usize> {
    (0..rows).map(move |i| if i % 2 == 0 { i / 2 } else { rows - 1 - i / 2 })
}
