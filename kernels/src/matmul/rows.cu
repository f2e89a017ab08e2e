// Rows of a table by their numbers, and the product of few rows with bf16 weights.
//
// Contract: `lookup`: out[n] = table[ids[n]] as f32, for embeddings and for picking rows.
// `few_rows_M`: out[m][n] = Σ_k x[m][k]·w[n][k] for M rows of bf16 `x`, `w: [N, K] bf16` with K a multiple of 8, f32 out.
// Launch: lookup: grid (N, ⌈H / 256⌉), 256 threads. few_rows: one warp for two weight rows, 4 warps a block, grid ⌈N / 8⌉.
// Bytes: lookup reads 2·H (bf16) or 4·H and a number a row, and writes 4·H. few_rows reads every weight once, 2·N·K; x comes
// from the nearest cache; 4·M·N written.
// Limit: memory bandwidth: every lane asks for 16 bytes at a time, 8 such loads are under way at once.
// Numerics: sums in f32 over lanes, then over the warp; the same bits for a row whatever the other rows are.
#include "../cuda/common.cuh"

#define LOOKUP(NAME, T)                                                                                         \
    extern "C" __global__ void lookup_##NAME(const T* table, const uint32_t* ids, float* out, int width) {      \
        const int i = blockIdx.y * blockDim.x + threadIdx.x;                                                    \
        if (i < width) out[(size_t)blockIdx.x * width + i] = to_float(table[(size_t)ids[blockIdx.x] * width + i]); \
    }
LOOKUP(f32, float)
LOOKUP(bf16, bf16)

const int AT_ONCE = 4;

// Adds the products of 8 neighbours.
__device__ inline float dot8(uint4 w, uint4 x, float sum) {
    const uint32_t ws[4] = {w.x, w.y, w.z, w.w}, xs[4] = {x.x, x.y, x.z, x.w};
    for (int i = 0; i < 4; i++) {
        // The bits of a bf16 are the upper half of an f32.
        sum = fmaf(__uint_as_float(ws[i] << 16), __uint_as_float(xs[i] << 16), sum);
        sum = fmaf(__uint_as_float(ws[i] & 0xffff0000), __uint_as_float(xs[i] & 0xffff0000), sum);
    }
    return sum;
}

template <int M>
__device__ void few_rows(const bf16* x, const bf16* w, float* out, int n, int k) {
    const int lane = threadIdx.x % 32, first = 2 * (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32);
    if (first >= n) return;
    const int chunks = k / 8;
    // The last warp of an odd N does its row twice and writes it once.
    const uint4* rows[2] = {(const uint4*)w + (size_t)first * chunks,
                            (const uint4*)w + (size_t)min(first + 1, n - 1) * chunks};
    const uint4* xs = (const uint4*)x;
    float sums[2][M] = {};
    int at = lane;
    for (; at + (AT_ONCE - 1) * 32 < chunks; at += AT_ONCE * 32) {
        uint4 ws[2][AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            for (int r = 0; r < 2; r++) ws[r][i] = rows[r][at + 32 * i];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
#pragma unroll
            for (int m = 0; m < M; m++) {
                const uint4 values = xs[(size_t)m * chunks + at + 32 * i];
                for (int r = 0; r < 2; r++) sums[r][m] = dot8(ws[r][i], values, sums[r][m]);
            }
    }
    for (; at < chunks; at += 32)
        for (int r = 0; r < 2; r++)
            for (int m = 0; m < M; m++) sums[r][m] = dot8(rows[r][at], xs[(size_t)m * chunks + at], sums[r][m]);
    for (int r = 0; r < 2; r++)
        for (int m = 0; m < M; m++) {
            const float sum = warp_sum(sums[r][m]);
            if (lane == 0 && first + r < n) out[(size_t)m * n + first + r] = sum;
        }
}

#define FEW_ROWS(M)                                                                                      \
    extern "C" __global__ void few_rows_##M(const bf16* x, const bf16* w, float* out, int n, int k) {    \
        few_rows<M>(x, w, out, n, k);                                                                    \
    }
FEW_ROWS(1)
FEW_ROWS(2)
FEW_ROWS(3)
FEW_ROWS(4)
