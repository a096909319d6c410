// Entry points of the GPU.

#include "rsa52.cuh"

#define QUADRILLE_ENTRANCE(NAME, OF, T, L)                                                                           \
    extern "C" __attribute__((global)) void NAME(const Batch<T, L> batch) { OF(batch, Warp::here()); }

QUADRILLE_ENTRANCE(quadrille_rsa2048, Rsa2048::run, 4, 8)
QUADRILLE_ENTRANCE(quadrille_rsa3072, Rsa3072::run, 4, 12)
QUADRILLE_ENTRANCE(quadrille_rsa4096, Rsa4096::run, 8, 8)

QUADRILLE_ENTRANCE(quadrille_rsa2048_prepare, Rsa2048::prepare<20 * 52>, 4, 8)
QUADRILLE_ENTRANCE(quadrille_rsa2048_finish, Rsa2048::finish, 4, 8)
QUADRILLE_ENTRANCE(quadrille_rsa3072_prepare, Rsa3072::prepare<30 * 52>, 4, 12)
QUADRILLE_ENTRANCE(quadrille_rsa3072_finish, Rsa3072::finish, 4, 12)

// Registers for two blocks on a multiprocessor.
#define QUADRILLE_EXPONENTIATION(NAME, OF, T, L)                                                                     \
    extern "C" __attribute__((global, launch_bounds(BLOCK52, 2))) void NAME(const Batch<T, L> batch) {               \
        OF(batch, Warp::here());                                                                                     \
    }

QUADRILLE_EXPONENTIATION(quadrille_rsa2048_exponentiate, Exponentiation2048::run, 4, 8)
QUADRILLE_EXPONENTIATION(quadrille_rsa3072_exponentiate, Exponentiation3072::run, 4, 12)
