// Products with quantised weights: a `.cu` file for each of ggml's block formats includes this and names its kernels (KERNELS_OF).
//
// Weights: `[N, K]`, K a multiple of 64, as cuda/blocks.rs lays them out: the bodies of all blocks, then their heads (scale, or scale
// and minimum) where the format's blocks would not be aligned otherwise.
//
// Contract: `product_FORMAT_R_TILES`: out[m][n] = Σ_k x[m][k]·w[n][k] for M <= R rows of bf16 `x: [M, K]`. To it come a bias of
// `[N]` and a residual of the shape of `out` where their pointers are not 0. With `gated` the rows of the weights are those of
// gates, then as many of ups, and out[m][n] = silu(gate)·up in bf16, else f32. `out_width` is the width of a row of `out` and
// of the residual. `expand_FORMAT`: the weights of rows `first` and after as bf16 `[., K]`, `count` times 16 of them.
// Launch: product: at most 8 warps; a block has TILES tiles of 16 weight rows and divides K among the warps of a tile. expand: a thread
// for 16 weights, 256 a block.
// Bytes: the weights once for R rows of x; x comes from the second cache, once for a block.
// Limit: measured on an H100 with Q4_K and 1 row 0.7 (N 3584) to 1.7 TB/s (N 37888) of the 3.0 that a copy moves; beyond 8 rows what expands
// weights and reads x from the first cache.
// Numerics: weights are expanded in f32 and rounded to bf16 (but see accumulate_q4_k), products summed in f32 in tensor cores, parts of K
// in order: a row's bits do not depend on the other rows while R and TILES are the same.
//
// An mma takes 16 values of k from four lanes. Which ones does not matter if both operands agree: lane t of four takes the
// 16 neighbours 64·s + 16·t of a strip s, four for each of four mmas, so that its weights share a scale.
#pragma once
#include "../../cuda/matrix.cuh"

enum Format { Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K };

// 16-weight parts of a block.
__device__ constexpr int parts(Format f) { return f <= Q8_0 ? 2 : 16; }
__device__ constexpr int body_bytes(Format f) {
    return f == Q8_0 ? 32 : f == Q5_0 || f == Q5_1 ? 20 : f <= Q4_1 ? 16 : f == Q2_K ? 80 : f == Q3_K ? 108
         : f == Q4_K ? 144 : f == Q5_K ? 176 : 208;
}
__device__ constexpr int head_bytes(Format f) {
    return f == Q4_K || f == Q5_K ? 0 : f == Q4_1 || f == Q5_1 || f == Q2_K ? 4 : 2;
}
// What is taken from q where values are unsigned.
__device__ constexpr int zero(Format f) { return f == Q4_0 ? 8 : f == Q5_0 ? 16 : f == Q3_K ? 4 : f == Q6_K ? 32 : 0; }

// The bytes of 16 weights.
struct Raw {
    uint4 low;
    uint4 high;
    uint4 scales;
    uint32_t head;
};

template <bool ALIGNED>
__device__ inline uint4 load16(const uint8_t* at) {
    if (ALIGNED) return *(const uint4*)at;
    const uint32_t* words = (const uint32_t*)at;
    return make_uint4(words[0], words[1], words[2], words[3]);
}

