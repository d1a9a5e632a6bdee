/* Fake cuBLAS: the declarations that exec/cuda/ uses; see cuda_runtime_api.h. */
#ifndef FAKE_CUBLAS_V2_H
#define FAKE_CUBLAS_V2_H

#include "cuda_runtime_api.h"

typedef struct fake_cublas *cublasHandle_t;
typedef enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS,
  CUBLAS_STATUS_INVALID_VALUE,
  CUBLAS_STATUS_EXECUTION_FAILED
} cublasStatus_t;
typedef enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T } cublasOperation_t;
typedef enum cublasMath_t { CUBLAS_DEFAULT_MATH, CUBLAS_TF32_TENSOR_OP_MATH } cublasMath_t;

#include "cublas_functions.h"

#endif
