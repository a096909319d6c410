// Numbers held by several threads together: G threads with L words each, the lowest words in the lowest thread.
//
// For numbers of W = G L words and a modulus n of the same length, with R = 2^(32 (W + 1)), one word longer:
// `multiply` returns a b / R mod n as a number below n + 2^(32 (W - 1)). Accepted keys have n < 2^(32 W) - 2^(32 (W -
// 1) + 2), so the result fits W words, may be multiplied again, and needs no subtraction of n.

#pragma once

#include "word.cuh"

template <int G, int L> struct Number {
    static constexpr int WORDS = G * L;

    // Partial product: even[j] is at word j, odd[j] at word j + 1, `even_top` at word L and `odd_top` at word L + 1.
    // Products of words with even numbers go into `even`, the others into `odd`, so that no two products of one chain
    // overlap. `extra` must still be added at word 0.
    struct Growing {
        word even[L], odd[L];
        word even_top, odd_top, extra;

        INLINE Growing() : even_top(0), odd_top(0), extra(0) {
            UNROLL for (int j = 0; j < L; j++) even[j] = odd[j] = word(0);
        }

        INLINE void add_product(const word *a, const word &b) {
            Chain<L>::mad_after(even[0], extra, odd, a + 1, b, odd_top);
            Chain<L>::mad(even, a, b, even_top);
        }

        INLINE void add_multiple(const word *n, const word &m) {
            Chain<L>::mad(odd, n + 1, m, odd_top);
            Chain<L>::mad(even, n, m, even_top);
        }

        // Shifts down by one word over all threads. Returns the word shifted out of this thread; the lowest thread's
        // word is dropped. Bounds of the tops: they count carries, at most four for each row, before they are moved
        // on.
        INLINE word shift() {
            const word fallen = even[0], second = even[1];
            const word received = from_above<G>(fallen);
            word next_odd[L];
            UNROLL for (int j = 0; j + 2 < L; j++) next_odd[j] = even[j + 2];
            next_odd[L - 2] = even_top;
            next_odd[L - 1] = add_carry(next_odd[L - 2], received);
            UNROLL for (int j = 0; j < L; j++) {
                even[j] = odd[j];
                odd[j] = next_odd[j];
            }
            even_top = odd_top;
            odd_top = word(0);
            extra = second;
            return fallen;
        }

        // Collects all parts into one number; the part beyond W words is zero.
        INLINE void collect(word *r) const {
            word parts[L];
            UNROLL for (int j = 0; j < L; j++) r[j] = even[j];
            parts[0] = extra;
            UNROLL for (int j = 1; j < L; j++) parts[j] = odd[j - 1];
            const word top = Chain<L>::add(r, parts) + even_top + odd[L - 1];
            carry_upwards(r, top);
        }
    };

    // Propagates the carry of each thread into the next one up, and returns the one of the highest.
    INLINE static word carry_upwards(word *r, const word &own) {
        word out = own, sent = own;
        UNROLL for (int i = 1; i < G; i++) {
            sent = Chain<L>::ripple(r, from_below<G>(sent));
            out += sent;
        }
        return broadcast<G>(out, G - 1);
    }

    // r = a b / R mod n, below n + 2^(32 (W - 1)); `inverse` is -n^-1 mod 2^32.
    INLINE static void multiply(word *r, const word *a, const word *b, const word *n, const word &inverse) {
        Growing t;
        KEEP_LOOP for (int thread = 0; thread < G; thread++) {
            UNROLL for (int k = 0; k < L; k++) {
                t.add_product(a, broadcast<G>(b[k], u32(thread)));
                t.add_multiple(n, broadcast<G>(t.even[0] * inverse, 0));
                t.shift();
            }
        }
        // One word more than W, without which the result would have to be compared with n.
        t.odd_top += Chain<L>::ripple(t.odd, add_carry(t.even[0], t.extra));
        t.add_multiple(n, broadcast<G>(t.even[0] * inverse, 0));
        t.shift();
        t.collect(r);
    }

    // low + 2^(32 W) high = a b.
    INLINE static void multiply_wide(const Warp &warp, word *low, word *high, const word *a, const word *b) {
        Growing t;
        UNROLL for (int j = 0; j < L; j++) low[j] = word(0);
        KEEP_LOOP for (int thread = 0; thread < G; thread++) {
            const word mine = warp.each([=](u32 lane) { return lane % G == u32(thread) ? ~0u : 0u; });
            UNROLL for (int k = 0; k < L; k++) {
                t.add_product(a, broadcast<G>(b[k], u32(thread)));
                low[k] |= mine & broadcast<G>(t.shift(), 0);
            }
        }
        t.collect(high);
    }

    // r += a; returns the carry.
    INLINE static word add(word *r, const word *a) { return carry_upwards(r, Chain<L>::add(r, a)); }

    // r -= a; returns 1 if r was at least a, else 0, and r is 2^(32 W) too large.
    INLINE static word subtract(const Warp &warp, word *r, const word *a) {
        word complement[L];
        UNROLL for (int j = 0; j < L; j++) complement[j] = ~a[j];
        const word one = warp.each([](u32 lane) { return lane % G == 0 ? 1u : 0u; });
        const word first = Chain<L>::ripple(complement, one);
        return carry_upwards(r, Chain<L>::add(r, complement) + first);
    }

    // Subtracts n if r + 2^(32 W) carry is at least n.
    INLINE static void reduce_once(const Warp &warp, word *r, const word *n, const word &carry) {
        word less[L];
        UNROLL for (int j = 0; j < L; j++) less[j] = r[j];
        const word enough = mask_of(subtract(warp, less, n) | carry);
        UNROLL for (int j = 0; j < L; j++) r[j] = select(enough, less[j], r[j]);
    }

    // The number 1.
    INLINE static void set_one(const Warp &warp, word *r) {
        UNROLL for (int j = 0; j < L; j++) r[j] = word(0);
        r[0] = warp.each([](u32 lane) { return lane % G == 0 ? 1u : 0u; });
    }

    // Returns all ones if the numbers are equal.
    INLINE static word equal(const word *a, const word *b) {
        word difference(0);
        UNROLL for (int j = 0; j < L; j++) difference |= a[j] ^ b[j];
        word all(0);
        UNROLL for (int i = 0; i < G; i++) all |= broadcast<G>(difference, u32(i));
        // Zero only if there is no difference: a word or its negative has the top bit.
        return mask_of((all | (word(0) - all)) >> 31) ^ word(~0u);
    }
};