template <Format F>
__device__ inline Raw load_part(const uint8_t* bodies, const uint8_t* heads, size_t block, int part) {
    const uint8_t* body = bodies + block * body_bytes(F);
    constexpr bool aligned = body_bytes(F) % 16 == 0;
    Raw raw = {};
    if (head_bytes(F) == 2) raw.head = ((const uint16_t*)heads)[block];
    if (head_bytes(F) == 4) raw.head = ((const uint32_t*)heads)[block];
    const int offset = 16 * (part % 2), half = part / 8, quarter = part % 8 / 2;
    switch (F) {
        case Q4_0:
        case Q4_1: raw.low = load16<aligned>(body); break;
        case Q5_0:
        case Q5_1:
            raw.high.x = *(const uint32_t*)body;
            raw.low = load16<aligned>(body + 4);
            break;
        case Q8_0: raw.low = load16<aligned>(body + 16 * part); break;
        case Q4_K:
        case Q5_K:
            raw.scales = load16<aligned>(body);
            if (F == Q5_K) raw.high = load16<aligned>(body + 16 + offset);
            raw.low = load16<aligned>(body + (F == Q5_K ? 48 : 16) + 32 * (part / 4) + offset);
            break;
        case Q6_K:
            raw.low = load16<aligned>(body + 64 * half + 32 * (quarter % 2) + offset);
            raw.high = load16<aligned>(body + 128 + 32 * half + offset);
            raw.scales.x = (uint32_t)(int32_t)(int8_t)body[192 + part];
            break;
        case Q2_K:
            raw.low = load16<aligned>(body + 16 + 32 * half + offset);
            raw.scales.x = body[part];
            break;
        case Q3_K:
            raw.low = load16<aligned>(body + 32 + 32 * half + offset);
            raw.high = load16<aligned>(body + offset);
            raw.scales.x = (uint32_t)((body[96 + part % 8] >> (4 * (part / 8)) & 15) |
                                      (body[104 + part % 4] >> (2 * (part / 4)) & 3) << 4);
            break;
    }
    return raw;
}

__device__ inline float low_half(uint32_t bits) {
    f16 half;
    *(uint16_t*)&half = (uint16_t)bits;
    return to_float(half);
}

// Byte `i` of 32 bits.
__device__ inline uint32_t byte_of(uint32_t word, int i) { return word >> (8 * i) & 255; }

// The 16 weights as pairs of bf16.
template <Format F>
__device__ inline void expand_part(const Raw& raw, int part, uint32_t (&out)[8]) {
    const uint32_t exponent = in_register(F == Q8_0 ? 0x47 : 0x43);
    const int quarter = part % 8 / 2;
    float d, m = 0;
    if (F == Q4_K || F == Q5_K) {
        const int sub = part / 2;
        const uint32_t scales[3] = {raw.scales.y, raw.scales.z, raw.scales.w};
        uint32_t scale, least;
        if (sub < 4) {
            scale = byte_of(scales[0], sub) & 63;
            least = byte_of(scales[1], sub) & 63;
        } else {
            const uint32_t both = byte_of(scales[2], sub - 4);
            scale = (both & 15) | byte_of(scales[0], sub - 4) >> 6 << 4;
            least = both >> 4 | byte_of(scales[1], sub - 4) >> 6 << 4;
        }
        d = low_half(raw.scales.x) * (float)scale;
        m = -(low_half(raw.scales.x >> 16) * (float)least);
    } else {
        d = low_half(raw.head);
        if (F == Q4_1 || F == Q5_1) m = low_half(raw.head >> 16);
        if (F == Q6_K) d *= (float)(int32_t)raw.scales.x;
        if (F == Q3_K) d *= (float)((int32_t)raw.scales.x - 32);
        if (F == Q2_K) {
            m = -(low_half(raw.head >> 16) * (float)(raw.scales.x >> 4));
            d *= (float)(raw.scales.x & 15);
        }
    }
    const uint32_t low[4] = {raw.low.x, raw.low.y, raw.low.z, raw.low.w};
    const uint32_t high[4] = {raw.high.x, raw.high.y, raw.high.z, raw.high.w};
    // A weight is (128 + q)·d + c, since bytes become 128 + q: c takes 128 and the zero away again.
    const float c = fmaf(-(128.0f + zero(F)), d, m);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t q;
        if (F == Q4_0 || F == Q4_1) q = low[i] >> (4 * part) & 0x0f0f0f0f;
        if (F == Q5_0 || F == Q5_1) {
            const uint32_t bits = high[0] >> (16 * part + 4 * i) & 15;
            q = (low[i] >> (4 * part) & 0x0f0f0f0f) | (bits * 0x00204081 & 0x01010101) << 4;
        }
        if (F == Q8_0) q = low[i] ^ 0x80808080;
        if (F == Q4_K || F == Q5_K) q = low[i] >> (4 * (part / 2 % 2)) & 0x0f0f0f0f;
        if (F == Q5_K) q |= (high[i] >> (part / 2) & 0x01010101) << 4;
        if (F == Q6_K) q = (low[i] >> (quarter < 2 ? 0 : 4) & 0x0f0f0f0f) | (high[i] >> (2 * quarter) & 0x03030303) << 4;
        if (F == Q2_K || F == Q3_K) q = low[i] >> (2 * quarter) & 0x03030303;
        if (F == Q3_K) q |= (high[i] >> (part / 2) & 0x01010101) << 2;
        float w[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (F == Q8_0) {
                // 32768 + q with all eight bits of q.
                w[j] = d * (__uint_as_float(__byte_perm(q, exponent, 0x4505 | j << 4)) - 32896.0f);
            } else {
                // Bytes 1 and 2 of these two formats are swapped (accumulate_q4_k).
                const int byte = F == Q4_K || F == Q6_K ? (j == 1 ? 2 : j == 2 ? 1 : j) : j;
                w[j] = fmaf(__uint_as_float(__byte_perm(q, exponent, 0x4055 | byte << 8)), d, c);
            }
        }
        out[2 * i] = pack<bf16>(w[0], w[1]);
        out[2 * i + 1] = pack<bf16>(w[2], w[3]);
    }
}

