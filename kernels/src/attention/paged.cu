// Causal attention over keys and values in pages: chunks of prompts, decoding, and prefixes that sequences share.
//
// Contract: attention/mod.rs. `q: [N, A, D] f32`, pages of one layer in f16, bf16 or 8 bits, D 64 or 128, out [N, A, D] in the
// type of the product that follows. The host cuts the work (cuda/plan.rs): a *task* is some query tokens (its *entries*)
// against a run of pages; all rows of a key/value head's group go together, token by token. An entry of which no other
// task sees keys gets its attention at once, the others partial sums, which `merge` puts together.
// Launch: grid (tasks, K). `paged_wide`: 4 warps of 16 rows, all over the same pages, which are copied one ahead, 32,768 bytes
// of shared memory (D 128). `paged_narrow`: up to 16 rows; 2 warps, each over every second page, and a place where one hands
// over its sums: 41,472 bytes. `merge`: grid (tokens, A), D threads.
// Bytes: every task reads its pages once, 4·D·32 a page and head, and its queries, 4·D a row; out is 2·D (bf16) or 4·D a row.
// Rows of several tasks: each task writes 4·(D + 2) a row instead, `merge` reads them and the marks once more, and writes out.
// Limit: wide: the read of fragments from shared memory, 16 KB for 64 products of 16x8x16 (D 128); narrow: memory bandwidth,
// 16 KB a warp under way.
// Numerics: scores and sums f32; queries, keys, values and weights rounded to the pages' type, f16 for 8 bits: below 2^-8 (f16) or 2^-6
// (bf16) of a row's largest value against the reference. A row's bits depend on how the host cut the work.
// Slots past the last key that a task sees may hold anything, numbers or not: values there are read as zeros.
#include "tile.cuh"

struct Task {
    uint32_t first_entry, entries, first_page, pages, first_key;
};
struct Entry {
    uint32_t row, first, end, part;
};
struct Merge {
    uint32_t row, first_part, parts;
};
const uint32_t WHOLE = 0xffffffff;

struct Shape {
    int queries, keys;
};

// Begins to copy the keys and values of one page of one head.
template <class T, int D>
__device__ inline void begin_page(T* keys, T* values, const T* pages, uint32_t page, int head, Shape shape,
                                  int first_key, int end, int thread, int threads) {
    const T* from_keys = pages + ((size_t)page * 2 * shape.keys + head) * D * KEYS;
    const T* from_values = from_keys + (size_t)shape.keys * D * KEYS;
    for (int i = thread; i < 4 * D; i += threads) {
        begin_copy(keys + 8 * place<4>(i / 4, i % 4), from_keys + 8 * i, true);
        const int key = i / (D / 8);
        begin_copy(values + 8 * place<D / 8>(key, i % (D / 8)), from_values + 8 * i, first_key + key < end);
    }
}

// Eight values of 8 bits, each times its scale, as T.
template <class T>
__device__ inline uint4 widen(uint2 bytes, const f16 (&scales)[8]) {
    float x[8];
    for (int i = 0; i < 8; i++)
        x[i] = (float)(int8_t)((i < 4 ? bytes.x : bytes.y) >> (i % 4 * 8)) * to_float(scales[i]);
    return make_uint4(pack<T>(x[0], x[1]), pack<T>(x[2], x[3]), pack<T>(x[4], x[5]), pack<T>(x[6], x[7]));
}

// The same for pages in 8 bits, which are widened at once: they are there after the next barrier.
template <class T, int D>
__device__ inline void begin_page(T* keys, T* values, const q8* pages, uint32_t page, int head, Shape shape,
                                  int first_key, int end, int thread, int threads) {
    const int TILE = KEYS * D + KEYS * D / 32 * 2;
    const uint8_t* from_keys = (const uint8_t*)pages + ((size_t)page * 2 * shape.keys + head) * TILE;
    const uint8_t* from_values = from_keys + (size_t)shape.keys * TILE;
    const f16* key_scales = (const f16*)(from_keys + KEYS * D);
    const f16* value_scales = (const f16*)(from_values + KEYS * D);
    for (int i = thread; i < 4 * D; i += threads) {
        f16 scales[8];
        for (int j = 0; j < 8; j++) scales[j] = key_scales[i / 4 / 32 * KEYS + 8 * (i % 4) + j];
        *(uint4*)(keys + 8 * place<4>(i / 4, i % 4)) = widen<T>(*(const uint2*)(from_keys + 8 * i), scales);
        const int key = i / (D / 8), chunk = i % (D / 8);
        uint4 widened = make_uint4(0, 0, 0, 0);
        if (first_key + key < end) {
            for (int j = 0; j < 8; j++) scales[j] = value_scales[key * (D / 32) + chunk / 4];
            widened = widen<T>(*(const uint2*)(from_values + 8 * i), scales);
        }
        *(uint4*)(values + 8 * place<D / 8>(key, chunk)) = widened;
    }
}

