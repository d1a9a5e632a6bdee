/* The software GPU behind the fake runtime; see fake_cuda.h. */
#include "tests/fake_cuda/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 16, EAGER = 4 };

typedef enum task_kind { WORK, RECORD, WAIT } task_kind;

typedef struct task {
  struct task *next;
  task_kind kind;
  cudaEvent_t event;
  uint64_t version; /* of the event */
  void (*run)(const void *args);
  void *owned; /* memory that goes with it */
  _Alignas(max_align_t) unsigned char args[GPU_ARGS];
} task;

struct fake_stream {
  task *head, **tail;
};

/* Recorded so many times, passed so many times, and when it last passed. */
struct fake_event {
  uint64_t recorded, passed;
  int64_t time_ns;
  bool timed;
};

typedef struct memory {
  struct memory *next;
  unsigned char *at;
  size_t bytes;
  bool pinned;
} memory;

/* The one device. */
static struct {
  fake_cuda face;
  cudaError_t broken; /* of every call from now on */
  cudaError_t last;
  bool crash;                           /* the next work that runs fails */
  struct fake_stream *streams[STREAMS]; /* the last one is the default stream, which is always there */
  struct fake_stream standard;
  memory *memories;
  uint64_t dice;
  uint64_t pinned_bytes;
  int64_t clock_ns;
} gpu = {.face = FAKE_CUDA_INIT};

__attribute__((visibility("default"))) fake_cuda *fake_cuda_state(void) {
  return &gpu.face;
}

