// Rotary embedding of queries and keys, and the write of keys and values into their pages, in one pass.
//
// Contract: rope/mod.rs. `qkv: [N, (A + 2K)·D] f32`, tables `[positions, D/2] f32`, `positions, slots: [N]`,
// `q: [N, A·D] f32`, pages of one layer `[P][2][K][..]` in f16, bf16 or f32 (attention/pages.rs: keys [D, 32], values
// [32, D]).
// Launch: one warp a head, 8 warps a block, grid ⌈N·(A + 2K) / 8⌉.
// Bytes: 4·(A + 2K)·D read, 4·A·D + 2·2K·D written a row, and 4·D of tables, which stay in the caches.
// Limit: memory; the keys' writes are 2 bytes 64 apart and meet in the second cache when a page's tokens come together.
// Numerics: the rotation is f32 as in the reference (two fused multiply-adds); the store is the only rounding.
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

#define ROPE(NAME, T)                                                                                                 \
    extern "C" __global__ void rotate_and_store_##NAME(                                                               \
        const float* qkv, const float* cos, const float* sin, const uint32_t* positions, const uint32_t* slots,       \
        float* q, T* pages, int queries, int keys, int dim, int rows) {                                               \
        rotate_and_store<T>(qkv, cos, sin, positions, slots, q, pages, queries, keys, dim, rows);                     \
    }
ROPE(f16, f16)
ROPE(bf16, bf16)
ROPE(f32, float)
