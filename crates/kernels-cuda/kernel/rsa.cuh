// One RSA private operation in 2 T threads: the lower T compute modulo p, the upper T modulo q, and all of them check
// the result modulo n. docs/kernels/cuda.md describes the steps and argues the bounds.

#pragma once

#include "number.cuh"

// Key as uploaded by the host, in words, the least significant first. W is the length of a prime in words, T L.
template <int T, int L> struct Key {
    static constexpr int W = T * L;

    u32 n[2 * W];
    // R^2 mod n, with R of 2 W + 1 words.
    u32 n_square[2 * W];
    // p and q, one after the other, as for all following pairs; R has W + 1 words here.
    u32 primes[2 * W];
    // R^2 mod p, R^2 mod q.
    u32 squares[2 * W];
    // R^2 2^(32 W), for the upper half of an input.
    u32 upper[2 * W];
    // d mod (p - 1), d mod (q - 1).
    u32 exponents[2 * W];
    // R q^-1 mod p.
    u32 inverse[W];
    // -p^-1, -q^-1, -n^-1 modulo 2^32.
    u32 negative_inverses[3];
    // The public exponent.
    u32 e;
};

// Operations of one launch. `inputs` and `outputs` are one number after the other, `slots[i]` is the key slot of
// operation i, `sound[i]` becomes 1 if the public key confirmed output i; otherwise it is 0, and so is the output.
// Every warp has its own part of `tables`, TABLE_WORDS long, which is zero afterwards.
template <int T, int L> struct Batch {
    const Key<T, L> *keys;
    const u32 *slots;
    const u32 *inputs;
    u32 *outputs;
    u32 *sound;
    u32 *tables;
    u32 count;
    // Union of the bits of all public exponents of the batch.
    u32 exponent_bits;
    // For rsa52.cuh: for each operation x R mod p, x R mod q, with the R of digits.cuh, and then x^d; after those of
    // all operations, R mod p, R mod q of each. Zero afterwards.
    u32 *scratch;
};