uint64_t gpu_random(void) {
  uint64_t z = gpu.dice += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* ---- faults ---- */

static void free_task(task *t) {
  free(t->owned);
  free(t);
}

static void drop_tasks(void) {
  for (int i = 0; i < STREAMS; i++)
    while (gpu.streams[i] && gpu.streams[i]->head) {
      task *t = gpu.streams[i]->head;
      gpu.streams[i]->head = t->next;
      free_task(t);
    }
  for (int i = 0; i < STREAMS; i++)
    if (gpu.streams[i]) gpu.streams[i]->tail = &gpu.streams[i]->head;
}

static void break_device(cudaError_t code) {
  if (gpu.broken == cudaSuccess) gpu.broken = code;
  drop_tasks();
}

void gpu_complain(const char *what) {
  if (!gpu.face.complaint[0]) snprintf(gpu.face.complaint, sizeof gpu.face.complaint, "%s", what);
  break_device(cudaErrorIllegalAddress);
}

static cudaError_t give(cudaError_t code) {
  if (code != cudaSuccess) gpu.last = code;
  return code;
}

cudaError_t gpu_enter(void) {
  if (++gpu.face.calls == gpu.face.fail_at) {
    if (gpu.face.fault == FAKE_FAILS) return give(cudaErrorUnknown);
    if (gpu.face.fault == FAKE_CRASHES) gpu.crash = true;
    if (gpu.face.fault == FAKE_LOST) break_device(cudaErrorDevicesUnavailable);
  }
  return give(gpu.broken);
}

void gpu_crash(void) {
  gpu.crash = true;
}

void *gpu_new(size_t size, cudaError_t *code) {
  *code = gpu_enter();
  void *object = *code == cudaSuccess ? calloc(1, size) : NULL;
  gpu.face.live += object != NULL;
  return object;
}

void gpu_delete(void *object) {
  free(object);
  gpu.face.live--;
}

/* ---- the scheduler ---- */

static task *append(cudaStream_t stream, task_kind kind) {
  task *t = calloc(1, sizeof *t);
  if (!t) abort();
  t->kind = kind;
  *stream->tail = t;
  stream->tail = &t->next;
  return t;
}

void gpu_queue(cudaStream_t stream, void (*run)(const void *args), const void *args, size_t size) {
  task *t = append(stream, WORK);
  if (size > sizeof t->args) abort();
  t->run = run;
  memcpy(t->args, args, size);
}

static void queue_event(cudaStream_t stream, task_kind kind, cudaEvent_t event) {
  task *t = append(stream, kind);
  t->event = event;
  t->version = event->recorded;
}

static bool is_ready(const struct fake_stream *stream) {
  const task *t = stream ? stream->head : NULL;
  return t && (t->kind != WAIT || t->event->passed >= t->version);
}

static void run_work(const task *t) {
  gpu.face.work++;
  gpu.clock_ns += 500 + (int64_t)(gpu_random() % 4096);
  if (!gpu.crash) {
    t->run(t->args);
    return;
  }
  gpu.crash = false;
  break_device(cudaErrorIllegalAddress);
}

static void run_one(struct fake_stream *stream) {
  task *t = stream->head;
  stream->head = t->next;
  if (!stream->head) stream->tail = &stream->head;
  if (t->kind == RECORD) {
    t->event->passed = t->version;
    t->event->time_ns = gpu.clock_ns;
  } else if (t->kind == WORK) {
    run_work(t);
  }
  free_task(t);
}

/* The seed says how: at random, one stream whenever it can, or one only when nothing else can. */
static struct fake_stream *pick(void) {
  struct fake_stream *ready[STREAMS];
  uint32_t count = 0;
  for (int i = 0; i < STREAMS; i++)
    if (is_ready(gpu.streams[i])) ready[count++] = gpu.streams[i];
  if (count == 0) return NULL;
  struct fake_stream *marked = gpu.streams[gpu.face.seed / 3 % 3], *any = ready[gpu_random() % count];
  if (gpu.face.seed % 3 == 1 && is_ready(marked)) return marked;
  if (gpu.face.seed % 3 == 2 && any == marked && count > 1) return ready[ready[0] == marked];
  return any;
}

static void run_some(uint64_t most) {
  while (most-- > 0) {
    struct fake_stream *stream = pick();
    if (!stream) return;
    run_one(stream);
  }
}

/* Something was queued: sometimes the device is quick. */
static cudaError_t queued(void) {
  if (gpu.face.seed % 2 && gpu_random() % EAGER == 0) run_some(gpu_random() % (2 * EAGER));
  return cudaSuccess;
}

/* ---- memory ---- */

static bool is_memory(const void *at, size_t bytes, bool pinned) {
  for (const memory *m = gpu.memories; m; m = m->next)
    if ((const unsigned char *)at >= m->at && (const unsigned char *)at + bytes <= m->at + m->bytes)
      return m->pinned == pinned;
  return false;
}

bool gpu_is_device(const void *at, size_t bytes) {
  if (is_memory(at, bytes, false)) return true;
  gpu_complain("an address outside of all device memory");
  return false;
}

bool gpu_is_pinned(const void *at, size_t bytes) {
  if (is_memory(at, bytes, true)) return true;
  gpu_complain("an asynchronous copy with host memory that is not pinned");
  return false;
}

static cudaError_t allocate(void **pointer, size_t bytes, bool pinned) {
  uint64_t *used = pinned ? &gpu.pinned_bytes : &gpu.face.used_bytes;
  uint64_t most = pinned ? gpu.face.pinned_bytes : gpu.face.device_bytes;
  cudaError_t code = gpu_enter();
  if (code == cudaErrorUnknown || (code == cudaSuccess && bytes > most - *used)) return give(cudaErrorMemoryAllocation);
  if (code != cudaSuccess) return code;
  memory *m = calloc(1, sizeof *m);
  if (m) m->at = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!m || !m->at) abort();
  memset(m->at, 0xff, bytes);
  *m = (memory){gpu.memories, m->at, bytes, pinned};
  gpu.memories = m;
  gpu.face.live++;
  *used += bytes;
  if (gpu.face.used_bytes > gpu.face.peak_bytes) gpu.face.peak_bytes = gpu.face.used_bytes;
  *pointer = m->at;
  return cudaSuccess;
}

/* Waits for the device, as the real one does. */
static cudaError_t deallocate(const void *pointer, bool pinned) {
  cudaError_t code = gpu_enter();
  run_some(UINT64_MAX);
  for (memory **m = &gpu.memories; *m; m = &(*m)->next)
    if ((*m)->at == pointer && (*m)->pinned == pinned) {
      memory *gone = *m;
      *m = gone->next;
      *(pinned ? &gpu.pinned_bytes : &gpu.face.used_bytes) -= gone->bytes;
      free(gone->at);
      free(gone);
      gpu.face.live--;
      return code;
    }
  gpu_complain("memory is freed that is not there");
  return give(cudaErrorInvalidValue);
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
  return allocate(pointer, bytes, false);
}

cudaError_t cudaFree(void *pointer) {
  return deallocate(pointer, false);
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
  return allocate(pointer, bytes, true);
}

