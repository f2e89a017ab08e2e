// Draws a token from each of some rows of logits, with all sampling options, so that only ids leave the device.
//
// Contract: sample/mod.rs. `logits: [R, V] f32`, changed by adjustments; `masks: [.][⌈V / 32⌉]`; `requests: [N]`; `adjustments`;
// `out: [N]`: a token, NOTHING or NOT_NUMBERS. V is at most 1024 · GROUP.
// Launch: one block of 1024 a request.
// Bytes: V·4 for the largest logit, and again for the sum of weights, without groups that have none; each attempt for `top_p`
// reads the groups that have a token heavier than the last.
// Limit: what one multiprocessor has under way.
// Numerics: as on the CPU but for the order of sums: weights in f32 within GROUP tokens, f64 over groups.
#include "row.cuh"

const uint32_t NOTHING = 0xfffffffe;
// Tokens whose weights are summed by a warp.
const int GROUP = 512;
const int MAX_GROUPS = 1024;
const float LEAST_WEIGHT = 1e-14f;

struct Request {
    uint32_t row, mask, top_k, first_adjustment, adjustments;
    float temperature, top_p, min_p, frequency, presence, repetition;
    uint32_t seed[2], position[2], unused;
};

struct Adjustment {
    uint32_t token, count, seen;
    float bias;
};

// Random numbers of sample/random.rs.
typedef unsigned long long u64;
__device__ inline u64 mix(u64 x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}
__device__ inline double uniform(u64 seed, u64 position, u64 attempt) {
    const u64 gamma = 0x9e3779b97f4a7c15ull;
    u64 state = mix(seed + gamma);
    state = mix(state + (position + 1) * gamma);
    state = mix(state + (attempt + 1) * gamma);
    return (double)(state >> 11) / 9007199254740992.0;
}

__device__ inline float adjusted(const Request& request, Adjustment by, float logit) {
    float x = logit + by.bias;
    if (by.seen) x = x > 0 ? x / request.repetition : x * request.repetition;
    return by.count == 0 ? x : x - fmaf(request.frequency, (float)by.count, request.presence);
}

// The float of an order of bits.
__device__ inline float of_order(uint32_t key) { return __uint_as_float(key & 0x80000000 ? key & 0x7fffffff : ~key); }

// Tokens of a larger logit are kept, and of this one those below `end`.
struct Cut {
    float logit;
    uint32_t end;
};

struct Weighing {
    Row row;
    uint32_t vocabulary;
    float best, scale, least;

    __device__ float of(uint32_t id, Cut cut) const {
        if (id >= vocabulary) return 0;
        const float logit = row.logits[id];
        if (!row.allows(id) || !(logit > cut.logit || (logit == cut.logit && id < cut.end))) return 0;
        const float weight = expf((logit - best) * scale);
        return weight < least ? 0 : weight;
    }
};

struct Point {
    int index;
    // Where in its weight, from 0 to 1.
    double share;
};

// The sum of all threads' weights, which stay in `sums` as running sums.
__device__ inline double running_sums(double* sums, double weight) {
    sums[threadIdx.x] = weight;
    __syncthreads();
    for (uint32_t reach = 1; reach < blockDim.x; reach *= 2) {
        const double before = threadIdx.x >= reach ? sums[threadIdx.x - reach] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }
    return sums[blockDim.x - 1];
}

// The first thread whose running sum passes a point, the last one with weight if rounding keeps it below.
__device__ inline Point find(const double* sums, double weight, double at) {
    __shared__ double share;
    const bool passes = weight > 0 && at < sums[threadIdx.x];
    u64 mine = weight > 0 ? candidate(1, 0xffffffff - threadIdx.x) : 0;
    if (passes) mine = candidate(2, threadIdx.x);
    const u64 found = block_best(mine);
    const int index = found >> 32 == 2 ? 0xffffffff - (uint32_t)found : (uint32_t)found;
    if ((int)threadIdx.x == index) {
        const double before = threadIdx.x > 0 ? sums[threadIdx.x - 1] : 0;
        share = weight > 0 ? min(max((at - before) / weight, 0.0), 1.0) : 0;
    }
    __syncthreads();
    const Point point = {index, share};
    __syncthreads();
    return point;
}

// The largest logit of every group, the best token of all (0 if none is allowed), and whether a logit is NaN.
__device__ inline u64 largest(const Weighing& weighing, float* maxima, uint32_t* broken) {
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    const int groups = (weighing.vocabulary + GROUP - 1) / GROUP;
    u64 best = 0;
    for (int group = threadIdx.x / 32; group < groups; group += warps) {
        float most = -INFINITY;
#pragma unroll 8
        for (int i = 0; i < GROUP / 32; i++) {
            const uint32_t id = group * GROUP + 32 * i + lane;
            if (id >= weighing.vocabulary) continue;
            const float logit = weighing.row.logits[id];
            if (isnan(logit)) *broken = 1;
            if (!weighing.row.allows(id) || !(logit > -INFINITY)) continue;
            most = max(most, logit);
            const u64 here = candidate(ordered(logit), id);
            best = here > best ? here : best;
        }
        for (int lanes = 16; lanes > 0; lanes /= 2) most = max(most, __shfl_xor_sync(0xffffffff, most, lanes));
        if (lane == 0) maxima[group] = most;
    }
    return block_best(best);
}

