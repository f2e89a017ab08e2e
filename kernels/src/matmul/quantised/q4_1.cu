#include "product.cuh"

KERNELS_OF(Q4_1, q4_1)