cudaError_t cudaFreeHost(void *pointer) {
  return deallocate(pointer, true);
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total) {
  *unused = gpu.face.device_bytes - gpu.face.used_bytes;
  *total = gpu.face.device_bytes;
  return gpu_enter();
}

/* ---- copies ---- */

typedef struct copy_args {
  unsigned char *to;
  const unsigned char *from;
  size_t to_pitch, from_pitch, width, height;
  enum cudaMemcpyKind kind;
} copy_args;

static void run_copy(const void *args) {
  const copy_args *c = args;
  size_t to_bytes = c->to_pitch * (c->height - 1) + c->width, from_bytes = c->from_pitch * (c->height - 1) + c->width;
  bool to_host = c->kind == cudaMemcpyDeviceToHost, from_host = c->kind == cudaMemcpyHostToDevice;
  if (!(to_host ? gpu_is_pinned : gpu_is_device)(c->to, to_bytes) ||
      !(from_host ? gpu_is_pinned : gpu_is_device)(c->from, from_bytes))
    return;
  for (size_t row = 0; row < c->height; row++)
    memcpy(c->to + row * c->to_pitch, c->from + row * c->from_pitch, c->width);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
  copy_args args = {to, from, to_pitch, from_pitch, width, height, kind};
  cudaError_t code = gpu_enter();
  if (code != cudaSuccess) return code;
  if (width > to_pitch || width > from_pitch || height == 0) return give(cudaErrorInvalidValue);
  gpu_queue(stream, run_copy, &args, sizeof args);
  return queued();
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}

/* The default stream, with which the others, made without it, keep no order. What is copied in has been read when the
 * call returns, but may not have arrived. */
typedef struct fill_args {
  unsigned char *to;
  const unsigned char *from; /* NULL: all bytes are `value` */
  bool on_device;            /* it lies there, and is read when the copy runs */
  int value;
  size_t bytes;
} fill_args;

static void run_fill(const void *args) {
  const fill_args *f = args;
  if (!gpu_is_device(f->to, f->bytes) || (f->on_device && !gpu_is_device(f->from, f->bytes))) return;
  if (f->from)
    memmove(f->to, f->from, f->bytes);
  else
    memset(f->to, f->value, f->bytes);
}

static cudaError_t fill_later(fill_args f) {
  bool stages = f.from && !f.on_device;
  unsigned char *staged = stages ? malloc(f.bytes) : NULL;
  if (stages && !staged) abort();
  if (stages) f.from = memcpy(staged, f.from, f.bytes);
  task *t = append(&gpu.standard, WORK);
  t->run = run_fill;
  t->owned = staged;
  memcpy(t->args, &f, sizeof f);
  return queued();
}

static void finish_default_stream(void) {
  while (gpu.standard.head) run_one(&gpu.standard);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  cudaError_t code = gpu_enter();
  if (code != cudaSuccess) return code;
  if (kind != cudaMemcpyDeviceToHost)
    return fill_later(
        (fill_args){.to = to, .from = from, .on_device = kind == cudaMemcpyDeviceToDevice, .bytes = bytes});
  finish_default_stream();
  if (gpu.broken != cudaSuccess || !gpu_is_device(from, bytes))
    return give(gpu.broken != cudaSuccess ? gpu.broken : cudaErrorInvalidValue);
  memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t bytes) {
  cudaError_t code = gpu_enter();
  if (code != cudaSuccess) return code;
  return fill_later((fill_args){.to = to, .value = value, .bytes = bytes});
}

/* ---- streams and events ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  cudaError_t code;
  int i = 0;
  while (i < STREAMS && gpu.streams[i]) i++;
  if (i == STREAMS || flags != cudaStreamNonBlocking) return give(cudaErrorInvalidValue);
  struct fake_stream *made = gpu_new(sizeof *made, &code);
  if (!made) return code;
  made->tail = &made->head;
  *stream = gpu.streams[i] = made;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  cudaError_t code = gpu_enter();
  run_some(UINT64_MAX);
  for (int i = 0; i < STREAMS; i++)
    if (gpu.streams[i] == stream) gpu.streams[i] = NULL;
  gpu_delete(stream);
  return code;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  cudaError_t code = gpu_enter();
  if (code != cudaSuccess) return code;
  if (flags) return give(cudaErrorInvalidValue);
  queue_event(stream, WAIT, event);
  return queued();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  cudaError_t code;
  struct fake_event *made = gpu_new(sizeof *made, &code);
  if (!made) return code;
  made->timed = flags != cudaEventDisableTiming;
  *event = made;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  cudaError_t code = gpu_enter();
  run_some(UINT64_MAX);
  gpu_delete(event);
  return code;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  cudaError_t code = gpu_enter();
  if (code != cudaSuccess) return code;
  event->recorded++;
  queue_event(stream, RECORD, event);
  return queued();
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
  cudaError_t code = gpu_enter();
  if (code != cudaSuccess) return code;
  if (!start->timed || !end->timed || start->recorded == 0 || end->recorded == 0)
    return give(cudaErrorInvalidResourceHandle);
  if (start->passed < start->recorded || end->passed < end->recorded) return give(cudaErrorNotReady);
  *ms = (float)((double)(end->time_ns - start->time_ns) / 1e6);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
  cudaError_t code = gpu_enter();
  if (code != cudaSuccess) return code;
  run_some(UINT64_MAX);
  return give(gpu.broken);
}

/* ---- the device ---- */