// Strips of 64 values of k whose weights a warp requests at once.
const int AT_ONCE = 4;

// Which part of its block a lane takes of strip `s` of those that are requested at once: they begin with a block.
template <Format F>
__device__ inline int in_block(int s, int t) {
    return parts(F) == 16 ? 4 * s + t : t % 2;
}

__device__ inline float silu(float x) { return x / (1.0f + expf(-x)); }

// Both weight rows of a lane, as numbers of their first blocks.
struct Rows {
    size_t at[2];
};

// Adds the products of a warp's part of k: units of AT_ONCE strips, every `step`-th from `first`.
template <Format F, int COLUMNS>
__device__ inline void accumulate(float (&c)[COLUMNS][4], const uint8_t* bodies, const uint8_t* heads, Rows weights,
                                  const bf16* x, int rows, int k, int first, int step) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, strips = k / 64;
    for (int from = first * AT_ONCE; from < strips; from += step * AT_ONCE) {
        Raw raw[AT_ONCE][2];
#pragma unroll
        for (int s = 0; s < AT_ONCE; s++) {
            const int part = 4 * (from + s) + t;
            if (from + s < strips)
                for (int r = 0; r < 2; r++)
                    raw[s][r] = load_part<F>(bodies, heads, weights.at[r] + part / parts(F), in_block<F>(s, t));
        }
#pragma unroll
        for (int s = 0; s < AT_ONCE; s++) {
            if (from + s >= strips) break;
            const int part = 4 * (from + s) + t;
            uint32_t w[2][8];
            for (int r = 0; r < 2; r++) expand_part<F>(raw[s][r], in_block<F>(s, t), w[r]);
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                uint4 low = make_uint4(0, 0, 0, 0), high = low;
                if (8 * j + g < rows) {
                    const uint4* from_x = (const uint4*)(x + (size_t)(8 * j + g) * k + 16 * part);
                    low = from_x[0];
                    high = from_x[1];
                }
                const uint32_t xs[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const uint32_t a[4] = {w[0][2 * i], w[1][2 * i], w[0][2 * i + 1], w[1][2 * i + 1]};
                    multiply<bf16>(c[j], a, xs[2 * i], xs[2 * i + 1]);
                }
            }
        }
    }
}

// Q4_K and Q6_K by at most 8 rows. Integer arithmetic would be the limit, so weights stay whole numbers in the product: bf16(128 + q)
// is one instruction for two weights. A step has 32 values of k, each mma those of one scale or half of them, and the sums become
// scale·Σ (128 + q)·x - offset·Σ x, with Σ x from a product with ones. What a warp needs next is requested before it computes.
// Bytes 1 and 2 of each word of quants are swapped, so that a mask finds neighbours.
const uint32_t ONES = 0x3f803f80, ABOVE = 0x43004300, LOW_BITS = 0x000f000f, HIGH_BITS = 0x00300030;

