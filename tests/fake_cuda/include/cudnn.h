/* Fake cuDNN: the declarations that exec/cuda/ uses; see cuda_runtime_api.h. */
#ifndef FAKE_CUDNN_H
#define FAKE_CUDNN_H

#include "cuda_runtime_api.h"

typedef struct fake_cudnn *cudnnHandle_t;
typedef struct fake_tensor *cudnnTensorDescriptor_t;
typedef struct fake_filter *cudnnFilterDescriptor_t;
typedef struct fake_convolution *cudnnConvolutionDescriptor_t;
typedef struct fake_pooling *cudnnPoolingDescriptor_t;
typedef struct fake_activation *cudnnActivationDescriptor_t;
typedef struct fake_lrn *cudnnLRNDescriptor_t;
typedef struct fake_op_tensor *cudnnOpTensorDescriptor_t;

typedef enum {
  CUDNN_STATUS_SUCCESS,
  CUDNN_STATUS_BAD_PARAM,
  CUDNN_STATUS_NOT_SUPPORTED,
  CUDNN_STATUS_EXECUTION_FAILED
} cudnnStatus_t;
typedef enum { CUDNN_DATA_FLOAT } cudnnDataType_t;
typedef enum { CUDNN_TENSOR_NCHW } cudnnTensorFormat_t;
typedef enum { CUDNN_NOT_PROPAGATE_NAN, CUDNN_PROPAGATE_NAN } cudnnNanPropagation_t;
typedef enum { CUDNN_CROSS_CORRELATION } cudnnConvolutionMode_t;
typedef enum { CUDNN_DEFAULT_MATH, CUDNN_FMA_MATH } cudnnMathType_t;
typedef enum { CUDNN_ACTIVATION_RELU = 1, CUDNN_ACTIVATION_CLIPPED_RELU = 3 } cudnnActivationMode_t;
typedef enum { CUDNN_POOLING_MAX_DETERMINISTIC, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING } cudnnPoolingMode_t;
typedef enum { CUDNN_LRN_CROSS_CHANNEL_DIM1 } cudnnLRNMode_t;
typedef enum { CUDNN_BATCHNORM_SPATIAL } cudnnBatchNormMode_t;
typedef enum { CUDNN_SOFTMAX_ACCURATE } cudnnSoftmaxAlgorithm_t;
typedef enum { CUDNN_SOFTMAX_MODE_CHANNEL } cudnnSoftmaxMode_t;
typedef enum { CUDNN_OP_TENSOR_ADD, CUDNN_OP_TENSOR_MUL } cudnnOpTensorOp_t;

typedef enum {
  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
  CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
  CUDNN_CONVOLUTION_FWD_ALGO_FFT,
  CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING,
  CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
  CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED
} cudnnConvolutionFwdAlgo_t;

typedef enum {
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT,
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING,
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD,
  CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED
} cudnnConvolutionBwdDataAlgo_t;

typedef enum {
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED,
  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING
} cudnnConvolutionBwdFilterAlgo_t;

#include "cudnn_functions.h"

#endif
