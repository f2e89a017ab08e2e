// The most likely tokens of rows of logits, under masks, so that only ids and a few values leave the device.
//
// Contract: sample/mod.rs. `logits: [R, V] f32`, `masks: [.][⌈V / 32⌉]` bits of allowed tokens, `rows: [R]` (mask or
// NO_MASK, tokens wanted 1..=64); gives `ids: [R, 64]`, `values: [R, 64]`, `found: [R]`: how many there are, or NOT_NUMBERS.
// Launch: one block of 1024 a row.
// Bytes: V·4 a pass; the first pass comes from memory, the others from the second cache. One pass for one token; else four more
// to find the smallest value that is kept, one to collect what is larger, and one for each of the equal ones that are kept: 7.
// Limit: what one processor has under way, 32 KB; for 152,064 logits 15 µs for the first pass and 6 for another, by the
// latencies of memory and second cache: estimates, not measured.
// Numerics: exact; equal logits in the order of their ids.
#include "../cuda/common.cuh"

const uint32_t NO_MASK = 0xffffffff, NOT_NUMBERS = 0xffffffff, MAX_TOP_K = 64;
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

extern "C" __global__ void __launch_bounds__(1024) top_k(const float* logits, const uint32_t* masks,
                                                             const uint2* rows, uint32_t vocabulary, uint32_t* ids,
                                                             float* values, uint32_t* found) {
    __shared__ unsigned long long kept[MAX_TOP_K];
    __shared__ uint32_t count, broken;
    const uint32_t words = (vocabulary + 31) / 32, index = blockIdx.x;
    const uint2 request = rows[index];
    const Row row = {logits + (size_t)index * vocabulary, request.x == NO_MASK ? nullptr : masks + (size_t)request.x * words};
    if (threadIdx.x == 0) count = 0, broken = 0;
    __syncthreads();
    unsigned long long best = 0;
    uint32_t allowed = 0;
    row.each(vocabulary, [&](uint32_t id, float logit, bool is_allowed) {
        if (isnan(logit)) broken = 1;
        if (!is_allowed) return;
        allowed++;
        const unsigned long long here = candidate(ordered(logit), id);
        best = here > best ? here : best;
    });
    if (allowed > 0) atomicAdd(&count, allowed);
    best = block_best(best);
    const uint32_t total = min(min(request.y, count), MAX_TOP_K);
    __syncthreads();
    if (broken || total == 0) {
        if (threadIdx.x == 0) found[index] = broken ? NOT_NUMBERS : 0;
        return;
    }
    if (total == 1) {
        if (threadIdx.x == 0) kept[0] = best;
    } else {
        uint32_t least, equal;
        threshold(row, vocabulary, total, &least, &equal);
        if (threadIdx.x == 0) count = 0;
        __syncthreads();
        row.each(vocabulary, [&](uint32_t id, float logit, bool allowed) {
            const uint32_t key = ordered(logit);
            if (key > least && allowed) kept[atomicAdd(&count, 1)] = candidate(key, id);
        });
        __syncthreads();
        // Of those that are just large enough, the lowest ids.
        uint32_t next = 0;
        for (uint32_t i = 0; i < equal; i++) {
            unsigned long long lowest = 0;
            row.each(vocabulary, [&](uint32_t id, float logit, bool allowed) {
                if (lowest == 0 && id >= next && ordered(logit) == least && allowed) lowest = candidate(least, id);
            });
            lowest = block_best(lowest);
            next = 0xffffffff - (uint32_t)lowest + 1;
            if (threadIdx.x == 0) kept[total - equal + i] = lowest;
        }
    }
    __syncthreads();
    if (threadIdx.x < total) {
        const unsigned long long mine = kept[threadIdx.x];
        uint32_t rank = 0;
        for (uint32_t i = 0; i < total; i++) rank += kept[i] > mine;
        const uint32_t id = 0xffffffff - (uint32_t)mine;
        ids[(size_t)index * MAX_TOP_K + rank] = id;
        values[(size_t)index * MAX_TOP_K + rank] = row.logits[id];
    }
    if (threadIdx.x == 0) found[index] = total;
}
