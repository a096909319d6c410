//! Generates the AVX2 and FMA kernels: Montgomery multiplication and squaring, four operations at once, and two
//! independent moduli (p and q) in alternation.
//!
//! Numbers are L signed digits of b bits, held as double-precision integers. A column of products is summed in
//! two registers, c (which starts at the anchor B, a large constant) and l:
//!
//! ```text
//!   d = c;  c = x*y + c;  d = d - c;  d = x*y + d;  l = l + d        (value of the column: (c - B) + l)
//! ```
//!
//! Every step is exact. The columns are computed in tiles of six (`docs/kernels/fma47.md` has the arithmetic,
//! the bounds, and why six):
//!
//! ```text
//!   lower tiles -2, 4, .. L-6:   a*b, M*NH, then normalised: the digits are the next six digits of M
//!   last block:                  F = T * NP mod 2^(6b); T + F*n is 0 mod 2^(6b), its carry goes up
//!   upper tiles L, L+6, .. 2L-4: a*b, M*NH, F*n, then normalised into the result
//! ```
//!
//! L is 4 modulo 6, so that the first tile has two empty columns and the last one four.
//!
//! One *row* is a digit x times the digits y that contribute to the tile's columns. Subroutines take the address of x
//! in `rax`, and in `rcx` that of the y paired with x in the tile's first column; both move one digit a row.

#[path = "fma47_subroutines.rs"]
mod subroutines;

use crate::asm::Assembly;

/// Size of a vector in bytes: four doubles.
const VECTOR: isize = 32;
/// Number of columns of a tile.
const TILE: usize = 6;
/// Number of dependent instructions of a product.
const STAGES: usize = 4;
/// Registers: the six c, the six l, the row's x, three temporaries.
const C: usize = 0;
const L: usize = 6;
const X: usize = 12;
const TEMPORARIES: [usize; 3] = [13, 14, 15];

/// Memory layout, in vectors from the pointers of a stream: `r8` x, `r9` y, `r10` the modulus' constants, `r11`
/// scratch.
struct Layout {
    limbs: usize,
}

impl Layout {
    const ANCHOR: usize = 0;
    const INVERSE: usize = 1;
    const MAGIC: usize = 2;
    const NH: usize = 3;
    const CARRY_C: usize = 0;
    const CARRY_V: usize = 1;
    const T: usize = 2;
    const F: usize = 8;
    /// Preceded by two vectors of padding.
    const M: usize = 16;

    /// Offset of n, followed by two zero digits.
    const fn n(&self) -> usize {
        Self::NH + self.limbs
    }

    const fn np(&self) -> usize {
        self.n() + self.limbs + 2
    }

    /// Offset of the doubled operand of a squaring, followed by a zero digit.
    const fn doubled(&self) -> usize {
        Self::M + self.limbs
    }
}

/// Generates `<prefix>_multiply`, `<prefix>_square` and `<prefix>_select` for numbers of `limbs` digits.
pub(crate) fn kernels(prefix: &str, limbs: usize) -> String {
    assert!(limbs % TILE == 4 && limbs >= 22, "the tiling requires L = 4 mod 6");
    let mut generator = Generator { asm: Assembly::new(prefix), layout: Layout { limbs } };
    generator.subroutines();
    generator.entry("multiply", Operation::Multiply);
    generator.entry("square", Operation::Square);
    generator.select();
    generator.asm.finish()
}

/// Generates `<prefix>_wipe`, which clears every vector register.
pub(crate) fn support(prefix: &str) -> String {
    let mut asm = Assembly::new(prefix);
    asm.export("wipe", |asm| asm.lines(["vzeroall", "ret"]));
    asm.finish()
}

#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Multiply,
    Square,
}

/// Factor y of a product: in memory, or x itself.
#[derive(Clone, Copy)]
enum Factor {
    Memory,
    Itself,
}

struct Generator {
    asm: Assembly,
    layout: Layout,
}

