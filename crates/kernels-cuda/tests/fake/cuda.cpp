// Replacement of NVIDIA's driver: its device is this CPU, its memory is this process's, and its kernels are those of
// kernel/, compiled as plain C++.
//
// Streams do no work until a thread waits for them, so that a test fails if a wait is missing. `fake_set` injects
// faults, `fake_get` returns observations. Each test loads its own copy, so that tests are isolated.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "../../kernel/ml_dsa.cuh"
#include "../../kernel/rsa52.cuh"

// Secrets control no branch and are not indexes, or the kernels do not compile.
static_assert(!std::is_constructible<bool, word>::value && !std::is_convertible<word, u32>::value, "word.cuh");
static_assert(!std::is_constructible<bool, real>::value && !std::is_convertible<real, u32>::value, "real.cuh");
static_assert(!std::is_constructible<bool, long_word>::value && !std::is_convertible<long_word, u32>::value, "real.cuh");

namespace {

enum Status { OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, NOT_FOUND = 500, LAUNCH_FAILED = 719 };

struct Stream {
    std::vector<std::function<void()>> queued;
};

struct Fake {
    std::mutex lock;
    std::map<std::string, long> set;
    std::map<std::string, long> seen;
    std::map<uintptr_t, size_t> memory, pinned;

    long get(const char *name, long otherwise) {
        auto found = set.find(name);
        return found == set.end() ? otherwise : found->second;
    }
    // The device is lost from launch number `lost_at` on.
    bool lost() { return seen["launches"] >= get("lost_at", LONG_MAX_LAUNCHES); }
    static constexpr long LONG_MAX_LAUNCHES = 1L << 60;

