#include "product.cuh"

KERNELS_OF(Q6_K, q6_k)
