// Carry chains in plain C++; carry_device.cuh describes their results.

#pragma once

inline word add_carry(word &r, const word &b) {
    word carry;
    for (u32 i = 0; i < WARP; i++) {
        const u64 sum = u64(r.of[i]) + b.of[i];
        r.of[i] = u32(sum);
        carry.of[i] = u32(sum >> 32);
    }
    return carry;
}

template <int L> struct Chain {
    static void mad(word *acc, const word *a, const word &b, word &top) { mad_with(acc, a, b, top, word(0)); }

    static void mad_after(word &low, const word &addend, word *acc, const word *a, const word &b, word &top) {
        const word carry = add_carry(low, addend);
        mad_with(acc, a, b, top, carry);
    }

    static word add(word *r, const word *b) {
        word carry(0);
        for (int j = 0; j < L; j++) add_one(r[j], b[j], carry);
        return carry;
    }

    static word ripple(word *r, const word &b) {
        word carry = b;
        for (int j = 0; j < L; j++) add_one(r[j], word(0), carry);
        return carry;
    }

  private:
    static void add_one(word &r, const word &b, word &carry) {
        for (u32 i = 0; i < WARP; i++) {
            const u64 sum = u64(r.of[i]) + b.of[i] + carry.of[i];
            r.of[i] = u32(sum);
            carry.of[i] = u32(sum >> 32);
        }
    }

    static void mad_with(word *acc, const word *a, const word &b, word &top, word carry) {
        for (int j = 0; j < L; j += 2) {
            for (u32 i = 0; i < WARP; i++) {
                const u64 low = u64(a[j].of[i]) * b.of[i] + acc[j].of[i] + carry.of[i];
                acc[j].of[i] = u32(low);
                const u64 high = (low >> 32) + acc[j + 1].of[i];
                acc[j + 1].of[i] = u32(high);
                carry.of[i] = u32(high >> 32);
            }
        }
        top += carry;
    }
};
