// A library that replaces NVIDIA's driver and forwards every call to the real one, until the file named by FORWARD_LOST
// appears: from then on kernel launches fail, as on a device that fell off the bus.
//
//   cc -shared -fPIC -O2 -o DIR/libcuda.so.1 forward.c -ldl      LD_LIBRARY_PATH=DIR, FORWARD_TO=/path/of/libcuda.so.1

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef long word;

enum { LAUNCH_FAILED = 719 };

static void *real(const char *name) {
    static void *library;
    if (!library) {
        const char *path = getenv("FORWARD_TO");
        library = path ? dlopen(path, RTLD_NOW) : NULL;
        if (!library) {
            fprintf(stderr, "forward: %s\n", path ? dlerror() : "FORWARD_TO is not set");
            abort();
        }
    }
    return dlsym(library, name);
}

static int is_lost(void) {
    const char *file = getenv("FORWARD_LOST");
    return file && access(file, F_OK) == 0;
}

// The driver's functions take only integers and pointers, at most eleven: each is a machine word to the caller.
#define FORWARD(name, refused)                                                                                       \
    int name(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k) {               \
        static int (*to)(word, word, word, word, word, word, word, word, word, word, word);                          \
        if (!to) to = (int (*)(word, word, word, word, word, word, word, word, word, word, word))real(#name);        \
        return (refused) ? LAUNCH_FAILED : to(a, b, c, d, e, f, g, h, i, j, k);                                      \
    }

FORWARD(cuInit, 0)
FORWARD(cuDeviceGetCount, 0)
FORWARD(cuDeviceGet, 0)
FORWARD(cuDeviceGetName, 0)
FORWARD(cuDeviceGetAttribute, 0)
FORWARD(cuDevicePrimaryCtxSetFlags_v2, 0)
FORWARD(cuDevicePrimaryCtxRetain, 0)
FORWARD(cuDevicePrimaryCtxRelease_v2, 0)
FORWARD(cuCtxSetCurrent, 0)
FORWARD(cuModuleLoadData, 0)
FORWARD(cuModuleUnload, 0)
FORWARD(cuModuleGetFunction, 0)
FORWARD(cuOccupancyMaxActiveBlocksPerMultiprocessor, 0)
FORWARD(cuMemGetInfo_v2, 0)
FORWARD(cuMemAlloc_v2, 0)
FORWARD(cuMemFree_v2, 0)
FORWARD(cuMemsetD8Async, 0)
FORWARD(cuMemHostAlloc, 0)
FORWARD(cuMemFreeHost, 0)
FORWARD(cuMemcpyHtoDAsync_v2, 0)
FORWARD(cuMemcpyDtoHAsync_v2, 0)
FORWARD(cuStreamCreate, 0)
FORWARD(cuStreamDestroy_v2, 0)
FORWARD(cuStreamSynchronize, 0)
FORWARD(cuLaunchKernel, is_lost())
FORWARD(cuGetErrorName, 0)
