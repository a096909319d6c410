// Exponentiations of RSA private operations by FP64 units, one thread for each prime. The steps before and after are
// Rsa::prepare and Rsa::finish (rsa.cuh), in integers.

#pragma once

#include "digits.cuh"
#include "rsa.cuh"

constexpr u32 BLOCK52 = 128;

// D digits of 52 bits for a prime of T L words.
template <int T, int L, int D> struct Exponentiation {
    static constexpr int W = T * L;
    static constexpr u32 PER_WARP = WARP / 2;
    static constexpr int WINDOW = 3;
    static constexpr u32 ENTRIES = 1 << WINDOW;
    static constexpr int WINDOWS = (32 * W + WINDOW - 1) / WINDOW;
    static constexpr u32 TABLE_WORDS = ENTRIES * D * 2 * WARP;

    using Number = Digits<D, int(BLOCK52)>;
    using Factor = typename Number::Factor;

    const Batch<T, L> &batch;
    const Warp warp;

    INLINE static void run(const Batch<T, L> &batch, const Warp &warp) {
        if (warp.index * PER_WARP < batch.count) Exponentiation{batch, warp}.operation();
    }

  private:
    // Threads without an operation of their own repeat the last one, and write nothing.
    INLINE u32 wanted(u32 lane) const { return warp.index * PER_WARP + lane / 2; }
    INLINE u32 number(u32 lane) const { return wanted(lane) < batch.count ? wanted(lane) : batch.count - 1; }
    INLINE const Key<T, L> &key(u32 lane) const { return batch.keys[batch.slots[number(lane)]]; }
    INLINE const u32 *prime(u32 lane) const { return key(lane).primes + lane % 2 * W; }
    INLINE u32 *scratch(u32 lane, u32 which) const {
        return batch.scratch + (u64(which) * batch.count + number(lane)) * (2 * W) + lane % 2 * W;
    }

    INLINE void operation() const {
        Factor factor;
        real n[D], power[D];
        load(factor, [this](u32 lane) { return prime(lane); });
        UNROLL for (int j = 0; j < D; j++) n[j] = factor.get(j);
        const long_word inverse = inverse52();
        load(factor, [this](u32 lane) { return scratch(lane, 1); });
        put_entry(0, factor);
        load(factor, [this](u32 lane) { return scratch(lane, 0); });
        put_entry(1, factor);
        UNROLL for (int j = 0; j < D; j++) power[j] = factor.get(j);

        // First the table; then fixed windows from the top, the same for every exponent; then the conversion from
        // Montgomery form. All in one loop, so that there is one copy of the code.
        KEEP_LOOP for (int step = 2 - int(ENTRIES); step <= WINDOWS; step++) {
            if (step < 0) {
                get_base(factor);
            } else if (step == WINDOWS) {
                KEEP_LOOP for (int j = 0; j < D; j++) factor.put(j, real_less(long_word(j == 0), 0));
            } else {
                if (step > 0) {
                    KEEP_LOOP for (int i = 0; i < WINDOW; i++) Number::square(power, factor, n, inverse);
                }
                choose_entry(factor, exponent_bits(WINDOW * (WINDOWS - 1 - step)));
                if (step == 0) {
                    UNROLL for (int j = 0; j < D; j++) power[j] = factor.get(j);
                    continue;
                }
            }
            Number::multiply(power, factor, n, inverse);
            if (step < 0) put_entry(u32(step + int(ENTRIES)), factor);
        }
        store(factor);
        wipe(factor);
    }

    // Computes -n^-1 modulo 2^64 from that modulo 2^32, by a Newton step.
    INLINE long_word inverse52() const {
        const word half = warp.each([this](u32 lane) { return key(lane).negative_inverses[lane % 2]; });
        const word low = warp.each([this](u32 lane) { return prime(lane)[0]; });
        const word high = warp.each([this](u32 lane) { return prime(lane)[1]; });
        const long_word x = join(half, word(0));
        return x * (join(low, high) * x + long_word(2));
    }

    // Converts W words to digits.
    template <class F> INLINE void load(Factor &out, F of) const {
        long_word carry(0);
        u32 from = 0;
        KEEP_LOOP for (int j = 0; j < D; j++, from += 52) {
            const u32 at = from / 32;
            word words[3];
            UNROLL for (int i = 0; i < 3; i++) {
                words[i] = warp.each([=](u32 lane) { return at + i < u32(W) ? of(lane)[at + i] : 0; });
            }
            const long_word first = join(words[0], words[1]) >> int(from % 32);
            const long_word second = join(word(0), words[2]) >> int(from % 32);
            // The third word's bits are those from 64 on.
            const long_word chunk = join(low_of(first), high_of(first) | low_of(second)) & long_word(DIGIT_MASK);
            const long_word column = chunk + carry + long_word(1ull << 51);
            out.put(j, real_less(column, 0x1p51));
            carry = column >> 52;
        }
    }

    // Converts the digits of a non-negative number to W words, stored in place of x.
    INLINE void store(Factor &number) const {
        long_word carry(0);
        KEEP_LOOP for (int j = 0; j < D; j++) {
            const long_word column = whole_of(number.get(j)) + carry;
            number.put(j, real_of(column & long_word(DIGIT_MASK)));
            carry = shift_signed(column, 52);
        }
        int at = 0, shift = 0;
        KEEP_LOOP for (int i = 0; i < W; i++) {
            const word low = low_of(bits_of(number.get(at)) >> shift);
            // The missing bits of the word, if any, begin at bit 0 of the next digit.
            const long_word next = at + 1 < D ? bits_of(number.get(at + 1)) : long_word(0);
            const word high = low_of(next * long_word(shift > 20 ? 1ull << (52 - shift) : 0));
            warp.put(low | high, [=](u32 lane) {
                return wanted(lane) < batch.count ? scratch(lane, 0) + i : nullptr;
            });
            at += shift < 20 ? 0 : 1;
            shift += shift < 20 ? 32 : 32 - 52;
        }
    }

    // Returns the bits of the exponent from this one on.
    INLINE word exponent_bits(int from) const {
        const int at = from / 32;
        const word low = warp.each([=](u32 lane) { return key(lane).exponents[lane % 2 * W + at]; });
        const word high = warp.each([=](u32 lane) {
            return at + 1 < W ? key(lane).exponents[lane % 2 * W + at + 1] : 0;
        });
        return low_of(join(low, high) >> from % 32) & word(ENTRIES - 1);
    }

    // Two digits of a thread are adjacent, those of a warp's threads follow each other, entry after entry.
    INLINE u32 *cell(u32 entry, int pair, u32 lane) const {
        return batch.tables + u64(warp.index) * TABLE_WORDS + ((entry * (D / 2) + u32(pair)) * WARP + lane) * 4;
    }

    INLINE void put_pair(u32 entry, int pair, const long_word &first, const long_word &second) const {
        const word four[4] = {low_of(first), high_of(first), low_of(second), high_of(second)};
        warp.put4(four, [=](u32 lane) { return cell(entry, pair, lane); });
    }

    INLINE void put_entry(u32 entry, const Factor &from) const {
        KEEP_LOOP for (int i = 0; i < D / 2; i++) {
            put_pair(entry, i, bits_of(from.get(2 * i)), bits_of(from.get(2 * i + 1)));
        }
    }

    INLINE void get_base(Factor &out) const {
        KEEP_LOOP for (int i = 0; i < D / 2; i++) {
            word four[4];
            warp.get4(four, [=](u32 lane) { return cell(1, i, lane); });
            out.put(2 * i, real_of(join(four[0], four[1])));
            out.put(2 * i + 1, real_of(join(four[2], four[3])));
        }
    }

    // Reads all entries and keeps the wanted one.
    INLINE void choose_entry(Factor &out, const word &wanted_entry) const {
        word masks[ENTRIES];
        UNROLL for (u32 entry = 0; entry < ENTRIES; entry++) {
            masks[entry] = opaque(equal_mask(wanted_entry, word(entry)));
        }
        KEEP_LOOP for (int i = 0; i < D / 2; i++) {
            word chosen[4] = {word(0), word(0), word(0), word(0)};
            UNROLL for (u32 entry = 0; entry < ENTRIES; entry++) {
                word four[4];
                warp.get4(four, [=](u32 lane) { return cell(entry, i, lane); });
                UNROLL for (int j = 0; j < 4; j++) chosen[j] |= four[j] & masks[entry];
            }
            out.put(2 * i, real_of(join(chosen[0], chosen[1])));
            out.put(2 * i + 1, real_of(join(chosen[2], chosen[3])));
        }
    }

    INLINE void wipe(Factor &factor) const {
        KEEP_LOOP for (u32 entry = 0; entry < ENTRIES; entry++) {
            KEEP_LOOP for (int i = 0; i < D / 2; i++) put_pair(entry, i, long_word(0), long_word(0));
        }
        KEEP_LOOP for (int j = 0; j < D; j++) factor.put(j, real_of(long_word(0)));
    }
};

using Exponentiation2048 = Exponentiation<4, 8, 20>;
using Exponentiation3072 = Exponentiation<4, 12, 30>;
