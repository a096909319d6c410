// Signatures of ML-DSA (FIPS 204, algorithm 7), one warp for each. docs/kernels/cuda.md describes the steps.

#pragma once

#include "keccak.cuh"
#include "polynomial.cuh"

// Operations of one launch, in words. `slots[i]` is the key slot of operation i; an input is mu and rho', an output the
// challenge's hash, z packed, and a bit for each hint. `sound[i]` becomes 1 if the output has passed its checks;
// otherwise it is 0, and so is the output. Every warp has its own part of `tables`, TABLE_WORDS long, which is zero
// afterwards.
struct Signatures {
    const u32 *keys;
    const u32 *slots;
    const u32 *inputs;
    u32 *outputs;
    u32 *sound;
    u32 *tables;
    u32 count;
    // Number of warps, each of which computes every `warps`-th operation.
    u32 warps;
    // Factors of the transform, and after them Keccak's round constants.
    const u32 *constants;
};

// Parameter sets (FIPS 204, table 1). BITS is the length of a coefficient of y, HIGH_BITS of one of w1, HASH_WORDS of
// the challenge's hash.
struct MlDsa44 {
    static constexpr u32 K = 4, L = 4;
    static constexpr int ETA = 2, TAU = 39, BITS = 18, GAMMA2 = 95232, OMEGA = 80, HIGH_BITS = 6, HASH_WORDS = 8;
};
struct MlDsa65 {
    static constexpr u32 K = 6, L = 5;
    static constexpr int ETA = 4, TAU = 49, BITS = 20, GAMMA2 = 261888, OMEGA = 55, HIGH_BITS = 4, HASH_WORDS = 12;
};
struct MlDsa87 {
    static constexpr u32 K = 8, L = 7;
    static constexpr int ETA = 2, TAU = 60, BITS = 20, GAMMA2 = 261888, OMEGA = 75, HIGH_BITS = 4, HASH_WORDS = 16;
};

