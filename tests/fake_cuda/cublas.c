/* Fake cuBLAS on the software GPU: scal, axpy and gemm by columns. Scalars are read when the call is made, as in
 * cuBLAS' host pointer mode. */
#include "tests/fake_cuda/gpu.h"

#include "tests/fake_cuda/include/cublas_v2.h"

struct fake_cublas {
  cudaStream_t stream;
  void *workspace; /* a real one takes memory of its own where it is given none */
  size_t workspace_bytes;
};

typedef struct args {
  cublasOperation_t ta, tb;
  int m, n, k, lda, ldb, ldc;
  float alpha, beta;
  const float *a, *b;
  float *c;
  const void *workspace;
  size_t workspace_bytes;
} args;

static cublasStatus_t start(cublasHandle_t handle, void (*run)(const void *), const args *a) {
  if (gpu_enter() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  gpu_queue(handle->stream, run, a, sizeof *a);
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t status(cudaError_t code) {
  return code == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t cublasCreate(cublasHandle_t *handle) {
  cudaError_t code;
  *handle = gpu_new(sizeof **handle, &code);
  return status(code);
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  cudaError_t code = gpu_enter();
  gpu_delete(handle);
  return status(code);
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  handle->workspace = NULL; /* as documented */
  return status(gpu_enter());
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes) {
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return status(gpu_enter());
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  (void)handle, (void)mode;
  return status(gpu_enter());
}

cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version) {
  (void)handle;
  *version = 130100;
  return status(gpu_enter());
}

const char *cublasGetStatusString(cublasStatus_t code) {
  return code == CUBLAS_STATUS_INVALID_VALUE ? "invalid value" : "execution failed";
}

static void run_scal(const void *p) {
  const args *a = p;
  if (!gpu_is_device(a->c, (size_t)a->n * sizeof(float))) return;
  for (int i = 0; i < a->n; i++) a->c[i] *= a->alpha;
}

cublasStatus_t cublasSscal(cublasHandle_t handle, int n, const float *alpha, float *x, int incx) {
  if (incx != 1 || n <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  return start(handle, run_scal, &(args){.n = n, .alpha = *alpha, .c = x});
}

static void run_axpy(const void *p) {
  const args *a = p;
  if (!gpu_is_device(a->a, (size_t)a->n * sizeof(float)) || !gpu_is_device(a->c, (size_t)a->n * sizeof(float))) return;
  for (int i = 0; i < a->n; i++) a->c[i] += a->alpha * a->a[i];
}

cublasStatus_t cublasSaxpy(cublasHandle_t handle, int n, const float *alpha, const float *x, int incx, float *y,
                           int incy) {
  if (incx != 1 || incy != 1 || n <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  return start(handle, run_axpy, &(args){.n = n, .alpha = *alpha, .a = x, .c = y});
}

static size_t matrix_bytes(int rows, int columns, int leading) {
  return ((size_t)(columns - 1) * (size_t)leading + (size_t)rows) * sizeof(float);
}

static void run_gemm(const void *p) {
  const args *g = p;
  if (!g->workspace) gpu_complain("cublasSgemm has no workspace and takes memory that nobody planned");
  if (!g->workspace || !gpu_is_device(g->workspace, g->workspace_bytes)) return;
  bool ta = g->ta == CUBLAS_OP_T, tb = g->tb == CUBLAS_OP_T;
  if (!gpu_is_device(g->a, matrix_bytes(ta ? g->k : g->m, ta ? g->m : g->k, g->lda)) ||
      !gpu_is_device(g->b, matrix_bytes(tb ? g->n : g->k, tb ? g->k : g->n, g->ldb)) ||
      !gpu_is_device(g->c, matrix_bytes(g->m, g->n, g->ldc)))
    return;
  size_t a_row = ta ? (size_t)g->lda : 1, a_column = ta ? 1 : (size_t)g->lda;
  size_t b_row = tb ? (size_t)g->ldb : 1, b_column = tb ? 1 : (size_t)g->ldb;
  for (size_t j = 0; j < (size_t)g->n; j++)
    for (size_t i = 0; i < (size_t)g->m; i++) {
      double sum = 0;
      for (size_t k = 0; k < (size_t)g->k; k++)
        sum += (double)g->a[i * a_row + k * a_column] * (double)g->b[k * b_row + j * b_column];
      float *c = &g->c[i + j * (size_t)g->ldc];
      *c = (float)((double)g->alpha * sum + (g->beta == 0 ? 0 : (double)g->beta * (double)*c));
    }
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                           const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta,
                           float *c, int ldc) {
  if (lda < (ta == CUBLAS_OP_T ? k : m) || ldb < (tb == CUBLAS_OP_T ? n : k) || ldc < m)
    return CUBLAS_STATUS_INVALID_VALUE;
  return start(
      handle, run_gemm,
      &(args){ta, tb, m, n, k, lda, ldb, ldc, *alpha, *beta, a, b, c, handle->workspace, handle->workspace_bytes});
}