// Loads the lane's two rows; returns the end of the keys that any row of the task sees.
template <class T, int D>
__device__ inline int load_rows(Rows<T, D>& rows, const float* q, const Task& task, const Entry* entries, int head,
                                Shape shape, int first_row) {
    const int group = shape.queries / shape.keys;
    for (int r = 0; r < 2; r++) {
        const int index = first_row + threadIdx.x % 32 / 4 + 8 * r, token = index / group;
        const bool there = token < (int)task.entries;
        const Entry entry = entries[task.first_entry + (there ? token : 0)];
        const float* from = q + ((size_t)entry.row * shape.queries + head * group + index % group) * D;
        rows.load(r, there ? from : nullptr);
        rows.first[r] = there ? entry.first : 0;
        rows.end[r] = there ? entry.end : 0;
    }
    int end = 0;
    for (uint32_t i = 0; i < task.entries; i++) end = max(end, (int)entries[task.first_entry + i].end);
    return end;
}

template <class T, class Out, int D>
__device__ inline void write_rows(const Rows<T, D>& rows, const Task& task, const Entry* entries, int head, Shape shape,
                                  int first_row, Out* out, float* parts, float2* marks) {
    const int group = shape.queries / shape.keys, lane = threadIdx.x % 32;
    for (int r = 0; r < 2; r++) {
        const int index = first_row + lane / 4 + 8 * r, token = index / group;
        if (token >= (int)task.entries) continue;
        const Entry entry = entries[task.first_entry + token];
        const int query_head = head * group + index % group, column = 2 * (lane % 4);
        const bool whole = entry.part == WHOLE;
        const size_t at = (size_t)(whole ? entry.row : entry.part) * shape.queries + query_head;
        const float scale = whole ? 1 / rows.sum[r] : 1;
        for (int d = 0; d < D / 8; d++)
            for (int e = 0; e < 2; e++) {
                const float value = rows.out[d][2 * r + e] * scale;
                if (whole)
                    set(out[at * D + 8 * d + column + e], value);
                else
                    parts[at * D + 8 * d + column + e] = value;
            }
        if (!whole && column == 0) marks[at] = make_float2(rows.max[r], rows.sum[r]);
    }
}

const int WIDE_WARPS = 4;

template <class Page, class T, class Out, int D>
__device__ void paged_wide(const float* q, const Page* pages, const Task* tasks, const Entry* entries,
                           const uint32_t* lists, Shape shape, Out* out, float* parts, float2* marks) {
    __shared__ __align__(16) T tiles[2][2][KEYS * D];
    const Task task = tasks[blockIdx.x];
    const int head = blockIdx.y, first_row = threadIdx.x / 32 * GROUP_ROWS;
    Rows<T, D> rows;
    const int end = load_rows(rows, q, task, entries, head, shape, first_row);
    const bool busy = first_row < (int)task.entries * (shape.queries / shape.keys);
    const uint32_t* list = lists + task.first_page;
    if (task.pages > 0)
        begin_page<T, D>(tiles[0][0], tiles[0][1], pages, list[0], head, shape, task.first_key, end, threadIdx.x,
                         blockDim.x);
    end_group();
    for (int page = 0; page < (int)task.pages; page++) {
        const int first_key = task.first_key + page * KEYS, next = (page + 1) % 2;
        if (page + 1 < (int)task.pages)
            begin_page<T, D>(tiles[next][0], tiles[next][1], pages, list[page + 1], head, shape, first_key + KEYS, end,
                             threadIdx.x, blockDim.x);
        end_group();
        await_groups<1>();
        __syncthreads();
        if (busy) attend<false>(rows, tiles[page % 2][0], tiles[page % 2][1], first_key);
        __syncthreads();
    }
    finish(rows);
    if (busy) write_rows(rows, task, entries, head, shape, first_row, out, parts, marks);
}

const int NARROW_WARPS = 2;

