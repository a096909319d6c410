//! Subroutines shared by the multiplication and the squaring of fma47: triangles and heads of a tile, and its
//! normalisation. As subroutines they fit the cache of decoded instructions; inlined they do not.

use super::*;

impl Generator {
    pub(super) fn subroutines(&mut self) {
        self.asm.begin_subroutine("clear");
        self.asm.line(format!("vmovapd ymm{C}, {}", at("r10", Layout::ANCHOR)));
        self.asm.lines((1..TILE).map(|c| format!("vmovapd ymm{c}, ymm{C}")));
        self.asm.lines((0..TILE).map(|c| format!("vxorpd ymm{0}, ymm{0}, ymm{0}", L + c)));
        self.asm.line("ret");

        // A full row into fresh columns: c starts at the anchor, and l is the rest of the product.
        self.asm.begin_subroutine("first_row");
        self.asm.lines([
            format!("vmovapd ymm{X}, {}", at("rax", 0)),
            format!("vmovapd ymm15, {}", at("r10", Layout::ANCHOR)),
        ]);
        self.asm.lines((0..TILE).map(|c| format!("vmovapd ymm{c}, ymm15")));
        let product = |to: usize, c: usize| format!("vfmadd231pd ymm{to}, ymm{X}, {}", at("rcx", c));
        self.asm.lines((0..TILE).map(|c| product(c, c)));
        self.asm.lines((0..TILE).map(|c| format!("vsubpd ymm{}, ymm15, ymm{c}", L + c)));
        self.asm.lines((0..TILE).map(|c| product(L + c, c)));
        self.advance(1);
        self.asm.line("ret");

        // Full rows, selected by the entry point. Unrolled: the counts differ from tile to tile, and a loop's exit
        // would be mispredicted in most of them.
        self.asm.line(".p2align 6");
        for count in (1..=self.layout.limbs - 5).rev() {
            self.asm.entry_point(&format!("rows_{count}"));
            self.row(0, &memory(0..TILE));
            self.advance(1);
        }
        self.asm.line("ret");

        // Final rows of a lower tile: row r begins at column r, and is r - 1 rows further.
        self.asm.begin_subroutine("triangle");
        self.row(0, &memory(1..TILE));
        self.asm.entry_point("triangle_2");
        for r in [5, 2, 4, 3] {
            self.row(r - 1, &memory(r..TILE));
        }
        self.asm.line("ret");

        // First rows of an upper tile: row r ends at column r.
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

        // Rows around the diagonal of a square: row r begins at column 2r, with its x squared.
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

        // Stores a tile's digits at [rbx].
        self.asm.begin_subroutine("normalise");
        self.carry_in_and_digits(TILE, Carry::Both);
        self.asm.lines([
            format!("vmovapd {}, ymm13", at("r11", Layout::CARRY_C)),
            format!("vmovapd {}, ymm5", at("r11", Layout::CARRY_V)),
            "ret".to_owned(),
        ]);

        // F = T * NP mod 2^(6b).
        self.asm.begin_subroutine("last_digits");
        self.address("rax", "r11", Layout::T as isize);
        self.address("rcx", "r10", self.layout.np() as isize);
        self.asm.call("first_row");
        self.asm.call("triangle");
        self.address("rbx", "r11", Layout::F as isize);
        self.carry_in_and_digits(TILE, Carry::None);
        self.asm.line("ret");

        // T + F * n is zero mod 2^(6b), so its carry is a whole number, determined by the sixth column and the carry
        // of the fifth. The column is summed in ymm0 and ymm6 as in a row, the fifth in ymm1, rounded.
        self.asm.begin_subroutine("last_carry");
        let n = self.layout.n();
        self.asm.lines([
            format!("vmovapd ymm14, {}", at("r10", Layout::ANCHOR)),
            format!("vmovapd ymm15, {}", at("r10", Layout::INVERSE)),
            "vmovapd ymm0, ymm14".to_owned(),
            format!("vmovapd ymm6, {}", at("r11", Layout::T + TILE - 1)),
            "vxorpd ymm1, ymm1, ymm1".to_owned(),
        ]);
        for i in 0..TILE {
            self.asm.line(format!("vmovapd ymm{X}, {}", at("r11", Layout::F + i)));
            let y = at("r10", n + TILE - 1 - i);
            self.asm.lines([
                "vmovapd ymm13, ymm0".to_owned(),
                format!("vfmadd231pd ymm0, ymm{X}, {y}"),
                "vsubpd ymm13, ymm13, ymm0".to_owned(),
                format!("vfmadd231pd ymm13, ymm{X}, {y}"),
                "vaddpd ymm6, ymm6, ymm13".to_owned(),
            ]);
            if i + 1 < TILE {
                self.asm.line(format!("vfmadd231pd ymm1, ymm{X}, {}", at("r10", n + TILE - 2 - i)));
            }
        }
        self.asm.lines([
            "vfmadd231pd ymm6, ymm1, ymm15".to_owned(),
            "vsubpd ymm0, ymm0, ymm14".to_owned(),
            "vaddpd ymm0, ymm0, ymm6".to_owned(),
            // Rounded to a multiple of 2^b.
            format!("vmovapd ymm14, {}", at("r10", Layout::MAGIC)),
            "vaddpd ymm0, ymm0, ymm14".to_owned(),
            "vsubpd ymm0, ymm0, ymm14".to_owned(),
            format!("vaddpd ymm0, ymm0, {}", at("r11", Layout::CARRY_C)),
            format!("vmovapd {}, ymm0", at("r11", Layout::CARRY_C)),
            "ret".to_owned(),
        ]);
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
