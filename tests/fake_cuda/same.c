/* Proves that the fake declares what the real libraries declare: behind the real headers each declaration of the fake
 * is the same function once more, and a differing one does not compile. Built where the CUDA toolkit is. */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "include/cublas_functions.h"
#include "include/cuda_functions.h"
#include "include/cudnn_functions.h"
