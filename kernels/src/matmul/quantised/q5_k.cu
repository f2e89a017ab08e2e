#include "product.cuh"

KERNELS_OF(Q5_K, q5_k)
