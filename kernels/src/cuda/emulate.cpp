// The kernels as C++ for this processor, so that their arithmetic and their indices are tested where there is no card.
//
// A block's threads are fibers that run one after the other up to the next barrier; blocks run one after the other.
// Instructions over a warp (shuffles, fragments, products) put their operands into a place that all lanes see, and follow
// the layouts that the PTX ISA gives. What it does not show: races between barriers, limits of registers, speed.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
static inline uint32_t __byte_perm(uint32_t x, uint32_t y, uint32_t selector) {
    const uint64_t both = (uint64_t)y << 32 | x;
    uint32_t out = 0;
    for (int i = 0; i < 4; i++) out |= (uint32_t)(both >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return out;
}
using std::max;
using std::min;
struct uint2 { uint32_t x, y; };
struct uint4 { uint32_t x, y, z, w; };
struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }
struct Index { uint32_t x, y, z; };
static Index threadIdx, blockIdx, blockDim;

static inline uint32_t __float_as_uint(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }
static inline float __uint_as_float(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline uint32_t atomicAdd(uint32_t* at, uint32_t x) { const uint32_t before = *at; *at += x; return before; }

// Fibers.
enum State { READY, AT_WARP, AT_BLOCK, DONE };
struct Fiber { ucontext_t context; State state; std::vector<char> stack; };
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static uint32_t current;
static void (*body)(void**);
static void** arguments;

static void fiber_main() { body(arguments); fibers[current].state = DONE; }
static void wait(State at) {
    const uint32_t self = current;
    fibers[self].state = at;
    swapcontext(&fibers[self].context, &scheduler);
}
static void __syncthreads() { wait(AT_BLOCK); }
static void __syncwarp() { wait(AT_WARP); }

// Lets those go on whom everybody has met at a barrier; false if there are none.
static bool release() {
    bool any = false, all = true;
    for (Fiber& fiber : fibers) all &= fiber.state == AT_BLOCK || fiber.state == DONE;
    for (size_t first = 0; first < fibers.size(); first += 32) {
        bool warp = true;
        for (size_t i = first; i < first + 32; i++) warp &= fibers[i].state == AT_WARP;
        for (size_t i = first; i < first + 32; i++)
            if (warp || (all && fibers[i].state == AT_BLOCK)) fibers[i].state = READY, any = true;
    }
    return any;
}

static void run_block() {
    for (Fiber& fiber : fibers) {
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = &scheduler;
        fiber.state = READY;
        makecontext(&fiber.context, fiber_main, 0);
    }
    while (true) {
        bool done = true;
        for (current = 0; current < fibers.size(); current++) {
            if (fibers[current].state == READY) {
                threadIdx.x = current;
                swapcontext(&scheduler, &fibers[current].context);
            }
            done &= fibers[current].state == DONE;
        }
        if (done) return;
        if (!release()) {
            fprintf(stderr, "emulation: threads wait at a barrier that not all of them reach\n");
            abort();
        }
    }
}

// Instructions over a warp.
static uint32_t operands[32][32][6];
static uint32_t (*mine())[6] { return operands[threadIdx.x / 32]; }
template <class T>
static T __shfl_xor_sync(uint32_t, T x, int lanes) {
    uint32_t(*all)[6] = mine();
    const uint32_t lane = threadIdx.x % 32;
    memcpy(all[lane], &x, sizeof x);
    __syncwarp();
    memcpy(&x, all[lane ^ lanes], sizeof x);
    __syncwarp();
    return x;
}

// Number types. Rounding to nearest, ties to even.
struct bf16 { uint16_t bits; };
struct f16 { uint16_t bits; };
static float to_float(bf16 x) { return __uint_as_float((uint32_t)x.bits << 16); }
static void set(bf16& to, float x) {
    const uint32_t bits = __float_as_uint(x);
    to.bits = isnan(x) ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
static float to_float(f16 x) {
    const int exponent = x.bits >> 10 & 31, fraction = x.bits & 1023;
    const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                       : exponent     ? ldexpf(1024 + fraction, exponent - 25)
                                      : ldexpf(fraction, -24);
    return x.bits & 0x8000 ? -size : size;
}
static void set(f16& to, float x) {
    const uint16_t sign = __float_as_uint(x) >> 16 & 0x8000;
    const float size = fabsf(x);
    if (isnan(x)) { to.bits = 0x7e00; return; }
    if (size >= 65520) { to.bits = sign | 0x7c00; return; }
    int exponent;
    frexpf(size, &exponent);
    exponent = max(exponent, -13);
    // The unit in the last place of a half with this exponent.
    const float units = nearbyintf(ldexpf(size, 11 - exponent));
    const uint32_t fraction = (uint32_t)units;
    to.bits = sign | (fraction < 1024 ? fraction : ((exponent + 13) << 10) + fraction);
}
template <class T>
static uint32_t pack(float low, float high) {
    T both[2];
    set(both[0], low);
    set(both[1], high);
    return both[0].bits | (uint32_t)both[1].bits << 16;
}
template <class T>
static float half_of(uint32_t both, int which) { return to_float(T{(uint16_t)(both >> 16 * which)}); }

template <class T>
static void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    uint32_t(*all)[6] = mine();
    const int lane = threadIdx.x % 32, group = lane / 4, column = 2 * (lane % 4);
    memcpy(all[lane], a, 16);
    all[lane][4] = b0, all[lane][5] = b1;
    __syncwarp();
    for (int e = 0; e < 4; e++) {
        const int row = group + 8 * (e / 2), n = column + e % 2;
        for (int k = 0; k < 16; k++) {
            const uint32_t left = all[4 * (row % 8) + k % 8 / 2][row / 8 + 2 * (k / 8)];
            const uint32_t right = all[4 * n + k % 8 / 2][4 + k / 8];
            c[e] += half_of<T>(left, k % 2) * half_of<T>(right, k % 2);
        }
    }
    __syncwarp();
}
static void multiply_bf16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    for (float& x : d) x = 0;
    multiply<bf16>(d, a, b0, b1);
}
static uint32_t masked(uint32_t x, uint32_t mask, uint32_t bits) { return (x & mask) | bits; }
static uint32_t in_register(uint32_t constant) { return constant; }
static void load(uint32_t (&to)[4], const void* row, bool transposed) {
    uint32_t(*all)[6] = mine();
    const int lane = threadIdx.x % 32;
    memcpy(all[lane], &row, sizeof row);
    __syncwarp();
    for (int i = 0; i < 4; i++) {
        uint16_t both[2];
        for (int e = 0; e < 2; e++) {
            const int r = transposed ? 2 * (lane % 4) + e : lane / 4, c = transposed ? lane / 4 : 2 * (lane % 4) + e;
            const uint16_t* from;
            memcpy(&from, all[8 * i + r], sizeof from);
            both[e] = from[c];
        }
        to[i] = both[0] | (uint32_t)both[1] << 16;
    }
    __syncwarp();
}
static void load_matrices(uint32_t (&to)[4], const void* row) { load(to, row, false); }
static void load_transposed(uint32_t (&to)[4], const void* row) { load(to, row, true); }
// A copy lands when its group is awaited, not before.
struct Copy { void* to; const void* from; bool valid; };
static std::vector<std::vector<Copy>> groups[1024];
static void begin_copy(void* to, const void* from, bool valid) {
    auto& own = groups[threadIdx.x];
    if (own.empty()) own.emplace_back();
    own.back().push_back({to, from, valid});
}
static void end_group() {
    auto& own = groups[threadIdx.x];
    if (own.empty()) own.emplace_back();
    own.emplace_back();
}
template <int PENDING>
static void await_groups() {
    auto& own = groups[threadIdx.x];
    while (own.size() > PENDING + 1) {
        for (const Copy& copy : own.front())
            if (copy.valid) memcpy(copy.to, copy.from, 16); else memset(copy.to, 0, 16);
        own.erase(own.begin());
    }
}

