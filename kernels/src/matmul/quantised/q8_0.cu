#include "product.cuh"

KERNELS_OF(Q8_0, q8_0)
