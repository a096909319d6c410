// One double, or one 64-bit word, in every thread of a warp, in the manner of word.cuh, and the product of two
// doubles.
//
// A `real` is a whole number. A product a b of at most 2^103 in magnitude has two parts, floor (a b / 2^52) and the
// remainder, from 0 to 2^52 - 1. They are computed as doubles of one binade each, so that their bits, taken as a
// number, are the part plus a constant: HIGH_BITS and LOW_BITS. docs/kernels/cuda.md explains why.

#pragma once

#include "word.cuh"

constexpr u64 LOW_BITS = 0x433ull << 52;            // of the double 2^52
constexpr u64 HIGH_BITS = 0x467ull << 52 | 1ull << 51; // of the double 1.5 * 2^104
constexpr u64 DIGIT_MASK = (1ull << 52) - 1;

#ifdef __CUDA_ARCH__

typedef double real;
typedef u64 long_word;

// The same value, opaque to the compiler, so that a mask stays a mask.
INLINE word opaque(word value) {
    asm("mov.b32 %0, %0;" : "+r"(value));
    return value;
}

INLINE long_word bits_of(real value) { return __builtin_bit_cast(u64, value); }
INLINE real real_of(long_word bits) { return __builtin_bit_cast(double, bits); }

INLINE long_word join(word low, word high) { return low | u64(high) << 32; }
INLINE word low_of(long_word value) { return u32(value); }
INLINE word high_of(long_word value) { return u32(value >> 32); }
INLINE long_word shift_signed(long_word value, int count) { return u64((long long)(value) >> count); }

// HIGH_BITS + floor (a b / 2^52): rounding towards zero is rounding down, because the sum is positive.
INLINE long_word product_high(real a, real b) { return bits_of(__nvvm_fma_rz_d(a, b, 0x1.8p104)); }

// LOW_BITS + (a b mod 2^52). Both steps are exact.
INLINE long_word product_low(real a, real b, long_word high) {
    return bits_of(__nvvm_fma_rz_d(a, b, (0x1.8p104 + 0x1p52) - real_of(high)));
}

// Numbers below 2^52 as doubles, less a constant.
INLINE real real_less(long_word value, double constant) {
    return real_of((value & DIGIT_MASK) | LOW_BITS) - (0x1p52 + constant);
}

// Converts a digit, of at most 2^51 in magnitude, to a signed number.
INLINE long_word whole_of(real digit) { return bits_of(digit + 0x1.8p52) - (LOW_BITS | 1ull << 51); }

// D digits of one thread, with computed (public) indexes; and one more, which is never used.
template <int D, int BLOCK> struct Shared {
    double *mine;

    INLINE Shared() {
        static __attribute__((shared)) double all[(D + 1) * BLOCK];
        u32 thread;
        asm("mov.u32 %0, %%tid.x;" : "=r"(thread));
        mine = all + thread;
    }
    INLINE real get(int i) const { return mine[i * BLOCK]; }
    INLINE void put(int i, real value) const { mine[i * BLOCK] = value; }
};

#else

struct real {
    double of[WARP];
};

struct long_word {
    u64 of[WARP];

    long_word() = default;
    long_word(u64 value) {
        for (u64 &place : of) place = value;
    }
};

#define QUADRILLE_OPERATOR(op)                                                                                       \
    inline long_word operator op(const long_word &a, const long_word &b) {                                           \
        long_word out;                                                                                               \
        for (u32 i = 0; i < WARP; i++) out.of[i] = a.of[i] op b.of[i];                                               \
        return out;                                                                                                  \
    }
QUADRILLE_OPERATOR(+)
QUADRILLE_OPERATOR(*)
QUADRILLE_OPERATOR(&)
QUADRILLE_OPERATOR(|)
#undef QUADRILLE_OPERATOR

template <class To, class From, class F> To map(const From &value, F of) {
    To out;
    for (u32 i = 0; i < WARP; i++) out.of[i] = of(value.of[i]);
    return out;
}

inline long_word operator>>(const long_word &a, int count) {
    return map<long_word>(a, [=](u64 value) { return value >> count; });
}
inline real operator+(const real &a, const real &b) {
    real out;
    for (u32 i = 0; i < WARP; i++) out.of[i] = a.of[i] + b.of[i];
    return out;
}

inline word opaque(const word &value) { return value; }

inline long_word bits_of(const real &value) {
    long_word out;
    __builtin_memcpy(&out, &value, sizeof out);
    return out;
}
inline real real_of(const long_word &bits) {
    real out;
    __builtin_memcpy(&out, &bits, sizeof out);
    return out;
}

inline long_word join(const word &low, const word &high) {
    long_word out;
    for (u32 i = 0; i < WARP; i++) out.of[i] = low.of[i] | u64(high.of[i]) << 32;
    return out;
}
inline word low_of(const long_word &value) {
    return map<word>(value, [](u64 bits) { return u32(bits); });
}
inline word high_of(const long_word &value) {
    return map<word>(value, [](u64 bits) { return u32(bits >> 32); });
}
inline long_word shift_signed(const long_word &value, int count) {
    return map<long_word>(value, [=](u64 bits) { return u64((long long)(bits) >> count); });
}

// Detects multiplications beyond the kernel's bounds.
__extension__ typedef __int128 i128;
inline i128 product(double a, double b) {
    const i128 product = i128((long long)(a)) * (long long)(b), most = i128(1) << 103;
    if (product > most || product < -most) __builtin_trap();
    return product;
}
inline long_word product_high(const real &a, const real &b) {
    long_word out;
    for (u32 i = 0; i < WARP; i++) out.of[i] = HIGH_BITS + u64(product(a.of[i], b.of[i]) >> 52);
    return out;
}
inline long_word product_low(const real &a, const real &b, const long_word &) {
    long_word out;
    for (u32 i = 0; i < WARP; i++) out.of[i] = LOW_BITS + (u64(product(a.of[i], b.of[i])) & DIGIT_MASK);
    return out;
}

inline real real_less(const long_word &value, double constant) {
    return map<real>(value, [=](u64 bits) { return double((long long)(bits & DIGIT_MASK)) - constant; });
}
inline long_word whole_of(const real &digit) {
    return map<long_word>(digit, [](double value) { return u64((long long)(value)); });
}

// Fault injection for tests: called with every stored digit, and may change it or other data.
inline thread_local void (*disturb)(real &) = nullptr;

template <int D, int BLOCK> struct Shared {
    real own[D + 1];

    const real &get(int i) const { return own[i]; }
    void put(int i, const real &value) {
        own[i] = value;
        if (disturb != nullptr) disturb(own[i]);
    }
};

#endif
