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

// The keys or the values of a head in a page.
template <class T>
struct Tile {
    T* at;
    int dim;

    __device__ static size_t len(int dim) { return (size_t)dim * KEYS; }
    __device__ void put_key(int i, int offset, float x) const { set(at[(size_t)i * KEYS + offset], x); }
    __device__ void put_value(int i, int offset, float x) const { set(at[(size_t)offset * dim + i], x); }
};

// In 8 bits (attention/quantised.rs): bytes, then a scale in f16 for a block of 32 dimensions, which are those of a warp's lanes.
template <>
struct Tile<q8> {
    q8* at;
    int dim;

    __device__ static size_t len(int dim) { return (size_t)dim * KEYS + dim / 32 * KEYS * sizeof(f16); }
    __device__ void put_key(int i, int offset, float x) const { put((size_t)i * KEYS + offset, i / 32 * KEYS + offset, x); }
    __device__ void put_value(int i, int offset, float x) const {
        put((size_t)offset * dim + i, offset * (dim / 32) + i / 32, x);
    }
    __device__ void put(size_t value, int block, float x) const {
        // Compared as integers, in which NaN is the largest; fmaxf drops it.
        uint32_t largest = __float_as_uint(fabsf(x));
        for (int lanes = 16; lanes > 0; lanes /= 2) largest = max(largest, __shfl_xor_sync(0xffffffff, largest, lanes));
        f16 scale;
        set(scale, __uint_as_float(largest) / 127.0f);
        const float inverse = to_float(scale) == 0 ? 0 : 1.0f / to_float(scale);
        at[value].byte = (int8_t)min(max(rintf(x * inverse), -127.0f), 127.0f);
        if (threadIdx.x % 32 == 0) ((f16*)(at + (size_t)dim * KEYS))[block] = scale;
    }
};

// With pages in 8 bits half a head is a whole number of blocks.
template <class T>
__device__ void rotate_and_store(const float* qkv, const float* cos, const float* sin, const uint32_t* positions,
                                 const uint32_t* slots, float* q, T* pages, int queries, int keys, int dim, int rows) {
    const int heads = queries + 2 * keys, index = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (index >= rows * heads) return;
    const int row = index / heads, head = index % heads, lane = threadIdx.x % 32, half = dim / 2;
    const float* x = qkv + (size_t)index * dim;
    const size_t slot = slots[row];
    const int offset = slot % KEYS;
    const Tile<T> tile = {head < queries ? nullptr : pages + (slot / KEYS * 2 * keys + head - queries) * Tile<T>::len(dim),
                          dim};
    if (head >= queries + keys) {
        for (int i = lane; i < dim; i += 32) tile.put_value(i, offset, x[i]);
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
            tile.put_key(i, offset, low);
            tile.put_key(i + half, offset, high);
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
ROPE(q8, q8)
