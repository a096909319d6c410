// Numbers modulo q of ML-DSA (FIPS 204), signed, one in each thread.

#pragma once

#include "word.cuh"

constexpr int Q = 8380417;
// 1 / q modulo 2^32.
constexpr u32 Q_INVERSE = 58728449;

// a b / 2^32 modulo q, below q in magnitude; |a b| is below 2^31 q.
#ifdef __CUDA_ARCH__
INLINE word montgomery(word a, word b) {
    u64 product;
    word high;
    asm("mul.wide.s32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
    asm("mul.hi.s32 %0, %1, %2;" : "=r"(high) : "r"(u32(product) * Q_INVERSE), "r"(Q));
    // The low halves are equal.
    return u32(product >> 32) - high;
}
#else
inline word montgomery(const word &a, const word &b) {
    word out;
    for (u32 i = 0; i < WARP; i++) {
        const long long product = (long long)(int(a.of[i])) * int(b.of[i]);
        const int factor = int(u32(product) * Q_INVERSE);
        out.of[i] = u32(product >> 32) - u32(((long long)(factor) * Q) >> 32);
    }
    return out;
}
#endif

// The same number modulo q, at most 3/4 q in magnitude. A number that differs from a multiple of q by less than 2^22
// becomes that difference.
INLINE word reduce(const word &a) { return a - shift_signed(a + word(1 << 22), 23) * word(u32(Q)); }

// From 0 to q - 1, for a number between -q and q.
INLINE word canonical(const word &a) { return a + (shift_signed(a, 31) & word(u32(Q))); }

// All ones if the number's magnitude is at least the bound.
INLINE word is_beyond(const word &a, int bound) {
    const word sign = shift_signed(a, 31);
    return shift_signed(word(u32(bound - 1)) - ((a ^ sign) - sign), 31);
}