impl Generator {
    /// Generates the kernel `(rdi streams, rsi stride)`. `streams` holds the four pointers of one stream, or of two
    /// that are `stride` = 32 bytes apart at a multiple of 64; `stride` is 0 for one. The result replaces x.
    fn entry(&mut self, name: &str, operation: Operation) {
        let limbs = self.layout.limbs as isize;
        self.asm.begin_export(name);
        self.asm.lines(["push rbx", "mov rdx, rdi"]);
        self.load_stream();

        self.each_stream(|this| this.begin(operation));
        for k in (-2..limbs - TILE as isize).step_by(TILE) {
            self.each_stream(|this| {
                this.lower_products(operation, k);
                this.address("rbx", "r11", Layout::M as isize + k);
                this.asm.call("normalise");
            });
        }
        self.each_stream(|this| {
            this.lower_products(operation, limbs - TILE as isize);
            this.address("rbx", "r11", Layout::T as isize);
            this.asm.call("normalise");
        });
        self.each_stream(|this| this.asm.call("last_digits"));
        self.each_stream(|this| this.asm.call("last_carry"));
        for k in (limbs..2 * limbs - 4).step_by(TILE) {
            self.each_stream(|this| {
                this.upper_products(operation, k);
                this.address("rbx", "r8", k - limbs);
                this.asm.call("normalise");
            });
        }
        self.each_stream(|this| this.top(operation));

        self.asm.lines(["pop rbx", "vzeroupper", "ret"]);
        self.asm.end_export(name);
    }

    /// Clears the carry; doubles the operand for a square.
    fn begin(&mut self, operation: Operation) {
        if operation == Operation::Square {
            let doubled = self.layout.doubled();
            for i in 0..self.layout.limbs {
                let r = i % 8;
                self.asm.line(format!("vmovapd ymm{r}, {}", at("r8", i)));
                self.asm.line(format!("vaddpd ymm{r}, ymm{r}, ymm{r}"));
                self.asm.line(format!("vmovapd {}, ymm{r}", at("r11", doubled + i)));
            }
        }
        self.asm.lines([
            "vxorpd ymm0, ymm0, ymm0".to_owned(),
            format!("vmovapd {}, ymm0", at("r11", Layout::CARRY_C)),
            format!("vmovapd {}, ymm0", at("r11", Layout::CARRY_V)),
        ]);
    }

    /// Computes the products of columns k .. k + 6 in the lower half.
    fn lower_products(&mut self, operation: Operation, k: isize) {
        match operation {
            Operation::Multiply => self.lower_rows(("r8", 0), ("r9", 0), k, Columns::Fresh),
            Operation::Square => {
                let doubled = self.layout.doubled() as isize;
                // Digits i < k/2 are multiplied by 2a_j with j > i in every column; three rows around the diagonal
                // follow.
                if k >= 0 {
                    self.address("rax", "r8", 0);
                    self.address("rcx", "r11", doubled + k);
                    self.rows(k / 2, Columns::Fresh);
                    self.asm.call("diagonal");
                } else {
                    self.asm.call("clear");
                    self.address("rax", "r8", -1);
                    self.address("rcx", "r11", doubled - 1);
                    self.asm.call("diagonal_1");
                }
            }
        }
        if k >= 4 {
            let (m, nh) = (("r11", Layout::M as isize), ("r10", Layout::NH as isize));
            self.lower_rows(m, nh, k - TILE as isize, Columns::Begun);
        }
    }

    /// Computes x_i y_(k-i) and so on: k + 1 full rows, then a triangle. With k = -2 the rows begin inside the
    /// triangle.
    fn lower_rows(&mut self, x: (&str, isize), y: (&str, isize), k: isize, columns: Columns) {
        if k >= 0 {
            self.address("rax", x.0, x.1);
            self.address("rcx", y.0, y.1 + k);
            self.rows(k + 1, columns);
            self.asm.call("triangle");
        } else {
            if columns == Columns::Fresh {
                self.asm.call("clear");
            }
            self.address("rax", x.0, x.1 - 1);
            self.address("rcx", y.0, y.1 - 1);
            self.asm.call("triangle_2");
        }
    }

