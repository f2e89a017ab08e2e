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
#include "row.cuh"

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
