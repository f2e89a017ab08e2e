// A row of logits under a mask, visited by a block of threads, and its largest values.
#pragma once
#include "../cuda/common.cuh"

const uint32_t NO_MASK = 0xffffffff, NOT_NUMBERS = 0xffffffff;
// Logits that a thread asks for before it looks at the first of them.
const int AT_ONCE = 8;

// Order of bits as order of floats: -inf is the least.
__device__ inline uint32_t ordered(float x) {
    const uint32_t bits = __float_as_uint(x + 0.0f);  // -0 is 0
    return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

struct Row {
    const float* logits;
    const uint32_t* mask;

    __device__ bool allows(uint32_t id) const { return !mask || (mask[id / 32] >> (id % 32) & 1); }

    // Calls `visit(id, logit, allowed)` for the thread's tokens, in ascending order.
    template <class Visit>
    __device__ void each(uint32_t vocabulary, Visit visit) const {
        for (uint32_t first = threadIdx.x; first < vocabulary; first += AT_ONCE * blockDim.x) {
            float logit[AT_ONCE];
            uint32_t word[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const uint32_t id = min(first + i * blockDim.x, vocabulary - 1);
                logit[i] = logits[id];
                word[i] = mask ? mask[id / 32] : 0xffffffff;
            }
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const uint32_t id = first + i * blockDim.x;
                if (id < vocabulary) visit(id, logit[i], (word[i] >> (id % 32) & 1) && logit[i] > -INFINITY);
            }
        }
    }
};

// The best of all threads' candidates; larger keys win, then lower ids. Every thread gets it.
__device__ inline unsigned long long block_best(unsigned long long best) {
    __shared__ unsigned long long of_warp[32];
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        const unsigned long long other = __shfl_xor_sync(0xffffffff, best, lanes);
        best = other > best ? other : best;
    }
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = best;
    __syncthreads();
    for (uint32_t i = 0; i < blockDim.x / 32; i++) best = of_warp[i] > best ? of_warp[i] : best;
    __syncthreads();
    return best;
}

__device__ inline unsigned long long candidate(uint32_t key, uint32_t id) {
    return (unsigned long long)key << 32 | (0xffffffff - id);
}

// The smallest key of the `wanted` largest, and how many of those that have it belong to them.
__device__ inline void threshold(const Row& row, uint32_t vocabulary, uint32_t wanted, uint32_t* least, uint32_t* equal) {
    __shared__ uint32_t counts[256], chosen[2];
    uint32_t prefix = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        for (uint32_t i = threadIdx.x; i < 256; i += blockDim.x) counts[i] = 0;
        __syncthreads();
        row.each(vocabulary, [&](uint32_t, float logit, bool allowed) {
            const uint32_t key = ordered(logit);
            const bool same = shift == 24 || key >> (shift + 8) == prefix >> (shift + 8);
            if (same && allowed) atomicAdd(&counts[key >> shift & 255], 1);
        });
        __syncthreads();
        if (threadIdx.x == 0) {
            uint32_t digit = 255, left = wanted;
            for (; digit > 0 && counts[digit] < left; digit--) left -= counts[digit];
            chosen[0] = prefix | digit << shift;
            chosen[1] = left;
        }
        __syncthreads();
        prefix = chosen[0];
        wanted = chosen[1];
        __syncthreads();
    }
    *least = prefix;
    *equal = wanted;
}

