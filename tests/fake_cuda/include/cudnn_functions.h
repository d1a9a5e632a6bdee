/* cuDNN functions that exec/cuda/ uses; see cuda_functions.h. */
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
size_t cudnnGetVersion(void);
const char *cudnnGetErrorString(cudnnStatus_t status);
void cudnnGetLastErrorString(char *message, size_t room);

/* ---- descriptors ---- */
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *d);
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d);
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t format, cudnnDataType_t type,
                                         int n, int c, int h, int w);
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *d);
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d);
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type, cudnnTensorFormat_t format,
                                         int k, int c, int h, int w);
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *d);
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t d);
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int pad_h, int pad_w, int stride_h,
                                              int stride_w, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type);
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups);
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t math);
cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t *d);
cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t d);
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t d, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int kernel_h, int kernel_w, int pad_h, int pad_w,
                                          int stride_h, int stride_w);
cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *d);
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t d);
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t d, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan, double coefficient);
cudnnStatus_t cudnnCreateLRNDescriptor(cudnnLRNDescriptor_t *d);
cudnnStatus_t cudnnDestroyLRNDescriptor(cudnnLRNDescriptor_t d);
cudnnStatus_t cudnnSetLRNDescriptor(cudnnLRNDescriptor_t d, unsigned size, double alpha, double beta, double k);
cudnnStatus_t cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t *d);
cudnnStatus_t cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t d);
cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t d, cudnnOpTensorOp_t op, cudnnDataType_t type,
                                         cudnnNanPropagation_t nan);

/* ---- convolution ---- */
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x_shape,
                                                      cudnnFilterDescriptor_t w_shape, cudnnConvolutionDescriptor_t d,
                                                      cudnnTensorDescriptor_t y_shape, cudnnConvolutionFwdAlgo_t algo,
                                                      size_t *bytes);
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, cudnnFilterDescriptor_t w_shape,
                                                           cudnnTensorDescriptor_t dy_shape,
                                                           cudnnConvolutionDescriptor_t d,
                                                           cudnnTensorDescriptor_t dx_shape,
                                                           cudnnConvolutionBwdDataAlgo_t algo, size_t *bytes);
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x_shape,
                                                             cudnnTensorDescriptor_t dy_shape,
                                                             cudnnConvolutionDescriptor_t d,
                                                             cudnnFilterDescriptor_t dw_shape,
                                                             cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes);
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_shape,
                                      const void *x, cudnnFilterDescriptor_t w_shape, const void *w,
                                      cudnnConvolutionDescriptor_t d, cudnnConvolutionFwdAlgo_t algo, void *workspace,
                                      size_t bytes, const void *beta, cudnnTensorDescriptor_t y_shape, void *y);
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha, cudnnFilterDescriptor_t w_shape,
                                           const void *w, cudnnTensorDescriptor_t dy_shape, const void *dy,
                                           cudnnConvolutionDescriptor_t d, cudnnConvolutionBwdDataAlgo_t algo,
                                           void *workspace, size_t bytes, const void *beta,
                                           cudnnTensorDescriptor_t dx_shape, void *dx);
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_shape,
                                             const void *x, cudnnTensorDescriptor_t dy_shape, const void *dy,
                                             cudnnConvolutionDescriptor_t d, cudnnConvolutionBwdFilterAlgo_t algo,
                                             void *workspace, size_t bytes, const void *beta,
                                             cudnnFilterDescriptor_t dw_shape, void *dw);
cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t dy_shape,
                                           const void *dy, const void *beta, cudnnTensorDescriptor_t db_shape,
                                           void *db);

/* ---- all others ---- */
cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t a_shape, const void *a,
                             const void *beta, cudnnTensorDescriptor_t c_shape, void *c);
cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle, cudnnOpTensorDescriptor_t d, const void *alpha1,
                            cudnnTensorDescriptor_t a_shape, const void *a, const void *alpha2,
                            cudnnTensorDescriptor_t b_shape, const void *b, const void *beta,
                            cudnnTensorDescriptor_t c_shape, void *c);
cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t d, const void *alpha,
                                  cudnnTensorDescriptor_t x_shape, const void *x, const void *beta,
                                  cudnnTensorDescriptor_t y_shape, void *y);
cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t d, const void *alpha,
                                   cudnnTensorDescriptor_t y_shape, const void *y, cudnnTensorDescriptor_t dy_shape,
                                   const void *dy, cudnnTensorDescriptor_t x_shape, const void *x, const void *beta,
                                   cudnnTensorDescriptor_t dx_shape, void *dx);
cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t d, const void *alpha,
                                     cudnnTensorDescriptor_t x_shape, const void *x, const void *beta,
                                     cudnnTensorDescriptor_t y_shape, void *y);
cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t d, const void *alpha,
                                      cudnnTensorDescriptor_t y_shape, const void *y, cudnnTensorDescriptor_t dy_shape,
                                      const void *dy, cudnnTensorDescriptor_t x_shape, const void *x, const void *beta,
                                      cudnnTensorDescriptor_t dx_shape, void *dx);
cudnnStatus_t cudnnLRNCrossChannelForward(cudnnHandle_t handle, cudnnLRNDescriptor_t d, cudnnLRNMode_t mode,
                                          const void *alpha, cudnnTensorDescriptor_t x_shape, const void *x,
                                          const void *beta, cudnnTensorDescriptor_t y_shape, void *y);
cudnnStatus_t cudnnLRNCrossChannelBackward(cudnnHandle_t handle, cudnnLRNDescriptor_t d, cudnnLRNMode_t mode,
                                           const void *alpha, cudnnTensorDescriptor_t y_shape, const void *y,
                                           cudnnTensorDescriptor_t dy_shape, const void *dy,
                                           cudnnTensorDescriptor_t x_shape, const void *x, const void *beta,
                                           cudnnTensorDescriptor_t dx_shape, void *dx);
cudnnStatus_t cudnnBatchNormalizationForwardTraining(cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
                                                     const void *beta, cudnnTensorDescriptor_t x_shape, const void *x,
                                                     cudnnTensorDescriptor_t y_shape, void *y,
                                                     cudnnTensorDescriptor_t channels, const void *gamma,
                                                     const void *offset, double factor, void *running_mean,
                                                     void *running_variance, double epsilon, void *saved_mean,
                                                     void *saved_inverse);
cudnnStatus_t cudnnBatchNormalizationBackward(cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha_data,
                                              const void *beta_data, const void *alpha_parameters,
                                              const void *beta_parameters, cudnnTensorDescriptor_t x_shape,
                                              const void *x, cudnnTensorDescriptor_t dy_shape, const void *dy,
                                              cudnnTensorDescriptor_t dx_shape, void *dx,
                                              cudnnTensorDescriptor_t channels, const void *gamma, void *dgamma,
                                              void *doffset, double epsilon, const void *saved_mean,
                                              const void *saved_inverse);
cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo, cudnnSoftmaxMode_t mode,
                                  const void *alpha, cudnnTensorDescriptor_t x_shape, const void *x, const void *beta,
                                  cudnnTensorDescriptor_t y_shape, void *y);