// 128 + byte `i` of a word, for bytes below 128; `exponent` is 0x43, in a register.
__device__ inline float above_128(uint32_t bytes, uint32_t exponent, int i) {
    return __uint_as_float(__byte_perm(bytes, exponent, 0x4055 | i << 8));
}

// Adds scale·(sums - above·of_x) - minimum·of_x for one of the rows.
__device__ inline void add_scaled(float* c, const float* sums, const float* of_x, float scale, float above, float minimum) {
    const float offset = fmaf(above, scale, minimum);
    for (int e = 0; e < 2; e++) c[e] = fmaf(-offset, of_x[e], fmaf(scale, sums[e], c[e]));
}

struct FourBits {
    uint4 head[2];
    // Lane t of four has the neighbours 8·t of every 32 weights.
    uint2 q[2][4];
};

__device__ inline void request(FourBits& to, const uint8_t* bodies, Rows weights, int block, int t) {
    for (int r = 0; r < 2; r++) {
        const uint8_t* body = bodies + (weights.at[r] + block) * body_bytes(Q4_K);
        to.head[r] = *(const uint4*)body;
#pragma unroll
        for (int i = 0; i < 4; i++) to.q[r][i] = *(const uint2*)(body + 16 + 32 * i + 8 * t);
    }
}

__device__ inline void accumulate_q4_k(float (&c)[1][4], const uint8_t* bodies, Rows weights, const bf16* x, int rows,
                                       int k, int first, int step) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, blocks = k / 256;
    if (first >= blocks) return;
    const uint32_t ones[4] = {ONES, ONES, ONES, ONES};
    const uint32_t above = in_register(ABOVE), low_bits = in_register(LOW_BITS), exponent = in_register(0x43);
    FourBits next;
    request(next, bodies, weights, first, t);
    for (int block = first; block < blocks; block += step) {
        const FourBits now = next;
        if (block + step < blocks) request(next, bodies, weights, block + step, t);
        uint32_t scales[2][2], minima[2][2];
        float d[2], least[2];
        for (int r = 0; r < 2; r++) {
            const uint4 head = now.head[r];
            d[r] = low_half(head.x);
            least[r] = low_half(head.x >> 16);
            scales[r][0] = head.y & 0x3f3f3f3f;
            minima[r][0] = head.z & 0x3f3f3f3f;
            scales[r][1] = (head.w & 0x0f0f0f0f) | (head.y >> 2 & 0x30303030);
            minima[r][1] = (head.w >> 4 & 0x0f0f0f0f) | (head.z >> 2 & 0x30303030);
        }
#pragma unroll
        for (int sub = 0; sub < 8; sub++) {
            uint4 xs = make_uint4(0, 0, 0, 0);
            if (g < rows) xs = *(const uint4*)(x + (size_t)g * k + 256 * block + 32 * sub + 8 * t);
            uint32_t a[2][4];
            for (int r = 0; r < 2; r++) {
                const uint2 q = now.q[r][sub / 2];
                const uint32_t words[2] = {q.x >> (sub % 2 * 4), q.y >> (sub % 2 * 4)};
                for (int i = 0; i < 2; i++) {
                    a[i][r] = masked(words[i], low_bits, above);
                    a[i][r + 2] = masked(words[i] >> 8, low_bits, above);
                }
            }
            float sums[4], of_x[4];
            multiply_bf16(sums, a[0], xs.x, xs.y);
            multiply_bf16(of_x, ones, xs.x, xs.y);
            multiply<bf16>(sums, a[1], xs.z, xs.w);
            multiply<bf16>(of_x, ones, xs.z, xs.w);
            for (int r = 0; r < 2; r++) {
                const float scale = fmaf(above_128(scales[r][sub / 4], exponent, sub % 4), d[r], -128.0f * d[r]);
                const float minimum = fmaf(above_128(minima[r][sub / 4], exponent, sub % 4), least[r], -128.0f * least[r]);
                add_scaled(&c[0][2 * r], &sums[2 * r], of_x, scale, 128.0f, minimum);
            }
        }
    }
}