    // Faults given to a program that uses this driver: `lost_at=5,devices=1`.
    Fake() {
        const char *given = getenv("FAKE_CUDA");
        std::stringstream settings(given == nullptr ? "" : given);
        for (std::string setting; std::getline(settings, setting, ',');) {
            const size_t equals = setting.find('=');
            set[setting.substr(0, equals)] = std::stol(setting.substr(equals + 1));
        }
    }
};

Fake &fake() {
    static Fake *one = new Fake;
    return *one;
}

// Every call takes the lock and may report the loss of the device.
#define GUARD                                                                                                        \
    Fake &f = fake();                                                                                                \
    std::lock_guard<std::mutex> guard(f.lock);                                                                       \
    if (f.lost()) return LAUNCH_FAILED

bool within(Fake &f, uint64_t address, size_t bytes) {
    auto after = f.memory.upper_bound(address);
    if (after == f.memory.begin()) return bytes == 0;
    auto block = std::prev(after);
    return address - block->first + bytes <= block->second;
}

bool is_zero(const void *start, size_t bytes) {
    const uint8_t *byte = static_cast<const uint8_t *>(start);
    for (size_t i = 0; i < bytes; i++) {
        if (byte[i] != 0) return false;
    }
    return true;
}

// Flips one bit, of a digit or of the tables, when digit number `left` is stored.
struct Disturbance {
    long left, digit, table;
    u32 *tables;
};
thread_local Disturbance disturbance;

void disturb_once(real &digit) {
    Disturbance &d = disturbance;
    if (--d.left != 0) return;
    if (d.table >= 0) d.tables[d.table / 32] ^= 1u << d.table % 32;
    if (d.digit >= 0) {
        long_word bits = bits_of(digit);
        bits.of[d.digit / 64] ^= 1ull << d.digit % 64;
        digit = real_of(bits);
    }
}

// Part of an operation that a kernel computes; the last one, or the only one, writes the outputs.
enum class Step { FIRST, MIDDLE, LAST };

template <int T, int L>
void run(void (*kernel)(const Batch<T, L> &, const Warp &), const void *parameter, u32 warps, Step step) {
    Batch<T, L> batch;
    memcpy(&batch, parameter, sizeof batch);
    long bit, output, only, scratch;
    {
        Fake &f = fake();
        std::lock_guard<std::mutex> guard(f.lock);
        bit = f.get("flip_key", -1);
        output = f.get("flip_output", -1);
        only = f.get("flip_only", -1);
        scratch = f.get("flip_scratch", -1);
        disturbance = {f.get("flip_at", 1), f.get("flip_digit", -1), f.get("flip_table", -1), batch.tables};
    }
    // A bit of the first operation's key is wrong while the kernel runs; streams share keys, so they run one at a
    // time.
    static std::mutex damaged;
    std::unique_lock<std::mutex> alone(damaged, std::defer_lock);
    if (bit >= 0) alone.lock();
    u32 *key = const_cast<u32 *>(reinterpret_cast<const u32 *>(batch.keys + batch.slots[0]));
    if (bit >= 0) key[bit / 32] ^= 1u << bit % 32;
    const bool disturbs = step == Step::MIDDLE && (disturbance.digit >= 0 || disturbance.table >= 0);
    disturb = disturbs ? disturb_once : nullptr;
    for (u32 i = 0; i < warps; i++) kernel(batch, Warp{i});
    disturb = nullptr;
    if (step == Step::FIRST && scratch >= 0) batch.scratch[scratch / 32] ^= 1u << scratch % 32;
    if (bit >= 0) key[bit / 32] ^= 1u << bit % 32;
    // Wrong results after the check.
    for (u32 i = 0; step == Step::LAST && output >= 0 && i < batch.count; i++) {
        if (only >= 0 && i != u32(only)) continue;
        batch.outputs[u64(i) * 2 * T * L + output / 32] ^= 1u << output % 32;
    }
}

template <class P> void sign(const void *parameter, u32 warps) {
    Signatures batch;
    memcpy(&batch, parameter, sizeof batch);
    long bit, output;
    {
        Fake &f = fake();
        std::lock_guard<std::mutex> guard(f.lock);
        bit = f.get("flip_key", -1);
        output = f.get("flip_output", -1);
    }
    static std::mutex damaged;
    std::unique_lock<std::mutex> alone(damaged, std::defer_lock);
    if (bit >= 0) alone.lock();
    u32 *key = const_cast<u32 *>(batch.keys + u64(batch.slots[0]) * MlDsa<P>::KEY_WORDS);
    if (bit >= 0) key[bit / 32] ^= 1u << bit % 32;
    for (u32 i = 0; i < warps; i++) MlDsa<P>::run(batch, Warp{i});
    if (bit >= 0) key[bit / 32] ^= 1u << bit % 32;
    for (u32 i = 0; output >= 0 && i < batch.count; i++) {
        batch.outputs[u64(i) * MlDsa<P>::OUTPUT_WORDS + output / 32] ^= 1u << output % 32;
    }
}

} // namespace

