#include "product.cuh"

KERNELS_OF(Q3_K, q3_k)
