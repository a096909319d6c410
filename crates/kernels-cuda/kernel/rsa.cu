// The entrances of the GPU.

#include "rsa.cuh"

#define QUADRILLE_ENTRANCE(NAME, OF, T, L)                                                                           \
    extern "C" __attribute__((global)) void NAME(const Batch<T, L> batch) { OF::run(batch, Warp::here()); }

QUADRILLE_ENTRANCE(quadrille_rsa2048, Rsa2048, 4, 8)
QUADRILLE_ENTRANCE(quadrille_rsa3072, Rsa3072, 4, 12)
QUADRILLE_ENTRANCE(quadrille_rsa4096, Rsa4096, 8, 8)
