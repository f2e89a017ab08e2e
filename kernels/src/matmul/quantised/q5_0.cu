#include "product.cuh"

KERNELS_OF(Q5_0, q5_0)