template <int T, int L> struct Rsa {
    static constexpr int W = T * L;
    // Threads of one operation, and operations of one warp.
    static constexpr u32 THREADS = 2 * T;
    static constexpr u32 PER_WARP = WARP / THREADS;
    static constexpr int WINDOW = 4;
    static constexpr u32 ENTRIES = 1 << WINDOW;
    static constexpr u32 TABLE_WORDS = ENTRIES * L * WARP;

    using Half = Number<T, L>;
    using Whole = Number<2 * T, L>;

    const Batch<T, L> &batch;
    const Warp warp;

    INLINE static void run(const Batch<T, L> &batch, const Warp &warp) {
        if (warp.index * PER_WARP < batch.count) Rsa{batch, warp}.operation();
    }

    // The input, for an exponentiation with a Montgomery factor of 2^BITS.
    template <int BITS> INLINE static void prepare(const Batch<T, L> &batch, const Warp &warp) {
        if (warp.index * PER_WARP < batch.count) Rsa{batch, warp}.template convert<BITS>();
    }

    // Computes the result of the operation from those of the exponentiation.
    INLINE static void finish(const Batch<T, L> &batch, const Warp &warp) {
        if (warp.index * PER_WARP < batch.count) Rsa{batch, warp}.take_over();
    }

  private:
    // Threads without an operation of their own repeat the last one, and write nothing.
    INLINE u32 wanted(u32 lane) const { return warp.index * PER_WARP + lane / THREADS; }
    INLINE u32 number(u32 lane) const { return wanted(lane) < batch.count ? wanted(lane) : batch.count - 1; }
    INLINE const Key<T, L> &key(u32 lane) const { return batch.keys[batch.slots[number(lane)]]; }
    INLINE const u32 *input(u32 lane) const { return batch.inputs + u64(number(lane)) * (2 * W); }
    // Offset of a thread's words in a number of the whole operation, and in one of a half.
    INLINE static u32 place(u32 lane) { return lane % THREADS * L; }
    INLINE static u32 place_in_half(u32 lane) { return lane % T * L; }
    INLINE static bool is_upper(u32 lane) { return lane % THREADS >= u32(T); }

    template <class F> INLINE void load(word *out, F of) const {
        UNROLL for (int j = 0; j < L; j++) out[j] = warp.each([=](u32 lane) { return of(lane)[j]; });
    }

    INLINE void operation() const {
        word prime[L], power[L], result[L];
        load(prime, [this](u32 lane) { return key(lane).primes + place(lane); });
        const word inverse = warp.each([this](u32 lane) { return key(lane).negative_inverses[is_upper(lane)]; });
        make_table(prime, inverse);
        exponentiate(power, prime, inverse);
        wipe_table();
        leave_montgomery<T>(power, prime, inverse);
        recombine(result, power);
        check(result);
    }

    INLINE u32 *scratch(u32 lane, u32 which) const {
        return batch.scratch + (u64(which) * batch.count + number(lane)) * (2 * W) + place(lane);
    }

    INLINE void put_scratch(u32 which, const word *value) const {
        UNROLL for (int j = 0; j < L; j++) {
            warp.put(value[j], [=](u32 lane) {
                return wanted(lane) < batch.count ? scratch(lane, which) + j : nullptr;
            });
        }
    }

    template <int BITS> INLINE void convert() const {
        word prime[L], base[L], one[L], factor[L];
        load(prime, [this](u32 lane) { return key(lane).primes + place(lane); });
        const word inverse = warp.each([this](u32 lane) { return key(lane).negative_inverses[is_upper(lane)]; });
        // R^2 2^s 2^t / R^2.
        constexpr int S = 32 * (W - 1), POWER = BITS - S;
        load(factor, [this](u32 lane) { return key(lane).squares + place(lane); });
        set_power_of_two(one, S);
        multiply<T>(factor, factor, one, prime, inverse);
        set_power_of_two(one, POWER);
        multiply<T>(one, factor, one, prime, inverse);
        Half::reduce_once(warp, one, prime, word(0));
        put_scratch(1, one);
        make_base(base, prime, inverse);
        multiply<T>(base, base, one, prime, inverse);
        Half::reduce_once(warp, base, prime, word(0));
        put_scratch(0, base);
    }

    INLINE void set_power_of_two(word *out, int bit) const {
        UNROLL for (int j = 0; j < L; j++) {
            out[j] = warp.each([=](u32 lane) {
                return int(place_in_half(lane)) + j == bit / 32 ? 1u << bit % 32 : 0u;
            });
        }
    }

    // Takes the results of rsa52.cuh.
    INLINE void take_over() const {
        word prime[L], power[L], result[L], nothing[L];
        load(prime, [this](u32 lane) { return key(lane).primes + place(lane); });
        load(power, [this](u32 lane) { return scratch(lane, 0); });
        UNROLL for (int j = 0; j < L; j++) nothing[j] = word(0);
        put_scratch(0, nothing);
        put_scratch(1, nothing);
        Half::reduce_once(warp, power, prime, word(0));
        recombine(result, power);
        check(result);
    }

    // The input times R, modulo p in the lower half and q in the upper one.
    INLINE void make_base(word *base, const word *prime, const word &inverse) const {
        word power[L], factor[L], half[L];
        load(half, [this](u32 lane) { return input(lane) + place_in_half(lane); });
        load(factor, [this](u32 lane) { return key(lane).squares + place(lane); });
        multiply<T>(base, half, factor, prime, inverse);
        load(half, [this](u32 lane) { return input(lane) + W + place_in_half(lane); });
        load(power, [this](u32 lane) { return key(lane).upper + place(lane); });
        multiply<T>(power, half, power, prime, inverse);
        Half::reduce_once(warp, base, prime, Half::add(base, power));
    }

    // The powers 0 to 15 of the input.
    INLINE void make_table(const word *prime, const word &inverse) const {
        word base[L], power[L], factor[L];
        make_base(base, prime, inverse);
        load(factor, [this](u32 lane) { return key(lane).squares + place(lane); });
        Half::set_one(warp, power);
        multiply<T>(power, factor, power, prime, inverse);
        KEEP_LOOP for (u32 i = 0; i < ENTRIES; i++) {
            put_entry(i, power);
            multiply<T>(power, power, base, prime, inverse);
        }
    }

    // Fixed windows from the top: every exponent has the same number of windows and operations.
    INLINE void exponentiate(word *power, const word *prime, const word &inverse) const {
        UNROLL for (int j = 0; j < L; j++) power[j] = word(0);
        KEEP_LOOP for (int i = W - 1; i >= 0; i--) {
            word bits = warp.each([=](u32 lane) { return key(lane).exponents[is_upper(lane) * W + i]; });
            KEEP_LOOP for (int window = 0; window < 32 / WINDOW; window++) {
                word factor[L];
                choose_entry(factor, bits >> (32 - WINDOW));
                bits = bits * word(1 << WINDOW);
                if (i == W - 1 && window == 0) {
                    UNROLL for (int j = 0; j < L; j++) power[j] = factor[j];
                    continue;
                }
                // Four squarings and a multiplication, in one place so that the code stays in the cache.
                KEEP_LOOP for (int step = 0; step <= WINDOW; step++) {
                    word other[L];
                    UNROLL for (int j = 0; j < L; j++) other[j] = step < WINDOW ? power[j] : factor[j];
                    Half::multiply(power, power, other, prime, inverse);
                }
            }
        }
    }

    // Garner: m1 = power mod p and m2 = power mod q become m2 + q ((m1 - m2) q^-1 mod p). Both halves compute it.
    INLINE void recombine(word *result, const word *power) const {
        word m1[L], m2[L], p[L], q[L], product[L];
        const word upper = warp.each([](u32 lane) { return is_upper(lane) ? ~0u : 0u; });
        UNROLL for (int j = 0; j < L; j++) {
            const word other = across<T>(power[j]);
            m1[j] = select(upper, other, power[j]);
            m2[j] = select(upper, power[j], other);
        }
        load(p, [this](u32 lane) { return key(lane).primes + place_in_half(lane); });
        load(q, [this](u32 lane) { return key(lane).primes + W + place_in_half(lane); });
        const word inverse = warp.each([this](u32 lane) { return key(lane).negative_inverses[0]; });
        // q < 2 p, so that a difference below zero becomes positive by p or by 2 p.
        word negative = word(1) - Half::subtract(warp, m1, m2);
        UNROLL for (int i = 0; i < 2; i++) {
            word addend[L];
            UNROLL for (int j = 0; j < L; j++) addend[j] = p[j] & mask_of(negative);
            negative = negative - Half::add(m1, addend);
        }
        load(product, [this](u32 lane) { return key(lane).inverse + place_in_half(lane); });
        multiply<T>(m1, m1, product, p, inverse);
        Half::reduce_once(warp, m1, p, word(0));
        Half::multiply_wide(warp, product, result, q, m1);
        UNROLL for (int j = 0; j < L; j++) {
            result[j] = select(upper, result[j], product[j]);
            m2[j] = m2[j] & ~upper;
        }
        Whole::add(result, m2);
    }

    // Releases the result if its public power is the input.
    INLINE void check(word *result) const {
        word n[L], base[L], power[L], scaled[L];
        load(n, [this](u32 lane) { return key(lane).n + place(lane); });
        load(scaled, [this](u32 lane) { return key(lane).n_square + place(lane); });
        const word inverse = warp.each([this](u32 lane) { return key(lane).negative_inverses[2]; });
        multiply<2 * T>(base, result, scaled, n, inverse);
        Whole::set_one(warp, power);
        multiply<2 * T>(power, scaled, power, n, inverse);
        bool begun = false;
        KEEP_LOOP for (int bit = 31; bit >= 0; bit--) {
            if (begun) multiply<2 * T>(power, power, power, n, inverse);
            // Public exponents are not secret: a bit that no key of the batch has costs nothing.
            if ((batch.exponent_bits >> bit & 1) == 0) continue;
            begun = true;
            const word mine = warp.each([=](u32 lane) { return 0u - (key(lane).e >> bit & 1); });
            multiply<2 * T>(scaled, power, base, n, inverse);
            UNROLL for (int j = 0; j < L; j++) power[j] = select(mine, scaled[j], power[j]);
        }
        leave_montgomery<2 * T>(power, n, inverse);
        load(scaled, [this](u32 lane) { return input(lane) + place(lane); });
        const word sound = Whole::equal(power, scaled);
        UNROLL for (int j = 0; j < L; j++) {
            warp.put(result[j] & sound, [=](u32 lane) {
                u32 *out = batch.outputs + u64(number(lane)) * (2 * W) + place(lane) + j;
                return wanted(lane) < batch.count ? out : nullptr;
            });
        }
        warp.put(sound & word(1), [=](u32 lane) {
            const bool writes = lane % THREADS == 0 && wanted(lane) < batch.count;
            return writes ? batch.sound + number(lane) : nullptr;
        });
    }

    // Converts x R to x, below the modulus.
    template <int G> INLINE void leave_montgomery(word *r, const word *modulus, const word &inverse) const {
        word one[L];
        Number<G, L>::set_one(warp, one);
        multiply<G>(r, r, one, modulus, inverse);
        Number<G, L>::reduce_once(warp, r, modulus, word(0));
    }

    // Used by all steps but the exponentiation, which takes nearly all the time: one copy of the code.
    template <int G>
    COLD static void multiply(word *r, const word *a, const word *b, const word *n, const word &inverse) {
        word x[L], y[L], m[L];
        UNROLL for (int j = 0; j < L; j++) {
            x[j] = a[j];
            y[j] = b[j];
            m[j] = n[j];
        }
        Number<G, L>::multiply(x, x, y, m, inverse);
        UNROLL for (int j = 0; j < L; j++) r[j] = x[j];
    }

    // Four words of a thread are adjacent, those of a warp's threads follow each other, entry after entry.
    INLINE u32 *cell(u32 entry, int quad, u32 lane) const {
        return batch.tables + u64(warp.index) * TABLE_WORDS + ((entry * (L / 4) + u32(quad)) * WARP + lane) * 4;
    }

    INLINE void put_entry(u32 entry, const word *power) const {
        UNROLL for (int i = 0; i < L / 4; i++) {
            warp.put4(power + 4 * i, [=](u32 lane) { return cell(entry, i, lane); });
        }
    }

    // Reads all entries and keeps the wanted one.
    INLINE void choose_entry(word *out, const word &wanted_entry) const {
        UNROLL for (int j = 0; j < L; j++) out[j] = word(0);
        KEEP_LOOP for (u32 entry = 0; entry < ENTRIES; entry++) {
            const word mask = equal_mask(wanted_entry, word(entry));
            UNROLL for (int i = 0; i < L / 4; i++) {
                word four[4];
                warp.get4(four, [=](u32 lane) { return cell(entry, i, lane); });
                UNROLL for (int j = 0; j < 4; j++) out[4 * i + j] |= four[j] & mask;
            }
        }
    }

    INLINE void wipe_table() const {
        word nothing[L];
        UNROLL for (int j = 0; j < L; j++) nothing[j] = word(0);
        KEEP_LOOP for (u32 entry = 0; entry < ENTRIES; entry++) put_entry(entry, nothing);
    }
};

// Four threads for each prime of 1024 and of 1536 bits, eight for one of 2048.
using Rsa2048 = Rsa<4, 8>;
using Rsa3072 = Rsa<4, 12>;
using Rsa4096 = Rsa<8, 8>;