struct SixBits {
    // Of the first and of the second 16 of every 32 weights, lane t of four has the neighbours 4·t.
    uint32_t low[2][2][2][2];
    uint32_t high[2][2][2];
    uint4 scales[2];
    uint32_t d[2];
};

__device__ inline void request(SixBits& to, const uint8_t* bodies, const uint8_t* heads, Rows weights, int block, int t) {
    for (int r = 0; r < 2; r++) {
        const uint8_t* body = bodies + (weights.at[r] + block) * body_bytes(Q6_K);
#pragma unroll
        for (int half = 0; half < 2; half++)
            for (int part = 0; part < 2; part++) {
                for (int i = 0; i < 2; i++)
                    to.low[r][half][i][part] = *(const uint32_t*)(body + 64 * half + 32 * i + 16 * part + 4 * t);
                to.high[r][half][part] = *(const uint32_t*)(body + 128 + 32 * half + 16 * part + 4 * t);
            }
        to.scales[r] = *(const uint4*)(body + 192);
        to.d[r] = ((const uint16_t*)heads)[weights.at[r] + block];
    }
}

__device__ inline void accumulate_q6_k(float (&c)[1][4], const uint8_t* bodies, const uint8_t* heads, Rows weights,
                                       const bf16* x, int rows, int k, int first, int step) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, blocks = k / 256;
    if (first >= blocks) return;
    const uint32_t ones[4] = {ONES, ONES, ONES, ONES};
    const uint32_t above = in_register(ABOVE), low_bits = in_register(LOW_BITS), high_bits = in_register(HIGH_BITS);
    const uint32_t exponent = in_register(0x47);
    SixBits next;
    request(next, bodies, heads, weights, first, t);
    for (int block = first; block < blocks; block += step) {
        const SixBits now = next;
        if (block + step < blocks) request(next, bodies, heads, weights, block + step, t);
        const float d[2] = {low_half(now.d[0]), low_half(now.d[1])};
#pragma unroll
        for (int group = 0; group < 16; group++) {
            const int half = group / 8, quarter = group % 8 / 2, part = group % 2;
            uint2 xs = make_uint2(0, 0);
            if (g < rows) xs = *(const uint2*)(x + (size_t)g * k + 256 * block + 16 * group + 4 * t);
            uint32_t a[4];
            for (int r = 0; r < 2; r++) {
                const uint32_t low = now.low[r][half][quarter % 2][part] >> (quarter < 2 ? 0 : 4);
                const uint32_t high = quarter < 2 ? now.high[r][half][part] << (4 - 2 * quarter)
                                                  : now.high[r][half][part] >> (2 * quarter - 4);
                a[r] = masked(high, high_bits, masked(low, low_bits, above));
                a[r + 2] = masked(high >> 8, high_bits, masked(low >> 8, low_bits, above));
            }
            float sums[4], of_x[4];
            multiply_bf16(sums, a, xs.x, xs.y);
            multiply_bf16(of_x, ones, xs.x, xs.y);
            for (int r = 0; r < 2; r++) {
                const uint4 all = now.scales[r];
                const uint32_t scales = group < 4 ? all.x : group < 8 ? all.y : group < 12 ? all.z : all.w;
                // 32768 + the byte with its sign flipped: quicker than a conversion.
                const float byte = __uint_as_float(__byte_perm(scales ^ 0x80808080, exponent, 0x4505 | group % 4 << 4));
                const float scale = d[r] * (byte - 32896.0f);
                add_scaled(&c[0][2 * r], &sums[2 * r], of_x, scale, 160.0f, 0.0f);
            }
        }
    }
}

