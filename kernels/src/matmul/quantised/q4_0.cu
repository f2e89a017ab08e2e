#include "product.cuh"

KERNELS_OF(Q4_0, q4_0)
