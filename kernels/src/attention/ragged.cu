// Attention of an encoder: every token sees its whole sequence; sequences lie end to end without padding.
//
// Contract: attention/mod.rs. `qkv: [N, 3, A, D] f32`, D 32, 64 or 128, out [N, A, D] in the type of the product that
// follows. A *strip* is up to 64 query rows of one sequence.
// Launch: grid (strips, A), 4 warps of 16 rows; tiles of 32 keys, 4·32·D bytes of shared memory.
// Bytes: a strip reads its sequence's keys and values, 8·D a token and head, from the second cache mostly, and its queries,
// 4·D a row and head; out is 2·D (bf16) or 4·D a row and head.
// Limit: up to about 512 tokens the tensor cores' latency, beyond that the second cache.
// Numerics: as paged.cu with f16 operands: below 2^-8 of a row's largest value against the reference.
#include "tile.cuh"

struct Strip {
    uint32_t first_row, rows, first_key, keys;
};

const int WARPS = 4;

// Keys or values of 32 tokens, zeros past the end of the sequence.
template <class T, int D>
__device__ inline void load_tokens(T* tile, const float* from, size_t stride, int tokens) {
    for (int i = threadIdx.x; i < KEYS * D / 8; i += blockDim.x) {
        const int token = i / (D / 8), chunk = i % (D / 8);
        uint32_t packed[4] = {};
        if (token < tokens) {
            const float* x = from + token * stride + 8 * chunk;
            for (int j = 0; j < 4; j++) packed[j] = pack<T>(x[2 * j], x[2 * j + 1]);
        }
        *(uint4*)(tile + 8 * place<D / 8>(token, chunk)) = make_uint4(packed[0], packed[1], packed[2], packed[3]);
    }
}

template <class T, class Out, int D>
__device__ void ragged(const float* qkv, const Strip* strips, int heads, Out* out) {
    __shared__ __align__(16) T keys[KEYS * D], values[KEYS * D];
    const Strip strip = strips[blockIdx.x];
    const int head = blockIdx.y, lane = threadIdx.x % 32, first_row = threadIdx.x / 32 * GROUP_ROWS;
    const size_t width = (size_t)heads * D, stride = 3 * width;
    Rows<T, D> rows;
    for (int r = 0; r < 2; r++) {
        const int row = first_row + lane / 4 + 8 * r;
        const bool there = row < (int)strip.rows;
        rows.load(r, there ? qkv + (strip.first_row + row) * stride + head * D : nullptr);
        rows.end[r] = there ? strip.keys : 0;
    }
    const bool busy = first_row < (int)strip.rows;
    for (int key = 0; key < (int)strip.keys; key += KEYS) {
        const float* from = qkv + (size_t)(strip.first_key + key) * stride + width + head * D;
        load_tokens<T, D>(keys, from, stride, strip.keys - key);
        load_tokens<T, D>(values, from + width, stride, strip.keys - key);
        __syncthreads();
        if (busy) attend<true>(rows, keys, values, key);
        __syncthreads();
    }
    finish(rows);
    for (int r = 0; r < 2; r++) {
        const int row = first_row + lane / 4 + 8 * r;
        if (row >= (int)strip.rows) continue;
        Out* to = out + (strip.first_row + row) * width + head * D + 2 * (lane % 4);
        for (int d = 0; d < D / 8; d++)
            for (int e = 0; e < 2; e++) set(to[8 * d + e], rows.out[d][2 * r + e] / rows.sum[r]);
    }
}

#define RAGGED(NAME, OUT, D)                                                                                       \
    extern "C" __global__ void __launch_bounds__(32 * WARPS)                                                       \
        ragged_##NAME##_##D(const float* qkv, const Strip* strips, int heads, OUT* out) {                          \
        ragged<f16, OUT, D>(qkv, strips, heads, out);                                                             \
    }
RAGGED(f32, float, 32)
RAGGED(f32, float, 64)
RAGGED(f32, float, 128)
RAGGED(bf16, bf16, 32)
RAGGED(bf16, bf16, 64)
RAGGED(bf16, bf16, 128)
