/* Calibration: what was measured of one device with one set of libraries, so that simulations of it use measured times
 * instead of formulas.
 *
 * A timing is the median time of one step of one shape of operator, "CONV 4x64x56x56 k64 3x3 s1 p1". Layers of the same
 * shape share it, in any network. Shapes that were not measured get the time that their measured neighbours say
 * (sim/device/neighbours.h), so that calibrating one network makes others more accurate as well; without any, the
 * formulas' time, corrected by a factor per operator and pass. Where convolutions have several algorithms, each has
 * times, neighbours and a factor of its own.
 *
 *   sn_calibration_fit(c, &err)            fills `factor`, `neighbours` and `residual` from the timings
 *   sn_calibration_apply(c, net, costs)    puts times into a cost model made for c->profile
 *
 * A machine made of cores may also have timings of operations on teams of so many of them: a part of a step, and a
 * number of threads (sn_calibration_teams()). Their formula is the law of `cores`. Nothing above looks at them.
 *
 * Data, open to look at: exec/session/calibrate.h makes one, db/ keeps it.
 */
#ifndef SN_SIM_DEVICE_CALIBRATION_H
#define SN_SIM_DEVICE_CALIBRATION_H

#include "models/net/net.h"
#include "sim/device/cost.h"
#include "sim/device/device.h"
#include "sim/device/external.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SN_SHAPE_TEXT = 120, SN_TIMING_PARTS = 3 };

/* Slowing by a neighbour that no machine reaches. */
#define SN_MAX_INTERFERENCE 100

/* Going on with another team takes less. */
#define SN_MAX_RESIZE_NS 1000000000

typedef struct sn_timing {
  const char *shape; /* sn_timing_shape() */
  uint32_t op;       /* sn_op */
  uint32_t pass;     /* sn_pass */
  uint32_t kernel;   /* sn_conv_kernel; SN_CONV_KERNELS: the step, but for algorithms that have timings of their own */
  uint32_t algo;     /* sn_conv_algo of a kernel; SN_CONV_ALGOS of a step */
  uint64_t workspace_bytes; /* of the algorithm; of a step, what it needs in any case */
  int64_t ns;               /* median of the samples */
  int64_t formula_ns;       /* what the formulas say for the profile */
  uint32_t samples;         /* 0: an algorithm that the library offers and that failed when it was run */
  uint32_t part;            /* sn_step_part, below SN_TIMING_PARTS; 0 where threads is */
  uint32_t threads;         /* of the team it was measured on; 0: a whole step, on all the machine */
  int64_t spread_ns;        /* of a team: how far the quartiles of the samples are apart; else 0 */
} sn_timing;

typedef struct sn_neighbour sn_neighbour;

typedef struct sn_calibration {
  const char *name;                      /* what --gpu calls the device: "cpu", "h200" */
  const char *backend;                   /* "cpu", "cuda" */
  const char *hardware;                  /* "AMD EPYC 7B13, 2 threads" */
  const char *libraries;                 /* "oneDNN 2.6.3, avx2" */
  const char *created;                   /* UTC, when last added to; "" while it is in no store */
  sn_device profile;                     /* memory, link and rates as measured; its name is `name` */
  bool shared_link;                      /* copies both ways together are hardly faster than one after the other */
  double out_bandwidth, in_bandwidth;    /* bytes/s, alone */
  int64_t out_latency_ns, in_latency_ns; /* of a copy of one block; the profile has their mean */
  double together_bandwidth;             /* bytes/s, both directions at once, their sum */
  sn_cores cores; /* estimates for the cores that teams were measured on, and their interference and what it takes to go
                     on with another team as measured; count 0: none were */
  uint32_t n_timings;
  const sn_timing *timings; /* sorted by shape, pass, kernel, algo, part, threads; each once */
  /* fitted */
  double factor[SN_OP_COUNT][SN_PASSES]; /* measured over formula; 1 where nothing was measured */
  double algorithm_factor[SN_PASSES];    /* the same of convolution algorithms, which `factor` leaves out */
  double team_factor[SN_OP_COUNT][SN_PASSES][SN_TIMING_PARTS]; /* the same of operations on teams */
  const sn_neighbour *neighbours;                              /* sim/device/neighbours.h */
  uint32_t n_neighbours;
  double residual; /* how far predictions of shapes that were not measured are off: geometric mean of max(r, 1/r) over
                    * all timings, weighted by time, where r is what a timing's neighbours say of it over what it is */
  struct sn_arena *arena;
} sn_calibration;

void sn_calibration_free(sn_calibration *calibration);

/* What makes two steps take the same time: operator, shapes and attributes. Returns text. */
char *sn_shape_text(const sn_net *net, const sn_layer *layer, char *text, size_t room);

/* The same for a step; an update's that is not by momentum says by what: "FC 4x10x1x1 to 5x1x1 bias adam". */
char *sn_timing_shape(const sn_net *net, const sn_layer *layer, sn_pass pass, sn_optimizer optimizer, char *text,
                      size_t room);

/* Order of timings, for qsort(). */
int sn_timing_compare(const void *a, const void *b);

/* Timings of a part of a step on teams, by rising threads; returns how many. */
uint32_t sn_calibration_teams(const sn_calibration *calibration, const char *shape, sn_pass pass, uint32_t part,
                              const sn_timing **first);

/* Sets `cores`: as operations that are executed see them, whose threads stay where they are. */
void sn_calibration_set_cores(sn_calibration *calibration, uint32_t count, double interference, double resize_ns);

/* Whether convolution algorithms were timed by themselves: then a step's timing is what is beside them. */
bool sn_calibration_by_algorithm(const sn_calibration *calibration);

/* Sets `factor`, `algorithm_factor`, `team_factor`, `neighbours` and `residual`; needs the arena. SN_NO_MEMORY. */
sn_status sn_calibration_fit(sn_calibration *calibration, sn_err *err);

/* Costs made for the profile get the measured times, and of other shapes what is said above. */
void sn_calibration_apply(const sn_calibration *calibration, const sn_net *net, sn_costs *costs);

#endif
