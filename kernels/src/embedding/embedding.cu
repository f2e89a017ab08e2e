// What an encoder says of texts, for a whole batch: dense vectors, weights of words, vectors of tokens.
//
// Contract: embedding/mod.rs. `hidden: [N, H] f32`, `texts: [B] (first row, rows)`.
// Launch: pool_unit: one block of 256 a text. unit_rows: one warp a row, 8 a block. sparse_max: one thread a token, 256 a
// block, grid (⌈longest / 256⌉, B).
// Bytes: pool_unit reads the first row (CLS) or all rows (mean) once; unit_rows 4·H read, 4·H written a row; sparse_max reads
// the text's ids once a block.
// Limit: memory; sparse_max compares every token with every other of its text, 67 million times for 8,192.
// Numerics: f32 sums in another order than the reference; below 1e-6. sparse_max is exact.
#include "../cuda/common.cuh"

extern "C" __global__ void pool_unit(const float* hidden, const uint2* texts, int mean, float* out, int width) {
    const uint2 text = texts[blockIdx.x];
    const float* rows = hidden + (size_t)text.x * width;
    float* to = out + (size_t)blockIdx.x * width;
    const uint32_t count = mean ? text.y : 1;
    float squares = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        float sum = 0;
        for (uint32_t row = 0; row < count; row++) sum += rows[(size_t)row * width + i];
        to[i] = sum;
        squares += sum * sum;
    }
    // The length of a sum and of a mean differ by a factor that the division takes out again.
    const float length = sqrtf(block_sum(squares));
    for (int i = threadIdx.x; i < width; i += blockDim.x) to[i] /= length;
}

extern "C" __global__ void unit_rows(const float* x, float* out, int width, int rows) {
    const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float* from = x + (size_t)row * width;
    float squares = 0;
    for (int i = lane; i < width; i += 32) squares += from[i] * from[i];
    const float length = sqrtf(warp_sum(squares));
    for (int i = lane; i < width; i += 32) out[(size_t)row * width + i] = from[i] / length;
}

// out[n] = relu(weights[n]) where no other token of the text has the same id and a larger weight, or an equal one
// earlier; else 0.
extern "C" __global__ void sparse_max(const float* weights, const uint32_t* ids, const uint2* texts, float* out) {
    const uint2 text = texts[blockIdx.y];
    const uint32_t token = blockIdx.x * blockDim.x + threadIdx.x;
    if (token >= text.y) return;
    weights += text.x;
    ids += text.x;
    const uint32_t id = ids[token];
    const float weight = weights[token];
    bool kept = weight > 0;
    for (uint32_t other = 0; other < text.y && kept; other++)
        if (ids[other] == id && (weights[other] > weight || (weights[other] == weight && other < token))) kept = false;
    out[text.x + token] = kept ? weight : 0;
}
