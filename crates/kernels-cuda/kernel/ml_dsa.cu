// Entry points of the GPU for ML-DSA. A block has one warp.

#include "ml_dsa.cuh"

// Registers for 16 blocks on a multiprocessor.
#define QUADRILLE_ENTRANCE(NAME, SET)                                                                                \
    extern "C" __attribute__((global, launch_bounds(WARP, 16))) void NAME(const Signatures batch) {                   \
        MlDsa<SET>::run(batch, Warp::here());                                                                        \
    }

QUADRILLE_ENTRANCE(quadrille_ml_dsa44, MlDsa44)
QUADRILLE_ENTRANCE(quadrille_ml_dsa65, MlDsa65)
QUADRILLE_ENTRANCE(quadrille_ml_dsa87, MlDsa87)