/* For programs, which cannot set it: the number of an algorithm that takes the device down, or the process. */
static void read_environment(void) {
  const char *crashing = getenv("FAKE_CUDA_CRASHING_ALGO"), *deadly = getenv("FAKE_CUDA_DEADLY_ALGO");
  if (!crashing && !deadly) return;
  gpu.face.broken_algo = (int)strtol(crashing ? crashing : deadly, NULL, 10);
  gpu.face.fault = crashing ? FAKE_CRASHES : FAKE_DIES;
}

/* What a machine calls first: it finds the device well, whatever happened to another one. */
cudaError_t cudaGetDeviceCount(int *count) {
  if (gpu.face.live == 0) {
    read_environment();
    gpu.streams[STREAMS - 1] = &gpu.standard;
    gpu.standard.tail = &gpu.standard.head;
    gpu.broken = gpu.last = cudaSuccess;
    gpu.crash = false;
    gpu.dice = gpu.face.seed;
  }
  cudaError_t code = gpu_enter();
  *count = gpu.face.devices;
  if (code != cudaSuccess) return code;
  if (gpu.face.driver < 13000) return give(cudaErrorInsufficientDriver);
  return give(gpu.face.devices ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device) {
  cudaError_t code = gpu_enter();
  return code != cudaSuccess || device < gpu.face.devices ? code : give(cudaErrorInvalidValue);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *device, int index) {
  *device = (struct cudaDeviceProp){.name = "Fake GPU", .totalGlobalMem = gpu.face.device_bytes, .major = 8};
  return index == 0 ? gpu_enter() : give(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char *bus, int room, int device) {
  (void)device;
  snprintf(bus, (size_t)room, "none");
  return cudaErrorInvalidValue; /* NVML must not be asked about this device */
}

cudaError_t cudaDriverGetVersion(int *version) {
  *version = gpu.face.driver;
  return gpu_enter();
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = 13000;
  return gpu_enter();
}

cudaError_t cudaGetLastError(void) {
  cudaError_t code = gpu.broken != cudaSuccess ? gpu.broken : gpu.last;
  gpu.last = cudaSuccess;
  return code;
}

static const struct {
  const char *name, *text;
} errors[] = {
    [cudaSuccess] = {"cudaSuccess", "no error"},
    [cudaErrorInvalidValue] = {"cudaErrorInvalidValue", "invalid argument"},
    [cudaErrorMemoryAllocation] = {"cudaErrorMemoryAllocation", "out of memory"},
    [cudaErrorStubLibrary] = {"cudaErrorStubLibrary", "stub library"},
    [cudaErrorInsufficientDriver] = {"cudaErrorInsufficientDriver", "driver too old"},
    [cudaErrorDevicesUnavailable] = {"cudaErrorDevicesUnavailable", "device busy or unavailable"},
    [cudaErrorNoDevice] = {"cudaErrorNoDevice", "no device"},
    [cudaErrorInvalidResourceHandle] = {"cudaErrorInvalidResourceHandle", "invalid resource handle"},
    [cudaErrorNotReady] = {"cudaErrorNotReady", "device not ready"},
    [cudaErrorIllegalAddress] = {"cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    [cudaErrorUnknown] = {"cudaErrorUnknown", "unknown error"},
};

const char *cudaGetErrorName(cudaError_t code) {
  return errors[code].name;
}

const char *cudaGetErrorString(cudaError_t code) {
  return errors[code].text;
}