extern "C" {

void fake_set(const char *name, long value) {
    std::lock_guard<std::mutex> guard(fake().lock);
    fake().set[name] = value;
}

// `memory`, `pinned`: bytes in use; `secrets`: blocks in use that are not all zero; `dirty`: blocks that were not
// zero when they were freed; `launches`, `operations`, `largest`, `waits`, `contexts`, `streams`.
long fake_get(const char *name) {
    Fake &f = fake();
    std::lock_guard<std::mutex> guard(f.lock);
    const std::string what = name;
    long sum = 0;
    if (what == "memory" || what == "pinned") {
        for (auto &block : what == "memory" ? f.memory : f.pinned) sum += long(block.second);
        return sum;
    }
    if (what == "secrets") { // blocks in use that are not all zero
        for (auto &block : f.memory) sum += !is_zero(reinterpret_cast<void *>(block.first), block.second);
        for (auto &block : f.pinned) sum += !is_zero(reinterpret_cast<void *>(block.first), block.second);
        return sum;
    }
    return f.seen[what];
}

int cuInit(unsigned) { return int(fake().get("init", OK)); }

int cuDeviceGetCount(int *count) {
    *count = int(fake().get("devices", 1));
    return OK;
}

int cuDeviceGet(int *device, int) {
    *device = 0;
    return OK;
}

int cuDeviceGetName(char *name, int length, int) {
    strncpy(name, "Fake GPU", size_t(length));
    return OK;
}

int cuDeviceGetAttribute(int *value, int which, int) {
    Fake &f = fake();
    *value = which == 13   ? 1000000
             : which == 16 ? int(f.get("multiprocessors", 1))
             : which == 75 ? int(f.get("capability", 9))
             : which == 87 ? int(f.get("single_to_double", 64))
                           : 0;
    return OK;
}

int cuDevicePrimaryCtxSetFlags_v2(int, unsigned) { return OK; }

int cuDevicePrimaryCtxRetain(void **context, int) {
    GUARD;
    f.seen["contexts"]++;
    *context = &f;
    return int(f.get("retain", OK));
}

int cuDevicePrimaryCtxRelease_v2(int) {
    GUARD;
    f.seen["contexts"]--;
    return OK;
}

thread_local void *current = nullptr;

int cuCtxSetCurrent(void *context) {
    current = context;
    return OK;
}

int cuModuleLoadData(void **module, const void *image) {
    GUARD;
    if (current == nullptr) return 201;
    // PTX identifies itself; another test passes it to clang's assembler if available.
    const char *const text = static_cast<const char *>(image);
    const bool is_known = strstr(text, ".entry quadrille_rsa4096") || strstr(text, ".entry quadrille_ml_dsa87");
    if (!is_known) return 218;
    *module = &f;
    return int(f.get("module", OK));
}

int cuModuleUnload(void *) { return OK; }

int cuModuleGetFunction(void **function, void *, const char *name) {
    static const char *const names[] = {"quadrille_rsa2048",
                                        "quadrille_rsa3072",
                                        "quadrille_rsa4096",
                                        "quadrille_rsa2048_prepare",
                                        "quadrille_rsa2048_exponentiate",
                                        "quadrille_rsa2048_finish",
                                        "quadrille_rsa3072_prepare",
                                        "quadrille_rsa3072_exponentiate",
                                        "quadrille_rsa3072_finish",
                                        "quadrille_ml_dsa44",
                                        "quadrille_ml_dsa65",
                                        "quadrille_ml_dsa87"};
    for (const char *const &known : names) {
        if (strcmp(known, name) == 0) {
            *function = const_cast<char *>(known);
            return OK;
        }
    }
    return NOT_FOUND;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *, int, size_t) {
    *blocks = int(fake().get("blocks", 1));
    return OK;
}

int cuMemGetInfo_v2(size_t *free, size_t *total) {
    GUARD;
    *free = *total = size_t(f.get("free_memory", 1L << 40));
    return OK;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    GUARD;
    if (current == nullptr) return 201;
    if (f.get("allocations", 1 << 20) <= f.seen["allocations"]++) return OUT_OF_MEMORY;
    void *block = aligned_alloc(256, (bytes + 255) / 256 * 256);
    memset(block, 0xa5, bytes); // as dirty as the device's is
    *address = reinterpret_cast<uintptr_t>(block);
    f.memory[*address] = bytes;
    return OK;
}

int cuMemFree_v2(uint64_t address) {
    GUARD;
    auto block = f.memory.find(address);
    if (block == f.memory.end()) return INVALID;
    f.seen["dirty"] += !is_zero(reinterpret_cast<void *>(address), block->second);
    free(reinterpret_cast<void *>(address));
    f.memory.erase(block);
    return OK;
}

int cuMemHostAlloc(void **start, size_t bytes, unsigned) {
    GUARD;
    *start = malloc(bytes);
    f.pinned[reinterpret_cast<uintptr_t>(*start)] = bytes;
    return OK;
}

int cuMemFreeHost(void *start) {
    GUARD;
    auto block = f.pinned.find(reinterpret_cast<uintptr_t>(start));
    if (block == f.pinned.end()) return INVALID;
    f.seen["dirty"] += !is_zero(start, block->second);
    free(start);
    f.pinned.erase(block);
    return OK;
}

int cuStreamCreate(void **stream, unsigned) {
    GUARD;
    f.seen["streams"]++;
    *stream = new Stream;
    return OK;
}

int cuStreamDestroy_v2(void *stream) {
    GUARD;
    f.seen["streams"]--;
    delete static_cast<Stream *>(stream);
    return OK;
}

int cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, void *stream) {
    GUARD;
    if (!within(f, address, bytes)) return INVALID;
    static_cast<Stream *>(stream)->queued.push_back(
        [=] { memset(reinterpret_cast<void *>(address), value, bytes); });
    return OK;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
    GUARD;
    if (!within(f, to, bytes)) return INVALID;
    static_cast<Stream *>(stream)->queued.push_back([=] { memcpy(reinterpret_cast<void *>(to), from, bytes); });
    return OK;
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    GUARD;
    if (!within(f, from, bytes)) return INVALID;
    static_cast<Stream *>(stream)->queued.push_back([=] { memcpy(to, reinterpret_cast<void *>(from), bytes); });
    return OK;
}