    /// Computes the products of columns k .. k + 6 in the upper half.
    fn upper_products(&mut self, operation: Operation, k: isize) {
        let limbs = self.layout.limbs as isize;
        let first = k - limbs + 1; // the first i with a product here
        // F * n starts L - 6 columns higher.
        self.address("rax", "r11", Layout::F as isize);
        self.address("rcx", "r10", self.layout.n() as isize + k - limbs + TILE as isize);
        self.rows(TILE as isize, Columns::Fresh);
        self.address("rax", "r8", first);
        match operation {
            Operation::Multiply => {
                self.address("rcx", "r9", limbs - 1);
                self.asm.call("head_5");
                self.advance(5);
                self.rows(2 * limbs - 6 - k, Columns::Begun);
            }
            Operation::Square => {
                self.address("rcx", "r11", self.layout.doubled() as isize + limbs - 1);
                let rows = limbs - 6 - k / 2;
                if rows < 0 {
                    self.asm.call("head_4");
                    self.advance(4);
                } else {
                    self.asm.call("head_5");
                    self.advance(5);
                    self.rows(rows, Columns::Begun);
                }
                self.asm.call("diagonal");
            }
        }
        // M * NH starts six columns higher: at k = L its head rows do not exist.
        let first = first - TILE as isize;
        self.address("rax", "r11", Layout::M as isize + first.max(0));
        if first < 0 {
            self.address("rcx", "r10", Layout::NH as isize + k - TILE as isize);
        } else {
            self.address("rcx", "r10", Layout::NH as isize + limbs - 1);
            self.asm.call("head_5");
            self.advance(5);
        }
        self.rows(2 * limbs - 6 - k, Columns::Begun);
    }

    /// Computes columns 2L-4 .. 2L-1: three with products; the carry out of them is the top digit.
    fn top(&mut self, operation: Operation) {
        let limbs = self.layout.limbs as isize;
        self.asm.call("clear");
        self.address("rax", "r8", limbs - 3);
        match operation {
            Operation::Multiply => {
                self.address("rcx", "r9", limbs - 1);
                self.asm.call("head_3");
            }
            Operation::Square => {
                self.address("rcx", "r11", self.layout.doubled() as isize + limbs - 1);
                self.row(0, &[(0, Factor::Memory)]);
                self.row(1, &[(0, Factor::Itself), (1, Factor::Memory)]);
                self.row(2, &[(2, Factor::Itself)]);
            }
        }
        self.address("rax", "r11", Layout::M as isize + limbs - 9);
        self.address("rcx", "r10", Layout::NH as isize + limbs - 1);
        self.asm.call("head_3");
        self.address("rax", "r11", Layout::F as isize + 3);
        self.address("rcx", "r10", self.layout.n() as isize + limbs - 1);
        self.asm.call("head_3");

        self.address("rbx", "r8", limbs - 4);
        self.carry_in_and_digits(3, Carry::Both);
        // The top digit: the carry of the third column.
        self.asm.lines([
            "vmulpd ymm13, ymm13, ymm15".to_owned(),
            "vfmadd231pd ymm13, ymm2, ymm15".to_owned(),
            "vmovapd [rbx+96], ymm13".to_owned(),
        ]);
    }

    /// Generates `(rdi out, rsi table, rdx index, rcx entries)`: out = table[index], each lane with its own index, by
    /// reading every entry times 1 or 0; up to eleven limbs at a time stay in registers.
    fn select(&mut self) {
        let limbs = self.layout.limbs;
        self.asm.begin_export("select");
        self.asm.lines(["mov eax, 1", "vmovq xmm15, rax", "vpbroadcastq ymm15, xmm15"]);
        // 1.0
        self.asm.lines(["mov eax, 1023", "shl rax, 52", "vmovq xmm12, rax", "vpbroadcastq ymm12, xmm12"]);
        let parts = limbs.div_ceil(11);
        let mut start = 0;
        for part in 0..parts {
            let count = (limbs - start) / (parts - part);
            let next = self.asm.label();
            self.asm.lines((0..count).map(|i| format!("vpxor ymm{i}, ymm{i}, ymm{i}")));
            self.asm.line("vpxor ymm14, ymm14, ymm14");
            self.asm.lines([format!("lea rax, {}", at("rsi", start)), "mov r8, rcx".to_owned()]);
            self.asm.place(&next);
            self.asm.lines(["vpcmpeqq ymm13, ymm14, [rdx]", "vpaddq ymm14, ymm14, ymm15"]);
            self.asm.line("vpand ymm13, ymm13, ymm12");
            self.asm.lines((0..count).map(|i| format!("vfmadd231pd ymm{i}, ymm13, {}", at("rax", i))));
            self.asm.lines([
                format!("add rax, {}", VECTOR * limbs as isize),
                "dec r8".into(),
                format!("jnz {next}"),
            ]);
            self.asm.lines((0..count).map(|i| format!("vmovapd {}, ymm{i}", at("rdi", start + i))));
            start += count;
        }
        self.asm.lines(["vzeroupper", "ret"]);
        self.asm.end_export("select");
    }

