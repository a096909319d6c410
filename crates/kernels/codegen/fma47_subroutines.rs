//! What the multiplication and the squaring of fma47 share: triangles and heads of a tile, and its normalisation. As
//! subroutines they fit the cache of decoded instructions; inlined they do not.

use super::*;

impl Generator {
    pub(super) fn subroutines(&mut self) {
        self.asm.begin_subroutine("clear");
        self.clear_c();
        self.asm.lines((0..TILE).map(|c| format!("vxorpd ymm{0}, ymm{0}, ymm{0}", L + c)));
        self.asm.line("ret");

        // Full rows, as many as the entry says. Unrolled: the counts differ from tile to tile, and a loop's exit
        // would be mispredicted in most of them.
        self.asm.line(".p2align 6");
        for count in (1..=self.layout.limbs - 5).rev() {
            self.asm.entry_point(&format!("rows_{count}"));
            self.row(0, &memory(0..TILE));
            self.advance(1);
        }
        self.asm.line("ret");

        // The rows that end a lower tile: row r begins at column r, and stands r - 1 rows on.
        self.asm.begin_subroutine("triangle");
        self.row(0, &memory(1..TILE));
        self.asm.entry_point("triangle_2");
        for r in [5, 2, 4, 3] {
            self.row(r - 1, &memory(r..TILE));
        }
        self.asm.line("ret");

        // The rows that begin an upper tile: row r ends at column r.
        self.asm.line(".p2align 6");
        for r in [4, 3] {
            self.asm.entry_point(&format!("head_{}", r + 1));
            self.row(r, &memory(0..r + 1));
        }
        self.asm.entry_point("head_3");
        for r in [2, 1, 0] {
            self.row(r, &memory(0..r + 1));
        }
        self.asm.line("ret");

        // The rows about the diagonal of a square: row r begins at column 2r, with its x squared.
        let diagonal = |r: usize| {
            let mut products = vec![(2 * r, Factor::Itself)];
            products.extend(memory(2 * r + 1..TILE));
            products
        };
        self.asm.begin_subroutine("diagonal");
        self.row(0, &diagonal(0));
        self.asm.entry_point("diagonal_1");
        self.row(1, &diagonal(1));
        self.row(2, &diagonal(2));
        self.asm.line("ret");

        // A tile's digits to [rbx].
        self.asm.begin_subroutine("normalise");
        self.carry_in_and_digits(TILE, Carry::Both);
        self.asm.lines([
            format!("vmovapd {}, ymm13", at("r11", Layout::CARRY_C)),
            format!("vmovapd {}, ymm5", at("r11", Layout::CARRY_V)),
            "ret".to_owned(),
        ]);

        // F = T * NP mod 2^(6b).
        self.asm.begin_subroutine("last_digits");
        self.asm.call("clear");
        self.address("rax", "r11", Layout::T as isize);
        self.address("rcx", "r10", self.layout.np() as isize);
        self.six_low_columns();
        self.address("rbx", "r11", Layout::F as isize);
        self.carry_in_and_digits(TILE, Carry::None);
        self.asm.line("ret");

        // T + F * n is zero mod 2^(6b): only its carry is wanted.
        self.asm.begin_subroutine("last_carry");
        self.clear_c();
        for c in 0..TILE {
            self.asm.line(format!("vmovapd ymm{}, {}", L + c, at("r11", Layout::T + c)));
        }
        self.address("rax", "r11", Layout::F as isize);
        self.address("rcx", "r10", self.layout.n() as isize);
        self.six_low_columns();
        self.column_carries(TILE, Carry::None);
        self.asm.lines([
            format!("vaddpd ymm13, ymm13, {}", at("r11", Layout::CARRY_C)),
            format!("vmovapd {}, ymm13", at("r11", Layout::CARRY_C)),
            format!("vaddpd ymm5, ymm5, {}", at("r11", Layout::CARRY_V)),
            format!("vmovapd {}, ymm5", at("r11", Layout::CARRY_V)),
            "ret".to_owned(),
        ]);
    }

    /// The products of two six-digit numbers that land in the six low columns.
    pub(super) fn six_low_columns(&mut self) {
        self.row(0, &memory(0..TILE));
        self.advance(1);
        self.asm.call("triangle");
    }

    /// Splits the columns: afterwards `ymm(6+j)` is t_j, `ymm j` is v_j (t_j rounded to a multiple of 2^b), `ymm13`
    /// the last column's c - B, `ymm15` is 2^-b.
    pub(super) fn column_carries(&mut self, columns: usize, carry: Carry) {
        self.asm.line(format!("vmovapd ymm15, {}", at("r10", Layout::INVERSE)));
        self.asm.line(format!("vmovapd ymm14, {}", at("r10", Layout::MAGIC)));
        self.asm.line(format!("vmovapd ymm12, {}", at("r10", Layout::ANCHOR)));
        if carry == Carry::Both {
            self.asm.line(format!("vmovapd ymm13, {}", at("r11", Layout::CARRY_C)));
            self.asm.line(format!("vfmadd231pd ymm{L}, ymm13, ymm15"));
        }
        self.asm.lines((0..columns).map(|c| format!("vsubpd ymm{c}, ymm{c}, ymm12")));
        self.asm.line(format!("vmovapd ymm13, ymm{}", columns - 1));
        self.asm.lines((1..columns).map(|c| format!("vfmadd231pd ymm{}, ymm{}, ymm15", L + c, c - 1)));
        self.asm.lines((0..columns).map(|c| format!("vaddpd ymm{c}, ymm{}, ymm14", L + c)));
        self.asm.lines((0..columns).map(|c| format!("vsubpd ymm{c}, ymm{c}, ymm14")));
    }

    /// Normalises the columns and stores their digits at `[rbx]`.
    pub(super) fn carry_in_and_digits(&mut self, columns: usize, carry: Carry) {
        self.column_carries(columns, carry);
        self.asm.lines((0..columns).map(|c| format!("vsubpd ymm{0}, ymm{0}, ymm{c}", L + c)));
        if carry == Carry::Both {
            self.asm.line(format!("vmovapd ymm12, {}", at("r11", Layout::CARRY_V)));
            self.asm.line(format!("vfmadd231pd ymm{L}, ymm12, ymm15"));
        }
        self.asm.lines((1..columns).map(|c| format!("vfmadd231pd ymm{}, ymm{}, ymm15", L + c, c - 1)));
        self.asm.lines((0..columns).map(|c| format!("vmovapd {}, ymm{}", at("rbx", c), L + c)));
    }
}
