// RMSNorm and LayerNorm of rows, alone or of the sum with what comes back from a block (the residual).
//
// Contract: norm/mod.rs. `x, delta: [N, H] f32`, `weight, bias: [H] f32`; out: [N, H] in the type of the product that
// follows. `add_*` also gives `sum = x + delta` (LayerNorm: only the norm of the sum, since that is the next residual).
// Launch: one block a row, 256 threads, no dynamic shared memory; norm_heads: one warp a head, 8 warps a block.
// Bytes a row: x and out once: 4·H + 2·H (bf16), 21 KB for H 3584. `add_*`
// also reads delta and writes the sum: 12·H + 2·H, 50 KB. LayerNorm: 4·H read (8·H with delta), 4·H written; the sum is
// stored in out in between, written once and read twice more from the nearest cache. norm_heads: 4·(A + 2K)·D read and written.
// Limit: memory for many rows, latency for one.
// Numerics: sums in f32 in another order than the reference; below 1e-6 of the row's largest value, then the out type.
#include "../cuda/matrix.cuh"

// Groups of 4 values that a thread keeps between the passes; a wider row is read again.
const int HELD = 8;

__device__ inline void set4(float* to, float4 x) { *(float4*)to = x; }
__device__ inline void set4(bf16* to, float4 x) {
    *(uint2*)to = make_uint2(pack<bf16>(x.x, x.y), pack<bf16>(x.z, x.w));
}

// Rows of a multiple of 4 values: all loads of a thread are under way at once.
template <class Out, bool ADD>
__device__ void rms_row_of_4(const float* x, const float* delta, const float* weight, float epsilon, float* sum, Out* out,
                             int width) {
    const size_t row = (size_t)blockIdx.x * width;
    const int quads = width / 4, step = blockDim.x;
    float squares = 0;
    const auto value = [&](int i) {
        float4 v = *(const float4*)(x + row + 4 * i);
        if (ADD) {
            const float4 d = *(const float4*)(delta + row + 4 * i);
            v = make_float4(v.x + d.x, v.y + d.y, v.z + d.z, v.w + d.w);
        }
        return v;
    };
    const auto add = [&](float4 v) { squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; };
    float4 held[HELD], weights[HELD];
#pragma unroll
    for (int j = 0; j < HELD; j++) {
        const int i = threadIdx.x + j * step;
        if (i < quads) held[j] = value(i), weights[j] = *(const float4*)(weight + 4 * i);
    }
#pragma unroll
    for (int j = 0; j < HELD; j++) {
        const int i = threadIdx.x + j * step;
        if (i >= quads) continue;
        add(held[j]);
        if (ADD) set4(sum + row + 4 * i, held[j]);
    }
    for (int i = threadIdx.x + HELD * step; i < quads; i += step) {
        const float4 v = value(i);
        add(v);
        if (ADD) set4(sum + row + 4 * i, v);
    }
    const float scale = 1.0f / sqrtf(block_sum(squares) / width + epsilon);
    const auto finish = [&](int i, float4 v, float4 w) {
        set4(out + row + 4 * i, make_float4(v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w));
    };
#pragma unroll
    for (int j = 0; j < HELD; j++) {
        const int i = threadIdx.x + j * step;
        if (i < quads) finish(i, held[j], weights[j]);
    }
    for (int i = threadIdx.x + HELD * step; i < quads; i += step) finish(i, value(i), *(const float4*)(weight + 4 * i));
}

template <class Out, bool ADD>
__device__ void rms_row(const float* x, const float* delta, const float* weight, float epsilon, float* sum, Out* out,
                        int width) {
    if (width % 4 == 0) return rms_row_of_4<Out, ADD>(x, delta, weight, epsilon, sum, out, width);
    const size_t row = (size_t)blockIdx.x * width;
    float squares = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        float value = x[row + i];
        if (ADD) {
            value += delta[row + i];
            sum[row + i] = value;
        }
        squares += value * value;
    }
    const float scale = 1.0f / sqrtf(block_sum(squares) / width + epsilon);
    const float* from = ADD ? sum : x;
    // A thread reads again only what it wrote itself.
    for (int i = threadIdx.x; i < width; i += blockDim.x) set(out[row + i], from[row + i] * scale * weight[i]);
}

#define RMS_NORM(TYPE)                                                                                              \
    extern "C" __global__ void rms_norm_##TYPE(const float* x, const float* weight, float epsilon,                  \
                                               typename_##TYPE* out, int width) {                                   \
        rms_row<typename_##TYPE, false>(x, nullptr, weight, epsilon, nullptr, out, width);                          \
    }                                                                                                               \
    extern "C" __global__ void add_rms_norm_##TYPE(const float* x, const float* delta, const float* weight,         \
                                                   float epsilon, float* sum, typename_##TYPE* out, int width) {    \
        rms_row<typename_##TYPE, true>(x, delta, weight, epsilon, sum, out, width);                                 \
    }
typedef float typename_f32;
typedef bf16 typename_bf16;
RMS_NORM(f32)
RMS_NORM(bf16)

// `delta` may be null.
extern "C" __global__ void layer_norm(const float* x, const float* delta, const float* weight, const float* bias,
                                      float epsilon, float* out, int width) {
    const size_t row = (size_t)blockIdx.x * width;
    float sum = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        const float value = delta ? x[row + i] + delta[row + i] : x[row + i];
        out[row + i] = value;
        sum += value;
    }
    const float mean = block_sum(sum) / width;
    float squares = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        const float value = out[row + i] - mean;
        squares += value * value;
    }
    const float scale = 1.0f / sqrtf(block_sum(squares) / width + epsilon);
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        out[row + i] = (out[row + i] - mean) * scale * weight[i] + bias[i];
}

// RMSNorm of every query and key head of `qkv: [N, (A + 2K)·D]`; values are copied.
extern "C" __global__ void norm_heads(const float* qkv, const float* q_norm, const float* k_norm, float epsilon,
                                      float* out, int queries, int keys, int dim, int rows) {
    const int heads = queries + 2 * keys, index = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (index >= rows * heads) return;
    const int head = index % heads, lane = threadIdx.x % 32;
    const float* x = qkv + (size_t)index * dim;
    float* to = out + (size_t)index * dim;
    if (head >= queries + keys) {
        for (int i = lane; i < dim; i += 32) to[i] = x[i];
        return;
    }
    const float* weight = head < queries ? q_norm : k_norm;
    float squares = 0;
    for (int i = lane; i < dim; i += 32) squares += x[i] * x[i];
    const float scale = 1.0f / sqrtf(warp_sum(squares) / dim + epsilon);
    for (int i = lane; i < dim; i += 32) to[i] = x[i] * scale * weight[i];
}
