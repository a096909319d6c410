// Numbers of D digits of 52 bits that one thread holds as doubles, for computation on FP64 units.
//
// Digits are whole numbers from -2^51 to 2^51. With R = 2^(52 D), at least 2^16 times the modulus n, `multiply`
// returns a b / R mod n as a number above -n / 2^15 and below n + n / 2^15, which may be multiplied again.

#pragma once

#include "real.cuh"

template <int D, int BLOCK> struct Digits {
    using Factor = Shared<D, BLOCK>;

    // Number of digits that are squared together, including both sides of the diagonal.
    static constexpr int ROWS = D % 4 == 0 ? 4 : 5;

    // power = power b / R mod n; b becomes the result too. `inverse` is -n^-1 mod 2^52.
    INLINE static void multiply(real *power, Factor &b, const real *n, const long_word &inverse) {
        long_word sum[D + 1];
        UNROLL for (int c = 0; c < D; c++) sum[c] = long_word(0 - anchors<false>(c));
        real factor = b.get(0);
        KEEP_LOOP for (int i = 0; i < D; i++) {
            const real next = b.get(i + 1);
            add_products<0, D>(sum, power, factor, factor);
            reduce(sum, n, inverse);
            factor = next;
        }
        normalise<false>(power, b, sum);
    }

    // power = power^2 / R mod n; b is the same number before and after.
    INLINE static void square(real *power, Factor &b, const real *n, const long_word &inverse) {
        long_word sum[D + 1];
        UNROLL for (int c = 0; c < D; c++) sum[c] = long_word(0 - anchors<true>(c));
        square_rows<0>(sum, power, b, n, inverse);
        normalise<true>(power, b, sum);
    }

  private:
    // Number of products of digits i and j with i + j = c that are computed: all pairs in a multiplication; in a
    // squaring those with j at least i rounded down to a multiple of ROWS.
    static constexpr int products(int c, bool squares) {
        const int least = c - D + 1 > 0 ? c - D + 1 : 0;
        const int rows = c / (2 * ROWS), rest = c % (2 * ROWS);
        int most = squares ? rows * ROWS + (rest < ROWS ? rest : ROWS - 1) : c;
        most = most < D ? most : D - 1;
        return c < 0 || most < least ? 0 : most - least + 1;
    }

    // Sum of the constants of all parts added to column c: the low parts of its own products, and the high parts of
    // those one column below. The lowest product of each reduction has no low part.
    template <bool SQUARES> static constexpr u64 anchors(int c) {
        const int low = products(c, SQUARES) + products(c, false) - (c < D ? 1 : 0);
        const int high = products(c - 1, SQUARES) + products(c - 1, false);
        return u64(low) * LOW_BITS + u64(high) * HIGH_BITS;
    }

    // sum += a b, for the digits of a from FIRST on; from DOUBLED on, b is `twice`.
    template <int FIRST, int DOUBLED>
    INLINE static void add_products(long_word *sum, const real *a, const real &b, const real &twice) {
        long_word below(0);
        UNROLL for (int j = FIRST; j < D; j++) {
            const real factor = j < DOUBLED ? b : twice;
            const long_word high = product_high(a[j], factor);
            const long_word low = product_low(a[j], factor, high);
            sum[j] = j == FIRST ? sum[j] + low : sum[j] + low + below;
            below = high;
        }
        sum[D] = below;
    }

    // sum = (sum + q n) / 2^52 with the q that makes the quotient whole.
    INLINE static void reduce(long_word *sum, const real *n, const long_word &inverse) {
        const real q = real_less(sum[0] * inverse, 0);
        // The low part of the lowest product is the difference to the next multiple of 2^52.
        sum[1] = sum[1] + shift_signed(sum[0] + long_word(DIGIT_MASK), 52);
        long_word below = product_high(n[0], q);
        UNROLL for (int j = 1; j < D; j++) {
            const long_word high = product_high(n[j], q);
            sum[j - 1] = sum[j] + product_low(n[j], q, high) + below;
            below = high;
        }
        sum[D - 1] = sum[D] + below;
    }

    template <int FIRST>
    INLINE static void square_rows(long_word *sum, const real *a, const Factor &b, const real *n,
                                   const long_word &inverse) {
        if constexpr (FIRST < D) {
            real factor = b.get(FIRST);
            KEEP_LOOP for (int i = FIRST; i < FIRST + ROWS; i++) {
                const real next = b.get(i + 1);
                add_products<FIRST, FIRST + ROWS>(sum, a, factor, factor + factor);
                reduce(sum, n, inverse);
                factor = next;
            }
            square_rows<FIRST + ROWS>(sum, a, b, n, inverse);
        }
    }

    // Converts columns to digits. A carry is kept 2^11 too large, so that it is not negative.
    template <bool SQUARES> INLINE static void normalise(real *out, Factor &b, const long_word *sum) {
        long_word carry(0);
        UNROLL for (int j = 0; j < D; j++) {
            const u64 constant = (1ull << 51) + (1ull << 63) - (j > 0 ? 1ull << 11 : 0) - anchors<SQUARES>(D + j);
            const long_word column = sum[j] + carry + long_word(constant);
            out[j] = real_less(column, 0x1p51);
            b.put(j, out[j]);
            carry = column >> 52;
        }
    }
};
