// What all kernels share: the three number types, sums over a warp and over a block.
//
// On a GPU `f16` and `bf16` come from the toolkit; the emulation on the host (emulate.h) brings its own.
#pragma once
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>
typedef __half f16;
typedef __nv_bfloat16 bf16;
__device__ inline float to_float(f16 x) { return __half2float(x); }
__device__ inline float to_float(bf16 x) { return __bfloat162float(x); }
__device__ inline void set(f16& to, float x) { to = __float2half_rn(x); }
__device__ inline void set(bf16& to, float x) { to = __float2bfloat16_rn(x); }
#endif
// Keys and values in 8 bits: bytes of a tile, then its scales in f16 (attention/quantised.rs).
struct q8 {
    int8_t byte;
};
__device__ inline float to_float(float x) { return x; }
__device__ inline void set(float& to, float x) { to = x; }

// Every lane of a warp gets the sum over the warp.
__device__ inline float warp_sum(float x) {
    for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(0xffffffff, x, lanes);
    return x;
}

// Every thread of a block gets the sum over the block; blocks are whole warps. Two calls in a row are safe.
__device__ inline float block_sum(float x) {
    __shared__ float of_warp[32];
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) of_warp[warp] = x;
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < warps; i++) sum += of_warp[i];
    __syncthreads();
    return sum;
}
