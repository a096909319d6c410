// One 32-bit word in every thread of a warp, and its operations.
//
// The arithmetic above this file is written once. On a GPU a `word` is a register of one thread; on a CPU it is an
// array with an element for each of a warp's 32 threads, and every operation is a loop over them. On the CPU a word
// converts neither to a bool nor to an index, so code that compiles there has no branch and no address that depends
// on one: all secrets must be words, and then the compiler proves the claim of docs/kernels/cuda.md. `u32` and `int`
// are public numbers.

#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 WARP = 32;

#ifdef __CUDA_ARCH__

#define DEVICE __attribute__((device))
#define INLINE __attribute__((device, always_inline)) inline
// A separate function. What it takes by reference goes through local memory, which is cheap for rare calls.
#define COLD __attribute__((device, noinline))
#define UNROLL _Pragma("unroll")
#define KEEP_LOOP _Pragma("unroll 1")

typedef u32 word;

// Sixteen bytes, which one instruction reads or writes.
struct alignas(16) Quad {
    u32 of[4];
};

struct Warp {
    // Index in the grid.
    u32 index;
    u32 lane;

    INLINE static Warp here() {
        u32 block, size, thread;
        asm("mov.u32 %0, %%ctaid.x;" : "=r"(block));
        asm("mov.u32 %0, %%ntid.x;" : "=r"(size));
        asm("mov.u32 %0, %%tid.x;" : "=r"(thread));
        return Warp{(block * size + thread) / WARP, thread % WARP};
    }

    // The word `of(lane)` in each thread.
    template <class F> INLINE word each(F of) const { return of(lane); }

    // Writes a word to `to(lane)`, unless that is null.
    template <class F> INLINE void put(word value, F to) const {
        if (u32 *place = to(lane)) *place = value;
    }

    // The 32 bits from bit `count(lane)` on, from 0 to 31, of two words.
    template <class F> INLINE word window(word low, word high, F count) const {
        word out;
        asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(out) : "r"(low), "r"(high), "r"(count(lane)));
        return out;
    }

    // The value times 2^offset(lane), without the bits beyond the word; offsets may be negative.
    template <class F> INLINE word moved(word value, F offset) const {
        const int by = offset(lane);
        word left, right;
        // A count beyond 31 gives zero.
        asm("shl.b32 %0, %1, %2;" : "=r"(left) : "r"(value), "r"(by < 0 ? 32 : by));
        asm("shr.u32 %0, %1, %2;" : "=r"(right) : "r"(value), "r"(by < 0 ? -by : 32));
        return left | right;
    }

    // Runs public code in each of the first `count` threads, alone.
    template <class F> INLINE void alone(u32 count, F of) const {
        if (lane < count) of(lane);
        sync();
    }

    // Makes what each thread has written visible to the others.
    INLINE void sync() const { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

    // Four neighbouring words from and to `place(lane)`, which is a multiple of 16 bytes.
    template <class F> INLINE void get4(word *out, F place) const {
        const Quad quad = *reinterpret_cast<const Quad *>(place(lane));
        UNROLL for (int i = 0; i < 4; i++) out[i] = quad.of[i];
    }
    template <class F> INLINE void put4(const word *in, F place) const {
        Quad quad;
        UNROLL for (int i = 0; i < 4; i++) quad.of[i] = in[i];
        *reinterpret_cast<Quad *>(place(lane)) = quad;
    }
};

// Neighbours: G threads that hold one number together. No data crosses the borders of a group.
template <int G> INLINE word broadcast(word value, u32 from) {
    word out;
    asm("shfl.sync.idx.b32 %0, %1, %2, %3, 0xffffffff;"
                 : "=r"(out) : "r"(value), "r"(from), "n"(((32 - G) << 8) | 31));
    return out;
}
// From the neighbour below; the lowest gets 0.
template <int G> INLINE word from_below(word value) {
    word out;
    asm("{ .reg .pred p; shfl.sync.up.b32 %0|p, %1, 1, %2, 0xffffffff; @!p mov.u32 %0, 0; }"
                 : "=&r"(out) : "r"(value), "n"((32 - G) << 8));
    return out;
}
// From the neighbour above; the highest gets 0.
template <int G> INLINE word from_above(word value) {
    word out;
    asm("{ .reg .pred p; shfl.sync.down.b32 %0|p, %1, 1, %2, 0xffffffff; @!p mov.u32 %0, 0; }"
                 : "=&r"(out) : "r"(value), "n"(((32 - G) << 8) | 31));
    return out;
}
// Value of the thread whose number differs in the bit DISTANCE.
template <int DISTANCE> INLINE word across(word value) {
    word out;
    asm("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(out) : "r"(value), "n"(DISTANCE));
    return out;
}

INLINE word shift_signed(word value, int count) { return u32(int(value) >> count); }

// The upper word of `high` and `low` after a rotation to the left.
INLINE word funnel(word low, word high, int count) {
    word out;
    asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(out) : "r"(low), "r"(high), "r"(count));
    return out;
}

// Reads a word that is public from now on. Only words of SharedWords that are declared so may be revealed.
INLINE u32 revealed(const u32 *place) { return *static_cast<const volatile u32 *>(place); }