// COLUMNS: groups of 8 rows of x. `extent` are the weight rows; with `gated` half of them are gates.
template <Format F, int COLUMNS, int TILES>
__device__ void product(const uint8_t* bodies, const uint8_t* heads, const bf16* x, int rows, const float* bias,
                        const float* residual, void* out, int extent, int k, int out_width, int gated) {
    __shared__ float sums[8 / TILES][TILES][8 * COLUMNS][17];
    const int divided = blockDim.x / 32 / TILES;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int tile = warp % TILES, division = warp / TILES;
    const int first = (blockIdx.x * TILES + tile) * (gated ? 8 : 16), last = (gated ? extent / 2 : extent) - 1;
    // Rows beyond the last are computed and not written.
    const size_t blocks = k / 16 / parts(F);
    const Rows weights = {{min(first + g, last) * blocks,
                           (gated ? extent / 2 + min(first + g, last) : min(first + g + 8, last)) * blocks}};
    float c[COLUMNS][4] = {};
    if constexpr (F == Q4_K && COLUMNS == 1)
        accumulate_q4_k(c, bodies, weights, x, rows, k, division, divided);
    else if constexpr (F == Q6_K && COLUMNS == 1)
        accumulate_q6_k(c, bodies, heads, weights, x, rows, k, division, divided);
    else
        accumulate<F, COLUMNS>(c, bodies, heads, weights, x, rows, k, division, divided);
    for (int j = 0; j < COLUMNS; j++)
        for (int e = 0; e < 4; e++) sums[division][tile][8 * j + 2 * t + e % 2][g + 8 * (e / 2)] = c[j][e];
    __syncthreads();
    const int of_tile = gated ? 8 : 16, width = TILES * of_tile;
    for (int i = threadIdx.x; i < width * rows; i += blockDim.x) {
        const int m = i / width, column = i % width, n = blockIdx.x * width + column;
        if (n > last) continue;
        float sum = 0, up = 0;
        for (int d = 0; d < divided; d++) {
            const float* row = sums[d][column / of_tile][m];
            sum += row[column % of_tile];
            if (gated) up += row[column % of_tile + 8];
        }
        const size_t to = (size_t)m * out_width + n;
        if (gated) {
            if (bias) sum += bias[n], up += bias[extent / 2 + n];
            set(((bf16*)out)[to], silu(sum) * up);
        } else {
            if (bias) sum += bias[n];
            if (residual) sum += residual[to];
            ((float*)out)[to] = sum;
        }
    }
}

#define PRODUCT(FORMAT, NAME, R, TILES)                                                                                     \
    extern "C" __global__ void __launch_bounds__(256)                                                                       \
        product_##NAME##_##R##_##TILES(const uint8_t* bodies, const uint8_t* heads, const bf16* x, int rows,                \
                                       const float* bias, const float* residual, void* out, int extent, int k,              \
                                       int out_width, int gated) {                                                          \
        product<FORMAT, R / 8, TILES>(bodies, heads, x, rows, bias, residual, out, extent, k, out_width, gated);            \
    }
#define KERNELS_OF(FORMAT, NAME)                                                                                            \
    PRODUCT(FORMAT, NAME, 8, 1)                                                                                             \
    PRODUCT(FORMAT, NAME, 16, 1)                                                                                            \
    PRODUCT(FORMAT, NAME, 16, 4)                                                                                            \
    PRODUCT(FORMAT, NAME, 32, 1)                                                                                            \
    PRODUCT(FORMAT, NAME, 32, 4)                                                                                            \
    PRODUCT(FORMAT, NAME, 64, 1)                                                                                            \
    PRODUCT(FORMAT, NAME, 64, 4)                                                                                            \
    extern "C" __global__ void expand_##NAME(const uint8_t* bodies, const uint8_t* heads, int first, int count, int k,      \
                                             bf16* out) {                                                                   \
        const int i = blockIdx.x * blockDim.x + threadIdx.x;                                                                \
        if (i >= count) return;                                                                                             \
        const size_t part = (size_t)first * (k / 16) + i;                                                                   \
        const size_t block = part / parts(FORMAT);                                                                          \
        const int of_block = part % parts(FORMAT);                                                                          \
        uint32_t w[8];                                                                                                      \
        expand_part<FORMAT>(load_part<FORMAT>(bodies, heads, block, of_block), of_block, w);                                \
        uint4* to = (uint4*)(out + (size_t)i * 16);                                                                         \
        to[0] = make_uint4(w[0], w[1], w[2], w[3]);                                                                         \
        to[1] = make_uint4(w[4], w[5], w[6], w[7]);                                                                         \
    }
