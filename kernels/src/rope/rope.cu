// Rotary embedding of queries and keys, and the write of keys and values into their pages, in one pass.
//
// Contract: rope/mod.rs. `qkv: [N, (A + 2K)·D] f32`, tables `[positions, D/2] f32`, `positions, slots: [N]`,
// `q: [N, A·D] f32`, pages of one layer `[P][2][K][..]` in f16, bf16, f32 or 8 bits (attention/pages.rs: keys [D, 32],
// values [32, D]).
// Launch: one warp a head, 8 warps a block, grid ⌈N·(A + 2K) / 8⌉.
// Bytes: 4·(A + 2K)·D read, 4·A·D + 2·2K·D written a row, and 4·D of tables, which stay in the caches.
// Limit: memory; the keys' writes are 2 bytes 64 apart and meet in the second cache when a page's tokens come together.
// Numerics: the rotation is f32 as in the reference (two fused multiply-adds); the store is the only rounding. In 8 bits a key or value has
// the bytes and scales that it has on the CPU.
#include "../cuda/common.cuh"

const int KEYS = 32;

template <class T>
__device__ void rotate_and_store(const float* qkv, const float* cos, const float* sin, const uint32_t* positions,
                                 const uint32_t* slots, float* q, T* pages, int queries, int keys, int dim, int rows) {
    const int heads = queries + 2 * keys, index = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (index >= rows * heads) return;
    const int row = index / heads, head = index % heads, lane = threadIdx.x % 32, half = dim / 2;
    const float* x = qkv + (size_t)index * dim;
    const size_t slot = slots[row], tile = (size_t)dim * KEYS, page = slot / KEYS * 2 * keys * tile;
    const int offset = slot % KEYS;
    if (head >= queries + keys) {
        T* values = pages + page + (size_t)(head - queries) * tile + (size_t)offset * dim;
        for (int i = lane; i < dim; i += 32) set(values[i], x[i]);
        return;
    }
    const size_t angle = (size_t)positions[row] * half;
    for (int i = lane; i < half; i += 32) {
        const float a = x[i], b = x[i + half], c = cos[angle + i], s = sin[angle + i];
        const float low = fmaf(a, c, -(b * s)), high = fmaf(b, c, a * s);
        if (head < queries) {
            float* to = q + ((size_t)row * queries + head) * dim;
            to[i] = low;
            to[i + half] = high;
        } else {
            T* to = pages + page + (size_t)(head - queries) * tile + offset;
            set(to[(size_t)i * KEYS], low);
            set(to[(size_t)(i + half) * KEYS], high);
        }
    }
}

// A value of a warp's block of 32 in 8 bits, and their scale, which lane 0 writes (attention/quantised.rs).
__device__ inline void store_block(int8_t* to, f16* scale, float x) {
    float largest = fabsf(x);
    for (int lanes = 16; lanes > 0; lanes /= 2) largest = max(largest, __shfl_xor_sync(0xffffffff, largest, lanes));
    f16 rounded;
    set(rounded, largest / 127.0f);
    const float inverse = to_float(rounded) == 0 ? 0 : 1.0f / to_float(rounded);
    *to = (int8_t)min(max(rintf(x * inverse), -127.0f), 127.0f);
    if (threadIdx.x % 32 == 0) *scale = rounded;
}

// The same for pages in 8 bits: half a head is a whole number of blocks.
extern "C" __global__ void rotate_and_store_q8(const float* qkv, const float* cos, const float* sin,
                                               const uint32_t* positions, const uint32_t* slots, float* q, int8_t* pages,
                                               int queries, int keys, int dim, int rows) {
    const int heads = queries + 2 * keys, index = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (index >= rows * heads) return;
    const int row = index / heads, head = index % heads, lane = threadIdx.x % 32, half = dim / 2, blocks = dim / 32;
    const float* x = qkv + (size_t)index * dim;
    const size_t slot = slots[row], tile = (size_t)dim * KEYS + blocks * KEYS * sizeof(f16);
    const int offset = slot % KEYS;
    int8_t* to = head < queries ? nullptr : pages + (slot / KEYS * 2 * keys + head - queries) * tile;
    f16* scales = (f16*)(to + (size_t)dim * KEYS);
    if (head >= queries + keys) {
        for (int block = 0; block < blocks; block++) {
            const int i = 32 * block + lane;
            store_block(to + (size_t)offset * dim + i, scales + offset * blocks + block, x[i]);
        }
        return;
    }
    const size_t angle = (size_t)positions[row] * half;
    for (int i = lane; i < half; i += 32) {
        const float a = x[i], b = x[i + half], c = cos[angle + i], s = sin[angle + i];
        const float low = fmaf(a, c, -(b * s)), high = fmaf(b, c, a * s);
        if (head < queries) {
            float* turned = q + ((size_t)row * queries + head) * dim;
            turned[i] = low;
            turned[i + half] = high;
        } else {
            const int block = i / 32;
            store_block(to + (size_t)i * KEYS + offset, scales + block * KEYS + offset, low);
            store_block(to + (size_t)(i + half) * KEYS + offset, scales + (block + blocks / 2) * KEYS + offset, high);
        }
    }
}

#define ROPE(NAME, T)                                                                                                 \
    extern "C" __global__ void rotate_and_store_##NAME(                                                               \
        const float* qkv, const float* cos, const float* sin, const uint32_t* positions, const uint32_t* slots,       \
        float* q, T* pages, int queries, int keys, int dim, int rows) {                                               \
        rotate_and_store<T>(qkv, cos, sin, positions, slots, q, pages, queries, keys, dim, rows);                     \
    }
ROPE(f16, f16)
ROPE(bf16, bf16)
ROPE(f32, float)
