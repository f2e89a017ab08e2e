#include "product.cuh"

KERNELS_OF(Q4_K, q4_k)