int cuLaunchKernel(void *function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned,
                   void *stream, void **parameters, void **) {
    GUARD;
    if (f.seen["launches"]++ >= f.get("refuse_at", Fake::LONG_MAX_LAUNCHES)) return LAUNCH_FAILED;
    // Both structures have the same layout up to the number of operations.
    static_assert(sizeof(Signatures) == sizeof(Batch<4, 8>) && offsetof(Signatures, count) == 6 * sizeof(u64), "count");
    std::vector<uint8_t> parameter(sizeof(Batch<4, 8>));
    memcpy(parameter.data(), parameters[0], parameter.size());
    u32 count;
    memcpy(&count, parameter.data() + 6 * sizeof(u64), sizeof count);
    if (long(count) > f.seen["largest"]) f.seen["largest"] = count;
    const std::string name = static_cast<const char *>(function);
    // Of the three kernels of an operation, one counts.
    const bool counts = name.find("_prepare") == std::string::npos && name.find("_finish") == std::string::npos;
    if (counts) f.seen["operations"] += count;
    const u32 warps = blocks * threads / 32;
    static_cast<Stream *>(stream)->queued.push_back([=] {
        const void *batch = parameter.data();
        if (name == "quadrille_rsa2048") run<4, 8>(Rsa2048::run, batch, warps, Step::LAST);
        if (name == "quadrille_rsa3072") run<4, 12>(Rsa3072::run, batch, warps, Step::LAST);
        if (name == "quadrille_rsa4096") run<8, 8>(Rsa4096::run, batch, warps, Step::LAST);
        if (name == "quadrille_rsa2048_prepare") run<4, 8>(Rsa2048::prepare<20 * 52>, batch, warps, Step::FIRST);
        if (name == "quadrille_rsa2048_exponentiate") run<4, 8>(Exponentiation2048::run, batch, warps, Step::MIDDLE);
        if (name == "quadrille_rsa3072_prepare") run<4, 12>(Rsa3072::prepare<30 * 52>, batch, warps, Step::FIRST);
        if (name == "quadrille_rsa3072_exponentiate") run<4, 12>(Exponentiation3072::run, batch, warps, Step::MIDDLE);
        if (name == "quadrille_rsa2048_finish") run<4, 8>(Rsa2048::finish, batch, warps, Step::LAST);
        if (name == "quadrille_rsa3072_finish") run<4, 12>(Rsa3072::finish, batch, warps, Step::LAST);
        if (name == "quadrille_ml_dsa44") sign<MlDsa44>(batch, warps);
        if (name == "quadrille_ml_dsa65") sign<MlDsa65>(batch, warps);
        if (name == "quadrille_ml_dsa87") sign<MlDsa87>(batch, warps);
    });
    return OK;
}

int cuStreamSynchronize(void *handle) {
    Stream *stream = static_cast<Stream *>(handle);
    {
        GUARD;
        f.seen["waits"]++;
    }
    // Without the lock, so that two streams run concurrently.
    for (auto &step : stream->queued) step();
    stream->queued.clear();
    return OK;
}

int cuGetErrorName(int error, const char **name) {
    *name = error == LAUNCH_FAILED   ? "CUDA_ERROR_LAUNCH_FAILED"
            : error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                                     : nullptr;
    return *name == nullptr ? INVALID : OK;
}

} // extern "C"
