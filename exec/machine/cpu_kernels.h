/* CPU kernels: every operator on oneDNN's C API (libdnnl 2.6), or a loop of ours where oneDNN does not fit (its LRN and
 * max pooling keep workspaces that the plan's tensors do not have, its BN sums in float32, and it has no dropout, loss,
 * fork or SGD).
 *
 * A tensor is exactly n*c*h*w*4 bytes. Values of the net and their gradients lie as the kernels want them, which net
 * and processor decide: plain, (n, c, h, w), or in blocks of 16 or 8 channels that divide c, (n, c / 16, h, w, 16).
 * The input batch is plain, and so are parameters, or they last as the kernels want them. Where a kernel wants
 * otherwise it copies into scratch. That and oneDNN's scratchpads are the caller's: a step's scratch is asked for
 * before planning, planned as workspace, and handed in with the call. Results are bit-identical from run to run and at
 * any address for a fixed number of threads. One run at a time: kernels keep what a run needs. oneDNN splits the work
 * of a primitive when it is made, by the threads of who makes it: so teams of other sizes have kernels of their own,
 * made layer by layer, and teams of one size share their primitives, each with what a run needs. They are in a module
 * of their own (exec/cpu/), loaded with the first ones made: only then must oneDNN be there.
 *
 *   sn_cpu_kernels *k = sn_cpu_kernels_new(net, threads, false, &err);
 *   bytes = sn_cpu_kernels_scratch(k, layer, SN_BACKWARD);
 *   sn_cpu_kernels_run(k, &call, &err);
 */
#ifndef SN_EXEC_MACHINE_CPU_KERNELS_H
#define SN_EXEC_MACHINE_CPU_KERNELS_H

#include "base/err.h"
#include "exec/kernel/call.h"

typedef struct sn_cpu_kernels sn_cpu_kernels;

/* Makes the primitives of every layer once; threads 0: all processors. `lasting`: what calls have of parameters,
 * gradients and what the optimizer keeps was turned, see sn_cpu_kernels_turn(). The net must outlive the kernels. Sets
 * OpenMP's number of threads for the calling thread, as every run does. SN_BAD_USAGE where there are too many threads,
 * SN_BAD_DEVICE where the module is missing or oneDNN fails. */
sn_cpu_kernels *sn_cpu_kernels_new(const sn_net *net, unsigned threads, bool lasting, sn_err *err);

/* Memory that making all of these took, libraries apart: code, and what oneDNN keeps of each. */
uint64_t sn_cpu_kernels_made_bytes(const sn_cpu_kernels *kernels);

/* The same, but without any primitives: those of a layer are there when it is prepared. */
sn_cpu_kernels *sn_cpu_kernels_bare(const sn_net *net, unsigned threads, bool lasting, sn_err *err);
sn_status sn_cpu_kernels_prepare(sn_cpu_kernels *kernels, uint32_t layer, sn_err *err);

/* Kernels with the same primitives, which may run at the same time as these as long as the two never run the same
 * layer. No layer of theirs is prepared after that. To be freed before these are. */
sn_cpu_kernels *sn_cpu_kernels_share(const sn_cpu_kernels *kernels, sn_err *err);

/* Whether so many threads can be started beside the caller's. SN_BAD_DEVICE says how many can. */
sn_status sn_cpu_kernels_try_threads(const sn_cpu_kernels *kernels, unsigned count, sn_err *err);

void sn_cpu_kernels_free(sn_cpu_kernels *kernels);

/* Scratch bytes that a layer's pass needs as workspace; 0 for most. A backward of several kernels needs the largest. */
uint64_t sn_cpu_kernels_scratch(const sn_cpu_kernels *kernels, uint32_t layer, sn_pass pass, sn_step_part part);

/* How a value of the net and its gradient lie: 1 plain, else in blocks of so many channels. */
uint32_t sn_cpu_kernels_layout(const sn_cpu_kernels *kernels, uint32_t value);

/* Turns a prepared layer's weights, or anything in their order, from plain into how they last, or back: in the same
 * bytes, and the same for all threads. Most lie plain both ways. SN_NO_MEMORY, SN_BAD_DEVICE. */
sn_status sn_cpu_kernels_turn(const sn_cpu_kernels *kernels, uint32_t layer, float *weights, bool back, sn_err *err);

/* Runs one step. SN_BAD_DEVICE where oneDNN fails, SN_BAD_INPUT where a label is not a class, SN_BUG where the
 * workspace is smaller than the scratch. */
sn_status sn_cpu_kernels_run(sn_cpu_kernels *kernels, const sn_call *call, sn_err *err);

/* All layouts in short: "plain", or "nChw16c: 161 of 322 values". Of one net two that say the same are the same. */
const char *sn_cpu_kernels_layouts(const sn_cpu_kernels *kernels);

unsigned sn_cpu_kernels_threads(const sn_cpu_kernels *kernels);
/* "oneDNN 2.6.3, avx2" */
const char *sn_cpu_kernels_version(const sn_cpu_kernels *kernels);

#endif
