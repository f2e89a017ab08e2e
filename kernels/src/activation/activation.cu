// SwiGLU, GeGLU and GELU between two products, the sum of two tensors, and a change of type.
//
// Contract: activation/mod.rs. In f32, out in the type of the product that follows.
// Launch: 256 threads a block, one value a thread; swiglu, geglu: grid (⌈F / 256⌉, N), the others ⌈values / 256⌉.
// Bytes: swiglu and geglu 8 read and 2 (bf16) or 4 written a value; gelu, cast 4 and 2; add 8 and 4.
// Limit: memory; for one row the launch.
// Numerics: expf and erfcf of the device library, below 1e-6 relative, then the out type.
#include "../cuda/common.cuh"

typedef float typename_f32;
typedef bf16 typename_bf16;

#define ACTIVATIONS(TYPE)                                                                                \
    extern "C" __global__ void swiglu_##TYPE(const float* gate_up, typename_##TYPE* out, int width) {    \
        const int i = blockIdx.x * blockDim.x + threadIdx.x;                                             \
        if (i >= width) return;                                                                          \
        const size_t row = blockIdx.y;                                                                   \
        const float gate = gate_up[row * 2 * width + i], up = gate_up[row * 2 * width + width + i];      \
        set(out[row * width + i], gate / (1.0f + expf(-gate)) * up);                                     \
    }                                                                                                    \
    extern "C" __global__ void geglu_##TYPE(const float* gate_up, typename_##TYPE* out, int width) {     \
        const int i = blockIdx.x * blockDim.x + threadIdx.x;                                             \
        if (i >= width) return;                                                                          \
        const size_t row = blockIdx.y;                                                                   \
        const float gate = gate_up[row * 2 * width + i], up = gate_up[row * 2 * width + width + i];      \
        const float inner = gate + 0.044715f * gate * gate * gate;                                       \
        set(out[row * width + i], gate / (1.0f + expf(-1.5957691216057308f * inner)) * up);              \
    }                                                                                                    \
    extern "C" __global__ void gelu_##TYPE(const float* x, typename_##TYPE* out, uint32_t count) {       \
        const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;                                        \
        if (i < count) set(out[i], 0.5f * x[i] * erfcf(-x[i] * 0.70710678118654752f));                   \
    }
ACTIVATIONS(f32)
ACTIVATIONS(bf16)

// out = x + y, where `y` repeats every `period` values: a residual, or the bias of every row.
extern "C" __global__ void add(const float* x, const float* y, float* out, uint32_t count, uint32_t period) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = x[i] + y[i % period];
}

extern "C" __global__ void to_bf16(const float* x, bf16* out, uint32_t count) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) set(out[i], x[i]);
}