// Running sums of the groups' weights; `mine` becomes this thread's group's.
__device__ inline double weigh(const Weighing& weighing, const float* maxima, Cut cut, double* sums, double* mine) {
    __shared__ double of_group[MAX_GROUPS];
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    const int groups = (weighing.vocabulary + GROUP - 1) / GROUP;
    of_group[threadIdx.x] = 0;
    __syncthreads();
    for (int group = threadIdx.x / 32; group < groups; group += warps) {
        const float most = maxima[group];
        if (most < cut.logit || expf((most - weighing.best) * weighing.scale) < weighing.least) continue;
        float sum = 0;
#pragma unroll 8
        for (int i = 0; i < GROUP / 32; i++) sum += weighing.of(group * GROUP + 32 * i + lane, cut);
        sum = warp_sum(sum);
        if (lane == 0) of_group[group] = sum;
    }
    __syncthreads();
    *mine = of_group[threadIdx.x];
    return running_sums(sums, *mine);
}

// The cut that keeps the k heaviest of `allowed` tokens.
__device__ inline Cut heaviest(const Row& row, uint32_t vocabulary, uint32_t k) {
    uint32_t least, equal, end = 0;
    threshold(row, vocabulary, k, &least, &equal);
    for (uint32_t i = 0; i < equal; i++) {
        u64 lowest = 0;
        row.each(vocabulary, [&](uint32_t id, float logit, bool allowed) {
            if (lowest == 0 && id >= end && ordered(logit) == least && allowed) lowest = candidate(least, id);
        });
        end = 0xffffffff - (uint32_t)block_best(lowest) + 1;
    }
    return {of_order(least), end};
}

extern "C" __global__ void __launch_bounds__(1024) draw(float* logits, const uint32_t* masks, const Request* requests,
                                                        const Adjustment* adjustments, uint32_t vocabulary,
                                                        uint32_t* out) {
    __shared__ float maxima[MAX_GROUPS];
    __shared__ double sums[MAX_GROUPS];
    __shared__ uint32_t broken, allowed_tokens;
    const Request request = requests[blockIdx.x];
    float* own = logits + (size_t)request.row * vocabulary;
    for (uint32_t i = threadIdx.x; i < request.adjustments; i += blockDim.x) {
        const Adjustment by = adjustments[request.first_adjustment + i];
        own[by.token] = adjusted(request, by, own[by.token]);
    }
    if (threadIdx.x == 0) broken = 0, allowed_tokens = 0;
    __syncthreads();
    const size_t words = (vocabulary + 31) / 32;
    Weighing weighing = {{own, request.mask == NO_MASK ? nullptr : masks + request.mask * words}, vocabulary, 0, 0, 0};
    const u64 best = largest(weighing, maxima, &broken);
    weighing.best = of_order((uint32_t)(best >> 32));
    if (broken || best == 0 || weighing.best == INFINITY) {
        if (threadIdx.x == 0) out[blockIdx.x] = broken || best != 0 ? NOT_NUMBERS : NOTHING;
        return;
    }
    if (!(request.temperature > 0)) {
        if (threadIdx.x == 0) out[blockIdx.x] = 0xffffffff - (uint32_t)best;
        return;
    }
    // At a temperature near 0 the scale stays finite, else the best token would get NaN.
    weighing.scale = min(1.0f / request.temperature, 3.4028235e38f);
    weighing.least = min(max(request.min_p, LEAST_WEIGHT), 1.0f);
    Cut cut = {-INFINITY, 0xffffffff};
    if (request.top_k > 0 && request.top_k < vocabulary) {
        uint32_t allowed = 0;
        weighing.row.each(vocabulary, [&](uint32_t, float, bool is_allowed) { allowed += is_allowed; });
        if (allowed > 0) atomicAdd(&allowed_tokens, allowed);
        __syncthreads();
        if (request.top_k < allowed_tokens) cut = heaviest(weighing.row, vocabulary, request.top_k);
    }
    const u64 seed = (u64)request.seed[1] << 32 | request.seed[0];
    const u64 position = (u64)request.position[1] << 32 | request.position[0];
    double mine;
    double total = weigh(weighing, maxima, cut, sums, &mine);
    // By rejection: the tokens before a rejected one reach the share `top_p`, so they are drawn from next. The first token is
    // accepted even if the share is 0.
    const double wanted = max((double)request.top_p * total, 2.2250738585072014e-308);
    uint32_t id = 0;
    for (u64 attempt = 0;; attempt++) {
        const Point group = find(sums, mine, uniform(seed, position, attempt) * total);
        const uint32_t token = group.index * GROUP + threadIdx.x;
        const double weight = threadIdx.x < GROUP ? weighing.of(token, cut) : 0;
        __syncthreads();
        const double of_group = running_sums(sums, weight);
        const Point point = find(sums, weight, group.share * of_group);
        id = group.index * GROUP + point.index;
        if (request.top_p >= 1.0f) break;
        cut = {own[id], id};
        total = weigh(weighing, maxima, cut, sums, &mine);
        if (total < wanted) break;
    }
    if (threadIdx.x == 0) out[blockIdx.x] = id;
}
