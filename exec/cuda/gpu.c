/* The device: what is missing is said in words, in the order in which it can be missing: driver, device, memory. */
#include "exec/cuda/cuda.h"

#include "base/checked.h"

#include <stdio.h>
#include <string.h>

/* ---- errors ---- */

static sn_status fail(const char *call, const char *text, const char *more, sn_err *err) {
  return sn_fail(err, SN_BAD_DEVICE, "%.*s failed: %s%s%.200s", (int)strcspn(call, "("), call, text, *more ? ": " : "",
                 more);
}

sn_status sn__cuda_check(cudaError_t code, const char *call, sn_err *err) {
  return code == cudaSuccess ? SN_OK : fail(call, cudaGetErrorString(code), cudaGetErrorName(code), err);
}

/* What the libraries report is often only that a launch failed; the runtime knows why. */
static const char *cause(void) {
  cudaError_t code = cudaGetLastError();
  return code == cudaSuccess ? "" : cudaGetErrorString(code);
}

sn_status sn__cudnn_check(cudnnStatus_t code, const char *call, sn_err *err) {
  char detail[200] = "";
  if (code == CUDNN_STATUS_SUCCESS) return SN_OK;
  const char *why = cause();
  if (!*why) cudnnGetLastErrorString(detail, sizeof detail);
  return fail(call, cudnnGetErrorString(code), *why ? why : detail, err);
}

sn_status sn__cublas_check(cublasStatus_t code, const char *call, sn_err *err) {
  return code == CUBLAS_STATUS_SUCCESS ? SN_OK : fail(call, cublasGetStatusString(code), cause(), err);
}

/* ---- memory ---- */

static double mib(uint64_t bytes) {
  return (double)bytes / 1048576.0;
}

sn_status sn__gpu_malloc(void **memory, uint64_t bytes, const char *what, sn_err *err) {
  size_t unused = 0, total = 0;
  *memory = NULL;
  if (bytes == 0) return SN_OK;
  cudaError_t code = cudaMalloc(memory, bytes);
  if (code != cudaErrorMemoryAllocation) return sn__cuda_check(code, "cudaMalloc", err);
  *memory = NULL;
  cudaGetLastError(); /* it is dealt with */
  if (CUDA(cudaMemGetInfo(&unused, &total)) != SN_OK) return err->code;
  return sn_fail(err, SN_BAD_DEVICE,
                 "out of device memory: %s needs %.1f MiB in one piece, of the device's %.1f MiB only %.1f MiB are "
                 "free; use a smaller batch or --pool, or end what else runs there",
                 what, mib(bytes), mib(total), mib(unused));
}

sn_status sn__gpu_pin(void **memory, uint64_t bytes, const char *what, sn_err *err) {
  *memory = NULL;
  if (bytes == 0) return SN_OK;
  cudaError_t code = cudaMallocHost(memory, bytes);
  if (code != cudaErrorMemoryAllocation) return sn__cuda_check(code, "cudaMallocHost", err);
  *memory = NULL;
  cudaGetLastError();
  return sn_fail(err, SN_NO_MEMORY,
                 "the system does not give %.1f MiB of pinned host memory for %s; use a smaller batch, or a strategy "
                 "that offloads less",
                 mib(bytes), what);
}

sn_status sn__gpu_used(const sn__gpu *gpu, uint64_t *bytes, sn_err *err) {
  size_t unused = 0, total = 0;
  if (!sn__nvml_used(gpu->nvml, bytes)) {
    if (CUDA(cudaMemGetInfo(&unused, &total)) != SN_OK) return err->code;
    *bytes = total - unused;
  }
  *bytes = *bytes > gpu->base_bytes ? *bytes - gpu->base_bytes : 0;
  return SN_OK;
}

/* Kernels are loaded when they are first launched, and cuDNN has many. Measured on no device yet: a guess on the safe
 * side, and less of a small card. */
#define LAZY_KERNEL_BYTES (UINT64_C(384) << 20)

sn_status sn__gpu_room(uint64_t *bytes, sn_err *err) {
  size_t unused = 0, total = 0;
  if (CUDA(cudaMemGetInfo(&unused, &total)) != SN_OK) return err->code;
  uint64_t kept = sn_min(LAZY_KERNEL_BYTES, total / 16);
  *bytes = unused > kept ? unused - kept : 0;
  return SN_OK;
}

/* ---- opening ---- */

static sn_status fail_driver(sn_err *err) {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (driver == 0) return sn_fail(err, SN_BAD_DEVICE, "there is no NVIDIA driver on this machine; --backend cpu works");
  return sn_fail(err, SN_BAD_DEVICE,
                 "the NVIDIA driver is too old: it supports CUDA %d.%d, the CUDA runtime here needs %d.%d; update it",
                 driver / 1000, driver % 100 / 10, runtime / 1000, runtime % 100 / 10);
}

