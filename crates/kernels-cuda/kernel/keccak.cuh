// Keccak-f[1600] (FIPS 202), one state in each thread.

#pragma once

#include "word.cuh"

struct Keccak {
    static constexpr int LANES = 25, ROUNDS = 24;
    // Words that SHAKE256 absorbs or squeezes at once.
    static constexpr int RATE = 34;

    // Lane x + 5 y of the state has words 2 (x + 5 y), the lower one, and the next.
    word of[2 * LANES];

    INLINE void clear() {
        UNROLL for (int i = 0; i < 2 * LANES; i++) of[i] = word(0);
    }

    // Ends a message of SHAKE256 whose last block has whole words.
    INLINE void pad(int words) {
        of[words] = of[words] ^ word(0x1f);
        of[RATE - 1] = of[RATE - 1] ^ word(1u << 31);
    }

    // `constants` has the round constants, two words each.
    INLINE void permute(const u32 *constants) {
        KEEP_LOOP for (int round = 0; round < ROUNDS; round++) {
            theta();
            word moved[2 * LANES];
            rho_and_pi(moved);
            chi(moved);
            of[0] = of[0] ^ word(constants[2 * round]);
            of[1] = of[1] ^ word(constants[2 * round + 1]);
        }
    }

  private:
    INLINE void theta() {
        word columns[10];
        UNROLL for (int i = 0; i < 10; i++) {
            columns[i] = of[i] ^ of[i + 10] ^ of[i + 20] ^ of[i + 30] ^ of[i + 40];
        }
        UNROLL for (int x = 0; x < 5; x++) {
            word rotated[2];
            rotate(rotated, columns + 2 * ((x + 1) % 5), 1);
            UNROLL for (int half = 0; half < 2; half++) {
                const word parity = columns[2 * ((x + 4) % 5) + half] ^ rotated[half];
                UNROLL for (int y = 0; y < 5; y++) {
                    of[2 * (x + 5 * y) + half] = of[2 * (x + 5 * y) + half] ^ parity;
                }
            }
        }
    }

    INLINE void rho_and_pi(word *moved) const {
        constexpr int rotations[LANES] = {0,  1,  62, 28, 27, 36, 44, 6,  55, 20, 3,  10, 43,
                                          25, 39, 41, 45, 15, 21, 8,  18, 2,  61, 56, 14};
        UNROLL for (int x = 0; x < 5; x++) {
            UNROLL for (int y = 0; y < 5; y++) {
                rotate(moved + 2 * (y + 5 * ((2 * x + 3 * y) % 5)), of + 2 * (x + 5 * y), rotations[x + 5 * y]);
            }
        }
    }

    INLINE void chi(const word *moved) {
        UNROLL for (int y = 0; y < 5; y++) {
            UNROLL for (int x = 0; x < 5; x++) {
                UNROLL for (int half = 0; half < 2; half++) {
                    const word first = moved[2 * ((x + 1) % 5 + 5 * y) + half];
                    const word second = moved[2 * ((x + 2) % 5 + 5 * y) + half];
                    of[2 * (x + 5 * y) + half] = moved[2 * (x + 5 * y) + half] ^ (~first & second);
                }
            }
        }
    }

    // Rotates a lane of two words to the left.
    INLINE static void rotate(word *out, const word *lane, int count) {
        const word low = count < 32 ? lane[0] : lane[1], high = count < 32 ? lane[1] : lane[0];
        out[0] = funnel(high, low, count % 32);
        out[1] = funnel(low, high, count % 32);
    }
};
