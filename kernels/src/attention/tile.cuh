// The inner loop of attention on tensor cores: the 16 query rows of one warp against 32 keys in shared memory.
//
// Fragments are those of `mma.m16n8k16` (PTX ISA, matrix fragments): lane l holds rows l/4 and l/4 + 8, columns 2(l%4) and
// the next. Scores are in units of log2 e, so that weights are powers of two. Sums are f32; queries, keys, weights and
// values go in as T. 16-byte chunks lie in shared memory where eight rows that are read together meet no bank twice.
#pragma once
#include "../cuda/common.cuh"
#include "../cuda/matrix.cuh"

const int KEYS = 32;
const int GROUP_ROWS = 16;

// Offset of chunk `chunk` of row `row`, for rows of CHUNKS chunks.
template <int CHUNKS>
__device__ inline int place(int row, int chunk) {
    return row * CHUNKS + (chunk ^ (CHUNKS == 4 ? (row >> 1) & 3 : row & 7));
}

// The query rows of a warp, and what their softmax has summed up so far.
template <class T, int D>
struct Rows {
    uint32_t q[D / 16][4];
    float out[D / 8][4];
    float max[2], sum[2];
    int first[2], end[2];  // the keys that each of the lane's two rows sees

    __device__ Rows() {
        for (int i = 0; i < D / 8; i++)
            for (int j = 0; j < 4; j++) out[i][j] = 0;
        for (int r = 0; r < 2; r++) max[r] = -INFINITY, sum[r] = 0, first[r] = 0, end[r] = 0;
    }

    // Takes the query of row r of the lane's two; null for a row that is not there.
    __device__ void load(int r, const float* from) {
        const float scale = 1.4426950408889634f / sqrtf((float)D);
        const int column = 2 * (threadIdx.x % 4);
        for (int k = 0; k < D / 16; k++)
            for (int half = 0; half < 2; half++) {
                const float* x = from + 16 * k + 8 * half + column;
                q[k][r + 2 * half] = from ? pack<T>(x[0] * scale, x[1] * scale) : 0;
            }
    }
};

// `by_key`: keys lie as [32, D] (beside the queries); else as [D, 32] (in a page). Values are [32, D].
template <bool BY_KEY, class T, int D>
__device__ inline void attend(Rows<T, D>& rows, const T* keys, const T* values, int first_key) {
    const int lane = threadIdx.x % 32, r = lane % 8, part = lane / 8, column = 2 * (lane % 4);
    float scores[4][4] = {};
#pragma unroll
    for (int k = 0; k < D / 16; k++)
#pragma unroll
        for (int pair = 0; pair < 2; pair++) {
            uint32_t b[4];
            if (BY_KEY)
                load_matrices(b, keys + 8 * place<D / 8>(8 * (2 * pair + part / 2) + r, 2 * k + part % 2));
            else
                load_transposed(b, keys + 8 * place<4>(16 * k + 8 * (part % 2) + r, 2 * pair + part / 2));
            multiply<T>(scores[2 * pair], rows.q[k], b[0], b[1]);
            multiply<T>(scores[2 * pair + 1], rows.q[k], b[2], b[3]);
        }
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float largest = rows.max[row];
#pragma unroll
        for (int n = 0; n < 4; n++)
            for (int e = 2 * row; e < 2 * row + 2; e++) {
                const int key = first_key + 8 * n + column + e % 2;
                if (key < rows.first[row] || key >= rows.end[row]) scores[n][e] = -INFINITY;
                largest = fmaxf(largest, scores[n][e]);
            }
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, 2));
        // A row that has seen no key yet must not give -inf - -inf.
        const float base = largest == -INFINITY ? 0 : largest, shrink = exp2f(rows.max[row] - base);
        rows.max[row] = largest;
        rows.sum[row] *= shrink;
#pragma unroll
        for (int n = 0; n < 4; n++)
            for (int e = 2 * row; e < 2 * row + 2; e++) {
                scores[n][e] = exp2f(scores[n][e] - base);
                rows.sum[row] += scores[n][e];
            }
#pragma unroll
        for (int d = 0; d < D / 8; d++) rows.out[d][2 * row] *= shrink, rows.out[d][2 * row + 1] *= shrink;
    }
#pragma unroll
    for (int k = 0; k < 2; k++) {
        // The scores of 16 keys are the left operand of the product with their values, in the same lanes.
        const uint32_t weights[4] = {
            pack<T>(scores[2 * k][0], scores[2 * k][1]), pack<T>(scores[2 * k][2], scores[2 * k][3]),
            pack<T>(scores[2 * k + 1][0], scores[2 * k + 1][1]), pack<T>(scores[2 * k + 1][2], scores[2 * k + 1][3])};
#pragma unroll
        for (int pair = 0; pair < D / 16; pair++) {
            uint32_t b[4];
            load_transposed(b, values + 8 * place<D / 8>(16 * k + 8 * (part % 2) + r, 2 * pair + part / 2));
            multiply<T>(rows.out[2 * pair], weights, b[0], b[1]);
            multiply<T>(rows.out[2 * pair + 1], weights, b[2], b[3]);
        }
    }
}

// Adds up each row's sum of weights over the four lanes that share the row.
template <class T, int D>
__device__ inline void finish(Rows<T, D>& rows) {
    for (int row = 0; row < 2; row++) {
        rows.sum[row] += __shfl_xor_sync(0xffffffff, rows.sum[row], 1);
        rows.sum[row] += __shfl_xor_sync(0xffffffff, rows.sum[row], 2);
    }
}