sn_status sn__gpu_find(sn_err *err) {
  int count = 0;
  cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorInsufficientDriver || code == cudaErrorStubLibrary) return fail_driver(err);
  if (code == cudaErrorNoDevice || (code == cudaSuccess && count == 0))
    return sn_fail(err, SN_BAD_DEVICE,
                   "there is no CUDA device, or CUDA_VISIBLE_DEVICES hides it; --backend cpu works without");
  return sn__cuda_check(code, "cudaGetDeviceCount", err);
}

/* As much as cuBLAS takes by itself unless it is given some (its documentation, cublasSetWorkspace): then the device's
 * memory is known before the first product. */
static sn_status open_workspace(sn__gpu *gpu, int major, sn_err *err) {
  enum { HOPPER = 9 };
  uint64_t bytes = major >= HOPPER ? UINT64_C(32) << 20 : (UINT64_C(8) << 20) + (UINT64_C(128) << 10);
  if (sn__gpu_malloc(&gpu->cublas_workspace, bytes, "cuBLAS's workspace", err) != SN_OK) return err->code;
  return CUBLAS(cublasSetWorkspace(gpu->cublas, gpu->cublas_workspace, bytes));
}

/* Device 0: CUDA_VISIBLE_DEVICES says which that is. TF32 is named with the libraries because times, and so
 * calibrations, are those of one or the other. */
static sn_status describe(sn__gpu *gpu, bool tf32, sn_machine_info *info, sn_err *err) {
  struct cudaDeviceProp device;
  char driver[32];
  int supported = 0, runtime = 0, cublas = 0;
  size_t cudnn = cudnnGetVersion();
  if (CUDA(cudaGetDeviceProperties(&device, 0)) != SN_OK || open_workspace(gpu, device.major, err) != SN_OK ||
      CUDA(cudaDriverGetVersion(&supported)) != SN_OK || CUDA(cudaRuntimeGetVersion(&runtime)) != SN_OK ||
      CUBLAS(cublasGetVersion(gpu->cublas, &cublas)) != SN_OK)
    return err->code;
  info->backend = "cuda";
  info->memory_bytes = device.totalGlobalMem;
  snprintf(info->device, sizeof info->device, "%.100s", device.name);
  if (!sn__nvml_driver(gpu->nvml, driver, sizeof driver))
    snprintf(driver, sizeof driver, "for CUDA %d.%d", supported / 1000, supported % 1000 / 10);
  snprintf(info->libraries, sizeof info->libraries, "driver %s, CUDA %d.%d, cuDNN %zu.%zu.%zu, cuBLAS %d.%d.%d%s",
           driver, runtime / 1000, runtime % 1000 / 10, cudnn / 10000, cudnn % 10000 / 100, cudnn % 100, cublas / 10000,
           cublas % 10000 / 100, cublas % 100, tf32 ? ", TF32" : "");
  return SN_OK;
}

/* One handle each, used with one stream only: then cuBLAS gives the same bits every time. */
static sn_status open_libraries(sn__gpu *gpu, bool tf32, sn_err *err) {
  cudaStream_t stream = gpu->streams[SN_LANE_COMPUTE];
  if (CUDNN(cudnnCreate(&gpu->cudnn)) != SN_OK || CUDNN(cudnnSetStream(gpu->cudnn, stream)) != SN_OK ||
      CUBLAS(cublasCreate(&gpu->cublas)) != SN_OK || CUBLAS(cublasSetStream(gpu->cublas, stream)) != SN_OK)
    return err->code;
  return CUBLAS(cublasSetMathMode(gpu->cublas, tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH));
}

sn_status sn__gpu_open(sn__gpu *gpu, bool tf32, sn_machine_info *info, sn_err *err) {
  if (sn__gpu_find(err) != SN_OK) return err->code;
  gpu->nvml = sn__nvml_open(0);
  if (sn__nvml_used(gpu->nvml, &gpu->base_bytes)) { /* before there is a context */
    if (CUDA(cudaSetDevice(0)) != SN_OK) return err->code;
  } else {
    if (CUDA(cudaSetDevice(0)) != SN_OK || sn__gpu_used(gpu, &gpu->base_bytes, err) != SN_OK) return err->code;
  }
  for (int lane = 0; lane < SN_PLAIN_LANES; lane++)
    if (CUDA(cudaStreamCreateWithFlags(&gpu->streams[lane], cudaStreamNonBlocking)) != SN_OK) return err->code;
  if (open_libraries(gpu, tf32, err) != SN_OK) return err->code;
  return describe(gpu, tf32, info, err);
}

/* What fails here fails because the device is gone, and then nothing is left to free. */
void sn__gpu_close(sn__gpu *gpu) {
  if (gpu->cublas) cublasDestroy(gpu->cublas);
  if (gpu->cublas_workspace) cudaFree(gpu->cublas_workspace);
  if (gpu->cudnn) cudnnDestroy(gpu->cudnn);
  for (int lane = 0; lane < SN_PLAIN_LANES; lane++)
    if (gpu->streams[lane]) cudaStreamDestroy(gpu->streams[lane]);
  sn__nvml_close(gpu->nvml);
}