// Memory of a block of one warp.
template <int WORDS> struct SharedWords {
    INLINE static u32 *here() {
        static __attribute__((shared)) u32 all[WORDS];
        return all;
    }
};

#include "carry_device.cuh"

#else

#define DEVICE
#define INLINE inline
#define COLD
#define UNROLL
#define KEEP_LOOP

struct word {
    u32 of[WARP];

    word() = default;
    word(u32 value) {
        for (u32 &place : of) place = value;
    }
};

#define QUADRILLE_OPERATOR(op)                                                                                       \
    inline word operator op(const word &a, const word &b) {                                                          \
        word out;                                                                                                    \
        for (u32 i = 0; i < WARP; i++) out.of[i] = a.of[i] op b.of[i];                                               \
        return out;                                                                                                  \
    }
QUADRILLE_OPERATOR(+)
QUADRILLE_OPERATOR(-)
QUADRILLE_OPERATOR(*)
QUADRILLE_OPERATOR(&)
QUADRILLE_OPERATOR(|)
QUADRILLE_OPERATOR(^)
#undef QUADRILLE_OPERATOR
inline word operator>>(const word &a, int count) {
    word out;
    for (u32 i = 0; i < WARP; i++) out.of[i] = a.of[i] >> count;
    return out;
}
inline word operator~(const word &a) { return a ^ word(~0u); }
inline word &operator+=(word &a, const word &b) { return a = a + b; }
inline word &operator|=(word &a, const word &b) { return a = a | b; }

struct Warp {
    u32 index;

    template <class F> word each(F of) const {
        word out;
        for (u32 i = 0; i < WARP; i++) out.of[i] = of(i);
        return out;
    }
    template <class F> void put(const word &value, F to) const {
        for (u32 i = 0; i < WARP; i++) {
            if (u32 *place = to(i)) *place = value.of[i];
        }
    }
    template <class F> word window(const word &low, const word &high, F count) const {
        word out;
        for (u32 i = 0; i < WARP; i++) out.of[i] = u32((u64(high.of[i]) << 32 | low.of[i]) >> count(i));
        return out;
    }
    template <class F> word moved(const word &value, F offset) const {
        word out;
        for (u32 i = 0; i < WARP; i++) {
            const int by = offset(i);
            const u64 wide = u64(value.of[i]) << 32;
            out.of[i] = by <= -32 || by >= 32 ? 0 : u32((by < 0 ? wide >> -by : wide << by) >> 32);
        }
        return out;
    }
    template <class F> void alone(u32 count, F of) const {
        for (u32 i = 0; i < count; i++) of(i);
    }
    void sync() const {}
    template <class F> void get4(word *out, F place) const {
        for (u32 i = 0; i < WARP; i++) {
            const u32 *from = place(i);
            for (int j = 0; j < 4; j++) out[j].of[i] = from[j];
        }
    }
    template <class F> void put4(const word *in, F place) const {
        for (u32 i = 0; i < WARP; i++) {
            u32 *to = place(i);
            for (int j = 0; j < 4; j++) to[j] = in[j].of[i];
        }
    }
};

template <int G> word broadcast(const word &value, u32 from) {
    word out;
    for (u32 i = 0; i < WARP; i++) out.of[i] = value.of[i - i % G + from % G];
    return out;
}
template <int G> word from_below(const word &value) {
    word out;
    for (u32 i = 0; i < WARP; i++) out.of[i] = i % G == 0 ? 0 : value.of[i - 1];
    return out;
}
template <int G> word from_above(const word &value) {
    word out;
    for (u32 i = 0; i < WARP; i++) out.of[i] = i % G == G - 1 ? 0 : value.of[i + 1];
    return out;
}
template <int DISTANCE> word across(const word &value) {
    word out;
    for (u32 i = 0; i < WARP; i++) out.of[i] = value.of[i ^ DISTANCE];
    return out;
}

inline word shift_signed(const word &value, int count) {
    word out;
    for (u32 i = 0; i < WARP; i++) out.of[i] = u32(int(value.of[i]) >> count);
    return out;
}

inline word funnel(const word &low, const word &high, int count) {
    word out;
    for (u32 i = 0; i < WARP; i++) out.of[i] = u32((u64(high.of[i]) << 32 | low.of[i]) << count >> 32);
    return out;
}

inline u32 revealed(const u32 *place) { return *place; }

template <int WORDS> struct SharedWords {
    static u32 *here() {
        static thread_local u32 all[WORDS];
        return all;
    }
};

#include "carry_portable.cuh"

#endif

// `a` where the mask is all ones, `b` where it is zero.
INLINE word select(const word &mask, const word &a, const word &b) { return b ^ (mask & (a ^ b)); }

// 0 to zero, 1 to all ones.
INLINE word mask_of(const word &bit) { return word(0) - bit; }

// Words of each group of G threads, combined by OR, or added.
template <int G> INLINE word any(const word &value) {
    if constexpr (G == 1) return value;
    else return any<G / 2>(value | across<G / 2>(value));
}
template <int G> INLINE word sum(const word &value) {
    if constexpr (G == 1) return value;
    else return sum<G / 2>(value + across<G / 2>(value));
}

// All ones if both are below 2^31 and equal.
INLINE word equal_mask(const word &a, const word &b) { return mask_of(((a ^ b) - word(1)) >> 31); }
