#include "product.cuh"

KERNELS_OF(Q5_1, q5_1)