template <class P> struct MlDsa : P {
    using P::K, P::L, P::BITS;
    static constexpr u32 N = 256;
    static constexpr int BETA = P::TAU * P::ETA, GAMMA1 = 1 << (BITS - 1);
    // Attempts whose masks and challenges are computed together; and a bound on all, which is practically never
    // reached (FIPS 204, appendix C).
    static constexpr u32 AHEAD = 4, ATTEMPTS = 1024;
    // Masks of one group of attempts, each expanded by one thread.
    static constexpr u32 MASKS = AHEAD * L;
    static_assert(MASKS <= WARP, "a thread for each mask");

    // Words of a packed mask; a stride at which threads use different banks; of w1; and of the challenge's message.
    static constexpr u32 MASK_WORDS = N * BITS / 32, MASK_STRIDE = MASK_WORDS + 1;
    static constexpr u32 HIGH_WORDS = N * P::HIGH_BITS / 32, MU_WORDS = 16, MESSAGE_WORDS = MU_WORDS + K * HIGH_WORDS;
    static constexpr u32 INPUT_WORDS = 32;
    static constexpr u32 OUTPUT_WORDS = P::HASH_WORDS + L * MASK_WORDS + K * N / 32;

    // A key: A transformed, s1, s2 and t0 transformed.
    static constexpr u32 OF_S1 = K * L * N, OF_S2 = OF_S1 + L * N, OF_T0 = OF_S2 + K * N, KEY_WORDS = OF_T0 + K * N;

    // Memory of a warp: w of every attempt, as high and low parts, and the challenge's messages.
    static constexpr u32 OF_MESSAGES = AHEAD * K * N, TABLE_WORDS = OF_MESSAGES + AHEAD * MESSAGE_WORDS;

    // Memory that its threads share. First what is revealed: for every attempt the challenge's hash, the bytes that it
    // is sampled from, and whether they were enough; and one decision. Then the challenges, two bits for each
    // coefficient. Then the masks.
    static constexpr u32 HASH_STRIDE = 16;
    static constexpr u32 OF_STREAMS = AHEAD * HASH_STRIDE, OF_DECISION = OF_STREAMS + AHEAD * Keccak::RATE;
    static constexpr u32 OF_CHALLENGES = OF_DECISION + 1, CHALLENGE_WORDS = N / 16;
    static constexpr u32 OF_FAILURES = OF_CHALLENGES + AHEAD * CHALLENGE_WORDS;
    static constexpr u32 OF_MASKS = OF_FAILURES + AHEAD, SHARED_WORDS = OF_MASKS + MASKS * MASK_STRIDE;

    const Signatures &batch;
    const Warp warp;
    u32 *const shared;
    u32 *const table;
    const u32 operation;
    const u32 *const key;

    INLINE MlDsa(const Signatures &batch, const Warp &warp, u32 operation)
        : batch(batch), warp(warp), shared(SharedWords<SHARED_WORDS>::here()),
          table(batch.tables + u64(warp.index) * TABLE_WORDS), operation(operation),
          key(batch.keys + u64(batch.slots[operation]) * KEY_WORDS) {}

    INLINE static void run(const Signatures &batch, const Warp &warp) {
        if (warp.index >= batch.warps || warp.index >= batch.count) return;
        KEEP_LOOP for (u32 operation = warp.index; operation < batch.count; operation += batch.warps) {
            MlDsa{batch, warp, operation}.sign();
        }
        MlDsa{batch, warp, warp.index}.wipe();
    }

  private:
    INLINE const u32 *zetas() const { return batch.constants; }
    INLINE const u32 *rounds() const { return batch.constants + N; }
    INLINE const u32 *input() const { return batch.inputs + u64(operation) * INPUT_WORDS; }
    INLINE u32 *output() const { return batch.outputs + u64(operation) * OUTPUT_WORDS; }
    INLINE u32 *masks() const { return shared + OF_MASKS; }

    INLINE void sign() const {
        u32 sound = 0;
        KEEP_LOOP for (u32 counter = 0; counter < ATTEMPTS * L; counter += MASKS) {
            expand(counter);
            KEEP_LOOP for (u32 attempt = 0; attempt < AHEAD; attempt++) commit(attempt);
            challenge();
            u32 accepted = 0;
            KEEP_LOOP while (accepted < AHEAD && !respond(accepted)) accepted++;
            if (accepted < AHEAD) {
                sound = confirm(counter, accepted);
                break;
            }
        }
        if (sound == 0) put_words(output(), OUTPUT_WORDS);
        warp.put(word(sound), [this](u32 lane) { return lane == 0 ? batch.sound + operation : nullptr; });
        warp.sync();
    }

    // Begins the hash from which a mask is expanded (algorithm 34).
    INLINE void begin_mask(Keccak &state, const word &counter) const {
        state.clear();
        UNROLL for (int i = 0; i < 16; i++) state.of[i] = word(input()[MU_WORDS + i]);
        // The counter has two bytes; the end of the message follows.
        state.of[16] = counter | word(0x1f << 16);
        state.of[Keccak::RATE - 1] = word(1u << 31);
    }

    // Expands the masks of a group of attempts, from this counter on.
    INLINE void expand(u32 counter) const {
        Keccak state;
        begin_mask(state, warp.each([=](u32 lane) { return counter + lane; }));
        KEEP_LOOP for (u32 first = 0; first < MASK_WORDS; first += Keccak::RATE) {
            state.permute(rounds());
            UNROLL for (u32 i = 0; i < Keccak::RATE; i++) {
                warp.put(state.of[i], [=](u32 lane) {
                    const bool writes = lane < MASKS && first + i < MASK_WORDS;
                    return writes ? masks() + lane * MASK_STRIDE + first + i : nullptr;
                });
            }
        }
        warp.sync();
    }

    // Expands the masks of the accepted attempt again, and returns whether they are the same: a signature with a mask
    // that is repeated or too short verifies, but reveals the key.
    INLINE u32 confirm(u32 counter, u32 attempt) const {
        Keccak state;
        const u32 mask = attempt * L;
        begin_mask(state, warp.each([=](u32 lane) { return counter + mask + (lane < L ? lane : 0); }));
        word differences(0);
        KEEP_LOOP for (u32 first = 0; first < MASK_WORDS; first += Keccak::RATE) {
            state.permute(rounds());
            UNROLL for (u32 i = 0; i < Keccak::RATE; i++) {
                if (first + i >= MASK_WORDS) continue;
                differences |= state.of[i] ^ warp.each([=](u32 lane) {
                    return masks()[(mask + (lane < L ? lane : 0)) * MASK_STRIDE + first + i];
                });
            }
        }
        return is_any(differences) ? 0 : 1;
    }

    // Computes w = A y, its parts, and the message of the challenge's hash.
    INLINE void commit(u32 attempt) const {
        word sums[K][EACH];
        UNROLL for (u32 k = 0; k < K; k++) {
            UNROLL for (int r = 0; r < EACH; r++) sums[k][r] = word(0);
        }
        KEEP_LOOP for (u32 l = 0; l < L; l++) {
            Polynomial y;
            y.unpack<BITS>(warp, masks() + (attempt * L + l) * MASK_STRIDE);
            y = Polynomial::transform(y, warp, zetas());
            UNROLL for (u32 k = 0; k < K; k++) {
                UNROLL for (int r = 0; r < EACH; r++) {
                    sums[k][r] += montgomery(y.of[r], of_key((k * L + l) * N, r));
                }
            }
        }
        UNROLL for (u32 k = 0; k < K; k++) {
            UNROLL for (int r = 0; r < EACH; r++) put_part(attempt, k, r, sums[k][r]);
        }
        u32 *const message = table + OF_MESSAGES + attempt * MESSAGE_WORDS;
        KEEP_LOOP for (u32 k = 0; k < K; k++) {
            Polynomial w;
            UNROLL for (int r = 0; r < EACH; r++) w.of[r] = reduce(part(attempt, k, r));
            w = Polynomial::inverse_transform(w, warp, zetas());
            UNROLL for (int r = 0; r < EACH; r++) {
                word low;
                const word high = decompose(canonical(w.of[r]), low);
                put_part(attempt, k, r, join(high, low));
                Packed<P::HIGH_BITS>::put(warp, high, message + MU_WORDS + k * HIGH_WORDS + r * P::HIGH_BITS);
            }
        }
        const word mu = warp.each([this](u32 lane) { return input()[lane % MU_WORDS]; });
        warp.put(mu, [=](u32 lane) { return lane < MU_WORDS ? message + lane : nullptr; });
        warp.sync();
    }

    // Computes the challenges of all attempts of the group, each in one thread.
    INLINE void challenge() const {
        Keccak state;
        state.clear();
        KEEP_LOOP for (u32 first = 0; first <= MESSAGE_WORDS; first += Keccak::RATE) {
            UNROLL for (u32 i = 0; i < Keccak::RATE; i++) {
                if (first + i >= MESSAGE_WORDS) continue;
                state.of[i] = state.of[i] ^ warp.each([=](u32 lane) {
                    return table[OF_MESSAGES + lane % AHEAD * MESSAGE_WORDS + first + i];
                });
            }
            if (first + Keccak::RATE > MESSAGE_WORDS) state.pad(MESSAGE_WORDS % Keccak::RATE);
            state.permute(rounds());
        }
        word hash[P::HASH_WORDS];
        UNROLL for (int i = 0; i < P::HASH_WORDS; i++) hash[i] = state.of[i];
        put_of_attempt<P::HASH_WORDS>(0, HASH_STRIDE, hash);
        expand_challenge(hash);
        u32 *const memory = shared;
        warp.alone(AHEAD, [=](u32 lane) { sample(memory, lane); });
    }

    // Computes the bytes from which the challenges are sampled.
    INLINE void expand_challenge(const word *hash) const {
        Keccak state;
        state.clear();
        UNROLL for (int i = 0; i < P::HASH_WORDS; i++) state.of[i] = hash[i];
        state.pad(P::HASH_WORDS);
        state.permute(rounds());
        put_of_attempt<Keccak::RATE>(OF_STREAMS, Keccak::RATE, state.of);
        warp.sync();
    }

    // Samples a challenge from public bytes (algorithm 29).
    INLINE static void sample(u32 *memory, u32 attempt) {
        const u32 *const stream = memory + OF_STREAMS + attempt * Keccak::RATE;
        u32 *const fields = memory + OF_CHALLENGES + attempt * CHALLENGE_WORDS;
        KEEP_LOOP for (u32 i = 0; i < CHALLENGE_WORDS; i++) fields[i] = 0;
        u32 next = N - P::TAU, signs = revealed(stream);
        KEEP_LOOP for (u32 i = 8; i < 4 * Keccak::RATE && next < N; i++) {
            const u32 position = revealed(stream + i / 4) >> 8 * (i % 4) & 0xff;
            if (position > next) continue;
            const u32 from = fields[position / 16] >> 2 * (position % 16) & 3;
            fields[next / 16] |= from << 2 * (next % 16);
            const u32 shift = 2 * (position % 16);
            fields[position / 16] = (fields[position / 16] & ~(3u << shift)) | (1 + 2 * (signs & 1)) << shift;
            next++;
            signs = next == N - P::TAU + 32 ? revealed(stream + 1) : signs >> 1;
        }
        memory[OF_FAILURES + attempt] = next < N;
    }

    // Computes the response and the hints of an attempt, and writes the output if it is accepted.
    INLINE bool respond(u32 attempt) const {
        if (shared[OF_FAILURES + attempt] != 0) return false;
        Polynomial c;
        UNROLL for (int r = 0; r < EACH; r++) {
            const word field = warp.each([=](u32 lane) {
                const u32 place = WARP * u32(r) + lane;
                const u32 fields = shared[OF_CHALLENGES + attempt * CHALLENGE_WORDS + place / 16];
                return fields >> 2 * (place % 16) & 3;
            });
            // 1 is one, 3 is minus one.
            c.of[r] = (field & word(1)) - (field & word(2));
        }
        c = Polynomial::transform(c, warp, zetas());
        // The low part first: it rejects more attempts than z.
        KEEP_LOOP for (u32 k = 0; k < K; k++) {
            const Polynomial product = times(c, OF_S2 + k * N);
            word beyond(0);
            UNROLL for (int r = 0; r < EACH; r++) {
                const word parts = part(attempt, k, r);
                const word low = low_of_parts(parts) - product.of[r];
                beyond |= is_beyond(low, P::GAMMA2 - BETA);
                put_part(attempt, k, r, join(parts >> 20, low));
            }
            if (is_any(beyond)) return false;
        }
        KEEP_LOOP for (u32 l = 0; l < L; l++) {
            const Polynomial product = times(c, OF_S1 + l * N);
            Polynomial z;
            z.unpack<BITS>(warp, masks() + (attempt * L + l) * MASK_STRIDE);
            word beyond(0);
            UNROLL for (int r = 0; r < EACH; r++) {
                z.of[r] += product.of[r];
                beyond |= is_beyond(z.of[r], GAMMA1 - BETA);
            }
            if (is_any(beyond)) return false;
            UNROLL for (int r = 0; r < EACH; r++) {
                Packed<BITS>::put(warp, word(u32(GAMMA1)) - z.of[r],
                                  output() + P::HASH_WORDS + l * MASK_WORDS + r * BITS);
            }
        }
        word count(0), beyond(0);
        KEEP_LOOP for (u32 k = 0; k < K; k++) {
            const Polynomial product = times(c, OF_T0 + k * N);
            UNROLL for (int r = 0; r < EACH; r++) {
                const word parts = part(attempt, k, r);
                beyond |= is_beyond(product.of[r], P::GAMMA2);
                const word hint = is_hinted(low_of_parts(parts) + product.of[r], parts >> 20);
                count += hint;
                Packed<1>::put(warp, hint, output() + P::HASH_WORDS + L * MASK_WORDS + k * N / 32 + r);
            }
        }
        if (is_any(beyond | shift_signed(word(u32(P::OMEGA)) - sum<WARP>(count), 31))) return false;
        const word hash = warp.each([=](u32 lane) { return shared[attempt * HASH_STRIDE + lane % HASH_STRIDE]; });
        warp.put(hash, [this](u32 lane) { return lane < u32(P::HASH_WORDS) ? output() + lane : nullptr; });
        return true;
    }

    // c times a polynomial of the key, whose numbers are below 2^22 in magnitude.
    INLINE Polynomial times(const Polynomial &c, u32 at) const {
        Polynomial product;
        UNROLL for (int r = 0; r < EACH; r++) product.of[r] = montgomery(c.of[r], of_key(at, r));
        product = Polynomial::inverse_transform(product, warp, zetas());
        UNROLL for (int r = 0; r < EACH; r++) product.of[r] = reduce(product.of[r]);
        return product;
    }

    // Splits r, from 0 to q - 1, into r1 and r0 (algorithm 36). The lanes' tests compare all r.
    INLINE static word decompose(const word &r, word &low) {
        const word sevenths = (r + word(127)) >> 7;
        word high;
        if constexpr (P::HIGH_BITS == 6) {
            high = (sevenths * word(11275) + word(1 << 23)) >> 24;
            high = high ^ (shift_signed(word(43) - high, 31) & high);
        } else {
            high = ((sevenths * word(1025) + word(1 << 21)) >> 22) & word(15);
        }
        low = r - high * word(u32(2 * P::GAMMA2));
        // The part below 0 of the last range.
        low = low - (shift_signed(word(u32((Q - 1) / 2)) - low, 31) & word(u32(Q)));
        return high;
    }

    // 1 if adding the number `low` changes the high part (algorithm 39).
    INLINE static word is_hinted(const word &low, const word &high) {
        const word distance = low + word(u32(P::GAMMA2));
        const word outside = shift_signed(word(u32(P::GAMMA2)) - low, 31) | shift_signed(distance, 31);
        const word is_zero = ~shift_signed(distance | (word(0) - distance), 31);
        const word at_edge = is_zero & shift_signed(word(0) - high, 31);
        return (outside | at_edge) & word(1);
    }

    // Both parts in a word. The low one is below 2^19 in magnitude.
    INLINE static word join(const word &high, const word &low) {
        return high * word(1u << 20) + low + word(1u << 19);
    }
    INLINE static word low_of_parts(const word &parts) {
        return (parts & word((1u << 20) - 1)) - word(1u << 19);
    }

    INLINE word of_key(u32 at, int r) const {
        return warp.each([=](u32 lane) { return key[at + WARP * u32(r) + lane]; });
    }
    INLINE u32 *place_of_part(u32 attempt, u32 k, int r, u32 lane) const {
        return table + (attempt * K + k) * N + WARP * u32(r) + lane;
    }
    INLINE word part(u32 attempt, u32 k, int r) const {
        return warp.each([=](u32 lane) { return *place_of_part(attempt, k, r, lane); });
    }
    INLINE void put_part(u32 attempt, u32 k, int r, const word &value) const {
        warp.put(value, [=](u32 lane) { return place_of_part(attempt, k, r, lane); });
    }

    // Writes words of each attempt's thread, from `at` on.
    template <int COUNT> INLINE void put_of_attempt(u32 at, u32 stride, const word *words) const {
        UNROLL for (int i = 0; i < COUNT; i++) {
            warp.put(words[i], [=](u32 lane) {
                return lane < AHEAD ? shared + at + lane * stride + u32(i) : nullptr;
            });
        }
    }

    // Decides, and reveals, whether a bit is set in the word of any thread: by FIPS 204 a rejection is public.
    INLINE bool is_any(const word &bits) const {
        warp.put(any<WARP>(bits), [this](u32 lane) { return lane == 0 ? shared + OF_DECISION : nullptr; });
        warp.sync();
        const bool decision = revealed(shared + OF_DECISION) != 0;
        warp.sync();
        return decision;
    }

    // Writes zeros.
    INLINE void put_words(u32 *to, u32 count) const {
        KEEP_LOOP for (u32 first = 0; first < count; first += WARP) {
            warp.put(word(0), [=](u32 lane) { return first + lane < count ? to + first + lane : nullptr; });
        }
    }

    INLINE void wipe() const {
        warp.sync();
        put_words(shared, SHARED_WORDS);
        put_words(table, TABLE_WORDS);
    }
};