    /// Emits `section` so that it runs once for each stream.
    fn each_stream(&mut self, section: impl FnOnce(&mut Self)) {
        let again = self.asm.label();
        self.asm.line(".p2align 5");
        self.asm.place(&again);
        section(self);
        self.asm.line("xor rdi, rsi");
        self.load_stream();
        self.asm.lines(["cmp rdi, rdx".to_owned(), format!("jne {again}")]);
    }

    fn load_stream(&mut self) {
        self.asm.lines(["mov r8, [rdi]", "mov r9, [rdi+8]", "mov r10, [rdi+16]", "mov r11, [rdi+24]"]);
    }

    /// Computes `count` full rows, if any; at least one if the columns are fresh.
    fn rows(&mut self, count: isize, columns: Columns) {
        let rest = match columns {
            Columns::Fresh => {
                self.asm.call("first_row");
                count - 1
            }
            Columns::Begun => count,
        };
        if rest > 0 {
            self.asm.call(&format!("rows_{rest}"));
        }
    }

    fn advance(&mut self, rows: isize) {
        self.asm.lines([format!("add rax, {}", VECTOR * rows), format!("sub rcx, {}", VECTOR * rows)]);
    }

    fn address(&mut self, register: &str, base: &str, vectors: isize) {
        self.asm.line(format!("lea {register}, [{base}{:+}]", VECTOR * vectors));
    }

    /// Computes a row with its x `step` digits from `rax`, and its y for column c at `c - step` digits from `rcx`. A
    /// product takes four stages; the next product starts one stage later, so that no instruction waits for its
    /// predecessor, and multiplications alternate with additions, which share a port on Intel's cores.
    fn row(&mut self, step: usize, products: &[(usize, Factor)]) {
        self.asm.line(format!("vmovapd ymm{X}, {}", at("rax", step)));
        let products: Vec<_> = products.iter().rev().zip(TEMPORARIES.into_iter().cycle()).collect();
        for time in 0..products.len() + STAGES - 1 {
            for stage in (0..STAGES).rev() {
                let Some(&(&(column, factor), d)) = time.checked_sub(stage).and_then(|i| products.get(i))
                else {
                    continue;
                };
                let (c, l) = (C + column, L + column);
                let y = match factor {
                    Factor::Memory => format!("[rcx{:+}]", VECTOR * (column as isize - step as isize)),
                    Factor::Itself => format!("ymm{X}"),
                };
                match stage {
                    0 => {
                        self.asm.line(format!("vmovapd ymm{d}, ymm{c}"));
                        self.asm.line(format!("vfmadd231pd ymm{c}, ymm{X}, {y}"));
                    }
                    1 => self.asm.line(format!("vsubpd ymm{d}, ymm{d}, ymm{c}")),
                    2 => self.asm.line(format!("vfmadd231pd ymm{d}, ymm{X}, {y}")),
                    _ => self.asm.line(format!("vaddpd ymm{l}, ymm{l}, ymm{d}")),
                }
            }
        }
    }
}

/// Whether the accumulators already hold values.
#[derive(Clone, Copy, PartialEq)]
enum Columns {
    Fresh,
    Begun,
}

/// Whether a tile takes the carry of the tile below.
#[derive(Clone, Copy, PartialEq)]
enum Carry {
    Both,
    None,
}

fn memory(columns: std::ops::Range<usize>) -> Vec<(usize, Factor)> {
    columns.map(|column| (column, Factor::Memory)).collect()
}

fn at(base: &str, vectors: usize) -> String {
    format!("[{base}+{}]", VECTOR * vectors as isize)
}