#include "../attention/tile.cuh"
namespace activation {
#include "../activation/activation.cu"
}
namespace embedding {
#include "../embedding/embedding.cu"
}
namespace norm {
#include "../norm/norm.cu"
}
namespace paged {
#include "../attention/paged.cu"
}
namespace quantised {
#include "../matmul/quantised/product.cuh"
#include "../matmul/quantised/q2_k.cu"
#include "../matmul/quantised/q3_k.cu"
#include "../matmul/quantised/q4_0.cu"
#include "../matmul/quantised/q4_1.cu"
#include "../matmul/quantised/q4_k.cu"
#include "../matmul/quantised/q5_0.cu"
#include "../matmul/quantised/q5_1.cu"
#include "../matmul/quantised/q5_k.cu"
#include "../matmul/quantised/q6_k.cu"
#include "../matmul/quantised/q8_0.cu"
}
namespace ragged {
#include "../attention/ragged.cu"
}
namespace rope {
#include "../rope/rope.cu"
}
namespace rows {
#include "../matmul/rows.cu"
}
namespace sample {
#include "../sample/draw.cu"
}

// By name, with arguments as a launch hands them over.
template <class... A, size_t... I>
static void call(void (*kernel)(A...), void** args, std::index_sequence<I...>) {
    kernel(*(A*)args[I]...);
}
template <auto KERNEL>
struct Thunk;
template <class... A, void (*KERNEL)(A...)>
struct Thunk<KERNEL> {
    static void run(void** args) { call(KERNEL, args, std::index_sequence_for<A...>()); }
};
#define ENTRY(ROOM, NAME) {#NAME, Thunk<ROOM::NAME>::run},
#define BOTH(ROOM, NAME) ENTRY(ROOM, NAME##_f32) ENTRY(ROOM, NAME##_bf16)
#define QUANTISED(NAME)                                                                     \
    ENTRY(quantised, product_##NAME##_8_1) ENTRY(quantised, expand_##NAME)                  \
    ENTRY(quantised, product_##NAME##_16_1) ENTRY(quantised, product_##NAME##_16_4)         \
    ENTRY(quantised, product_##NAME##_32_1) ENTRY(quantised, product_##NAME##_32_4)         \
    ENTRY(quantised, product_##NAME##_64_1) ENTRY(quantised, product_##NAME##_64_4)
#define SIZES(T, OUT)                                                                       \
    ENTRY(paged, paged_wide_##T##_##OUT##_64) ENTRY(paged, paged_wide_##T##_##OUT##_128)    \
    ENTRY(paged, paged_narrow_##T##_##OUT##_64) ENTRY(paged, paged_narrow_##T##_##OUT##_128)
static const struct { const char* name; void (*run)(void**); } KERNELS[] = {
    BOTH(activation, swiglu) BOTH(activation, geglu) BOTH(activation, gelu)
    ENTRY(activation, add) ENTRY(activation, to_bf16)
    BOTH(norm, rms_norm) BOTH(norm, add_rms_norm) ENTRY(norm, layer_norm) ENTRY(norm, norm_heads)
    ENTRY(rope, rotate_and_store_f16) BOTH(rope, rotate_and_store) ENTRY(rope, rotate_and_store_q8)
    BOTH(rows, lookup) ENTRY(rows, few_rows_1) ENTRY(rows, few_rows_2) ENTRY(rows, few_rows_3) ENTRY(rows, few_rows_4)
    QUANTISED(q2_k) QUANTISED(q3_k) QUANTISED(q4_0) QUANTISED(q4_1) QUANTISED(q4_k)
    QUANTISED(q5_0) QUANTISED(q5_1) QUANTISED(q5_k) QUANTISED(q6_k) QUANTISED(q8_0)
    SIZES(f16, f32) SIZES(f16, bf16) SIZES(bf16, f32) SIZES(bf16, bf16) SIZES(q8, f32) SIZES(q8, bf16)
    BOTH(paged, merge)
    ENTRY(ragged, ragged_f32_32) ENTRY(ragged, ragged_f32_64) ENTRY(ragged, ragged_f32_128)
    ENTRY(ragged, ragged_bf16_32) ENTRY(ragged, ragged_bf16_64) ENTRY(ragged, ragged_bf16_128)
    ENTRY(embedding, pool_unit) ENTRY(embedding, unit_rows) ENTRY(embedding, sparse_max)
    ENTRY(sample, draw)
};

// Runs a kernel; 1 if there is none of that name.
extern "C" int emulate(const char* name, uint32_t grid_x, uint32_t grid_y, uint32_t block, void** args) {
    for (const auto& kernel : KERNELS) {
        if (strcmp(kernel.name, name) != 0) continue;
        body = kernel.run, arguments = args, blockDim = {block, 1, 1};
        fibers.resize(block);
        for (Fiber& fiber : fibers) fiber.stack.resize(1 << 16);
        for (blockIdx.y = 0; blockIdx.y < grid_y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid_x; blockIdx.x++) {
                for (auto& own : groups) own.clear();
                run_block();
            }
        return 0;
    }
    return 1;
}
