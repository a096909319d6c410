// Polynomials modulo q and x^256 + 1, each held by the threads of a warp; their transforms and packed forms.

#pragma once

#include "modular.cuh"

// Numbers of a thread.
constexpr int EACH = 8;

// Coefficient 32 r + lane is of[r] in that thread. Transforms are functions, of which there is one copy each: code for
// all calls would not fit the instruction cache.
struct Polynomial {
    word of[EACH];

    // Number-theoretic transform (FIPS 204, algorithm 41). `zetas` are its factors times 2^32. Results are at most the
    // largest coefficient plus 8 q in magnitude.
    COLD static Polynomial transform(Polynomial a, Warp warp, const u32 *zetas) {
        a.transform_within<EACH / 2>(zetas);
        a.transform_across<WARP / 2>(warp, zetas);
        return a;
    }

    // Inverse transform, times 2^32 (algorithm 42). Coefficients are below q in magnitude, before and after.
    COLD static Polynomial inverse_transform(Polynomial a, Warp warp, const u32 *zetas) {
        a.inverse_across<1>(warp, zetas);
        a.inverse_within<1>(zetas);
        // 2^64 / 256 modulo q.
        UNROLL for (int r = 0; r < EACH; r++) a.of[r] = montgomery(a.of[r], word(41978));
        return a;
    }

    // Unpacks a mask (algorithm 19): numbers of BITS bits, subtracted from 2^(BITS - 1).
    template <int BITS> INLINE void unpack(const Warp &warp, const u32 *packed) {
        UNROLL for (int r = 0; r < EACH; r++) {
            const auto place = [=](u32 lane) { return packed + r * BITS + BITS * lane / WARP; };
            const word low = warp.each([=](u32 lane) { return place(lane)[0]; });
            const word high = warp.each([=](u32 lane) { return place(lane)[1]; });
            const word field = warp.window(low, high, [](u32 lane) { return BITS * lane % WARP; });
            of[r] = word(1u << (BITS - 1)) - (field & word((1u << BITS) - 1));
        }
    }

  private:
    // Layers in which both numbers of a pair are in one thread.
    template <int DISTANCE> INLINE void transform_within(const u32 *zetas) {
        UNROLL for (int r = 0; r < EACH; r++) {
            if ((r & DISTANCE) != 0) continue;
            const word factor(zetas[EACH / 2 / DISTANCE + r / (2 * DISTANCE)]);
            const word product = montgomery(of[r + DISTANCE], factor);
            of[r + DISTANCE] = of[r] - product;
            of[r] = of[r] + product;
        }
        if constexpr (DISTANCE > 1) transform_within<DISTANCE / 2>(zetas);
    }

    template <int DISTANCE> INLINE void inverse_within(const u32 *zetas) {
        UNROLL for (int r = 0; r < EACH; r++) {
            if ((r & DISTANCE) != 0) continue;
            const word factor(zetas[EACH / DISTANCE - 1 - r / (2 * DISTANCE)]);
            const word difference = of[r + DISTANCE] - of[r];
            of[r] = of[r] + of[r + DISTANCE];
            of[r + DISTANCE] = montgomery(difference, factor);
        }
        if constexpr (2 * DISTANCE < EACH) inverse_within<2 * DISTANCE>(zetas);
    }

    // Layers in which the numbers of a pair are in different threads. The one in the upper thread is multiplied.
    template <u32 DISTANCE> INLINE void transform_across(const Warp &warp, const u32 *zetas) {
        const word is_upper = upper_of<DISTANCE>(warp);
        UNROLL for (int r = 0; r < EACH; r++) {
            const word factor = warp.each([=](u32 lane) { return zetas[BLOCKS<DISTANCE> + block<DISTANCE>(r, lane)]; });
            const word other = across<DISTANCE>(of[r]);
            const word product = montgomery(select(is_upper, of[r], other), factor);
            of[r] = select(is_upper, other, of[r]) + ((product ^ is_upper) - is_upper);
        }
        if constexpr (DISTANCE > 1) transform_across<DISTANCE / 2>(warp, zetas);
    }

    template <u32 DISTANCE> INLINE void inverse_across(const Warp &warp, const u32 *zetas) {
        const word is_upper = upper_of<DISTANCE>(warp);
        UNROLL for (int r = 0; r < EACH; r++) {
            const word factor =
                warp.each([=](u32 lane) { return zetas[2 * BLOCKS<DISTANCE> - 1 - block<DISTANCE>(r, lane)]; });
            const word other = across<DISTANCE>(of[r]);
            const word combined = of[r] + ((other ^ is_upper) - is_upper);
            of[r] = select(is_upper, montgomery(combined, factor), combined);
        }
        if constexpr (DISTANCE < WARP / 2) inverse_across<2 * DISTANCE>(warp, zetas);
    }

    // Number of blocks of a layer, and the block of a coefficient.
    template <u32 DISTANCE> static constexpr u32 BLOCKS = 128 / DISTANCE;
    template <u32 DISTANCE> INLINE static constexpr u32 block(u32 r, u32 lane) {
        return (WARP * r + lane) / (2 * DISTANCE);
    }
    template <u32 DISTANCE> INLINE static word upper_of(const Warp &warp) {
        return warp.each([](u32 lane) { return (lane & DISTANCE) != 0 ? ~0u : 0u; });
    }
};

// Numbers of BITS bits, one of each thread, in words: GROUP threads fill WORDS words.
template <int BITS> struct Packed {
    static constexpr u32 GROUP = BITS % 4 == 0 ? 8 : BITS % 2 == 0 ? 16 : 32;
    static constexpr u32 WORDS = BITS * GROUP / 32;

    // Writes them to WARP / GROUP * WORDS words from `to` on.
    INLINE static void put(const Warp &warp, const word &value, u32 *to) {
        word mine(0);
        UNROLL for (u32 i = 0; i < WORDS; i++) {
            const word part = warp.moved(value, [=](u32 lane) { return BITS * int(lane % GROUP) - 32 * int(i); });
            mine |= any<GROUP>(part) & warp.each([=](u32 lane) { return lane % GROUP == i ? ~0u : 0u; });
        }
        warp.put(mine, [=](u32 lane) {
            return lane % GROUP < WORDS ? to + lane / GROUP * WORDS + lane % GROUP : nullptr;
        });
    }
};
