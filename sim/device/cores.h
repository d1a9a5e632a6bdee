/* A device made of cores (corun, section 2): how the time of an operation depends on its threads, and how operations
 * that run at once slow each other. Memory planning works on such a device as on a GPU.
 *
 *   T(p) = fixed + parallel / v(p) + thread p          p threads, 1 .. 2 C
 *   v(p) = p up to C cores; C (1 + (h - 1) (p - C) / C) beyond, to two a core; at most `cap`
 *
 * fixed = k o + s w, parallel = (1 - s) w and thread = k c, where w is the operation's work in ns of one core, k its
 * kernels, s the share that does not spread over threads, o the start of a kernel and c what each thread costs it.
 * `cap` is all of memory's bandwidth over one core's, where bytes decide.
 *
 * All constants are the profile's (docs/devices.md).
 */
#ifndef SN_SIM_DEVICE_CORES_H
#define SN_SIM_DEVICE_CORES_H

#include <stdbool.h>
#include <stdint.h>

enum { SN_MIN_CORES = 2, SN_MAX_CORES = 256 };

/* Which hardware threads of its cores a team has. */
typedef enum sn_slot { SN_SLOT_FIRST, SN_SLOT_SECOND, SN_SLOT_ANY } sn_slot;

/* Cores [first, first + count), their first or second hardware threads. SN_SLOT_ANY: `count` threads that float over
 * all cores; `first` is then how many threads all workers have together. count 0: no team. */
typedef struct sn_team {
  uint16_t first, count;
  uint8_t slot; /* sn_slot */
} sn_team;

/* Kinds of operations, each with constants of its own. A DECONV's forward is of kind DATA and its DATA of kind FORWARD:
 * that is what they compute. */
typedef enum sn_law_kind {
  SN_LAW_FORWARD, /* of a convolution */
  SN_LAW_DATA,
  SN_LAW_FILTER,
  SN_LAW_FC, /* forward, DATA and FILTER of an FC */
  SN_LAW_BN_FORWARD,
  SN_LAW_BN_BACKWARD,
  SN_LAW_ACT,
  SN_LAW_UPDATE,
  SN_LAW_OTHER,
  SN_LAW_KINDS
} sn_law_kind;

typedef struct sn_law {
  double flops;     /* r: FLOP/s of one core */
  double bandwidth; /* b: bytes/s of one core */
  double thread_ns; /* c: for each thread of a kernel */
  double kernels;   /* k: an operation runs as so many kernels */
} sn_law;

enum { SN_CROWDS = 3 };

typedef struct sn_cores {
  uint32_t count;          /* C; 0: the device has no `cores` block, and nothing else here is set */
  uint32_t tile;           /* cores that share a cache of the second level */
  uint32_t slots;          /* hardware threads of a core that are used: 1 or 2 */
  bool pinned;             /* threads do not float: `manual` has no more than there are cores */
  double bandwidth;        /* B: bytes/s of all cores together */
  double kernel_ns;        /* o */
  double serial;           /* s: 0 .. 1 */
  double doubled;          /* h: speed of all cores with two threads each, where one each is 1 */
  double neighbour;        /* beta: slowing by an operation on other cores, which shares memory */
  double crowd[SN_CROWDS]; /* alpha, a4, a8: slowing by one that has the same cores, and with 4 and 8 threads a core */
  double tile_gain;        /* share of the parallel work that threads save which sit two a tile */
  double resize_ns;        /* a team gets another number of threads */
  sn_law law[SN_LAW_KINDS];
} sn_cores;

/* Cores that nobody measured (sim/device/manycore.c): SN_MIN_CORES to SN_MAX_CORES of them, 1 or 2 slots, and a tile
 * that divides the count. */
sn_cores sn_cores_estimate(uint32_t count, uint32_t slots, uint32_t tile);

/* The law of one operation: everything but the number of threads is put in. Times in ns. */
typedef struct sn_scaling {
  double fixed, parallel, thread;
  double cap; /* v is at most this */
} sn_scaling;

/* `flops` and `bytes`: what the operation computes and moves. */
sn_scaling sn_cores_scaling(const sn_cores *cores, sn_law_kind kind, double flops, double bytes);

/* T(threads) in ns, at least 1; threads 1 .. 2 C. At most SN_MAX_OP_SECONDS (sim/device/conv.h). */
int64_t sn_scaling_ns(const sn_cores *cores, const sn_scaling *scaling, uint32_t threads);

/* u(threads): the share of T in which the cores are at work, in 1/1024. */
uint32_t sn_scaling_share(const sn_cores *cores, const sn_scaling *scaling, uint32_t threads);

/* One of the operations that run at the same time. */
typedef struct sn_running {
  sn_team team;
  uint32_t share; /* u, in 1/1024 */
} sn_running;

/* How fast each of `n` operations is that run at the same time, in 1/1024 of its speed alone: floor(1024 / slowing), 1
 * .. 1024. Slowing of i: 1 + sum over j != i of u_j (beta min(1, 2 n_j / C) + alpha f_ij), f_ij: the share of i's cores
 * that j holds too; where threads float a(threads / C) in place of alpha f: linear through (1, 0), (2, alpha), (4, a4),
 * (8, a8) and on. O(n^2). */
void sn_cores_rates(const sn_cores *cores, const sn_running *tasks, uint32_t n, uint32_t *rates);

/* What i suffers from j beside it, before the share of j's work. */
double sn_cores_hindrance(const sn_cores *cores, sn_team i, sn_team j);

#endif