template <class Page, class T, class Out, int D>
__device__ void paged_narrow(const float* q, const Page* pages, const Task* tasks, const Entry* entries,
                             const uint32_t* lists, Shape shape, Out* out, float* parts, float2* marks) {
    __shared__ __align__(16) T tiles[NARROW_WARPS][2][KEYS * D];
    __shared__ float others[D / 8 + 1][4][32];
    const Task task = tasks[blockIdx.x];
    const int head = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Rows<T, D> rows;
    const int end = load_rows(rows, q, task, entries, head, shape, 0);
    for (int page = warp; page < (int)task.pages; page += NARROW_WARPS) {
        const int first_key = task.first_key + page * KEYS;
        begin_page<T, D>(tiles[warp][0], tiles[warp][1], pages, lists[task.first_page + page], head, shape, first_key,
                         end, lane, 32);
        end_group();
        await_groups<0>();
        __syncwarp();
        attend<false>(rows, tiles[warp][0], tiles[warp][1], first_key);
        __syncwarp();
    }
    finish(rows);
    if (warp == 1) {
        for (int d = 0; d < D / 8; d++)
            for (int e = 0; e < 4; e++) others[d][e][lane] = rows.out[d][e];
        for (int r = 0; r < 2; r++) others[D / 8][r][lane] = rows.max[r], others[D / 8][2 + r][lane] = rows.sum[r];
    }
    __syncthreads();
    if (warp == 1) return;
    for (int r = 0; r < 2; r++) {
        const float max = others[D / 8][r][lane], largest = fmaxf(rows.max[r], max);
        const float base = largest == -INFINITY ? 0 : largest;
        const float ours = exp2f(rows.max[r] - base), theirs = exp2f(max - base);
        rows.max[r] = largest;
        rows.sum[r] = rows.sum[r] * ours + others[D / 8][2 + r][lane] * theirs;
        for (int d = 0; d < D / 8; d++)
            for (int e = 2 * r; e < 2 * r + 2; e++)
                rows.out[d][e] = rows.out[d][e] * ours + others[d][e][lane] * theirs;
    }
    write_rows(rows, task, entries, head, shape, 0, out, parts, marks);
}

// Puts the partial sums of a token's head together.
template <class Out>
__device__ void merge(const Merge* merges, const float* parts, const float2* marks, int queries, Out* out) {
    const Merge token = merges[blockIdx.x];
    const int head = blockIdx.y, dim = blockDim.x, d = threadIdx.x;
    float largest = -INFINITY, sum = 0, value = 0;
    for (uint32_t i = 0; i < token.parts; i++)
        largest = fmaxf(largest, marks[(size_t)(token.first_part + i) * queries + head].x);
    for (uint32_t i = 0; i < token.parts; i++) {
        const size_t at = (size_t)(token.first_part + i) * queries + head;
        const float weight = exp2f(marks[at].x - largest);
        sum += marks[at].y * weight;
        value += parts[at * dim + d] * weight;
    }
    set(out[((size_t)token.row * queries + head) * dim + d], value / sum);
}

typedef float typename_f32;
typedef bf16 typename_bf16;
typedef f16 typename_f16;
typedef q8 typename_q8;
// What goes into the products.
typedef bf16 computed_bf16;
typedef f16 computed_f16;
typedef f16 computed_q8;

#define PAGED(NAME, WARPS, T, OUT, D)                                                                                  \
    extern "C" __global__ void __launch_bounds__(32 * WARPS) NAME##_##T##_##OUT##_##D(                                 \
        const float* q, const typename_##T* pages, const Task* tasks, const Entry* entries, const uint32_t* lists,     \
        int queries, int keys, typename_##OUT* out, float* parts, float2* marks) {                                     \
        const Shape shape = {queries, keys};                                                                           \
        NAME<typename_##T, computed_##T, typename_##OUT, D>(q, pages, tasks, entries, lists, shape, out, parts, marks);              \
    }
#define PAGED_BOTH(T, OUT, D)                \
    PAGED(paged_wide, WIDE_WARPS, T, OUT, D) \
    PAGED(paged_narrow, NARROW_WARPS, T, OUT, D)
PAGED_BOTH(f16, f32, 64)
PAGED_BOTH(f16, f32, 128)
PAGED_BOTH(f16, bf16, 64)
PAGED_BOTH(f16, bf16, 128)
PAGED_BOTH(bf16, f32, 64)
PAGED_BOTH(bf16, f32, 128)
PAGED_BOTH(bf16, bf16, 64)
PAGED_BOTH(bf16, bf16, 128)
PAGED_BOTH(q8, f32, 64)
PAGED_BOTH(q8, f32, 128)
PAGED_BOTH(q8, bf16, 64)
PAGED_BOTH(q8, bf16, 128)

#define MERGE(OUT)                                                                                                    \
    extern "C" __global__ void merge_##OUT(const Merge* merges, const float* parts, const float2* marks, int queries, \
                                           typename_##OUT* out) {                                                     \
        merge<typename_##OUT>(merges, parts, marks, queries, out);                                                    \
    }
MERGE(f32)
MERGE(bf16)
