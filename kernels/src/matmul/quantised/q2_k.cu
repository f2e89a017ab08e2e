#include "product.cuh"

KERNELS_OF(Q2_K, q2_k)
