/* Fit: the largest configuration that fits on a device, and the least memory that a configuration needs.
 *
 *   sn_knob_spec spec = {.kind = SN_KNOB_BATCH, .net = "resnet152"};
 *   sn_knob knob;
 *   sn_knob_open(&spec, &knob, &err);
 *   sn_fit *fit = sn_fit_largest(&knob, &device, strategies, n, &options, &err);
 *   ... fit->answers[i].value, fit->answers[i].result->images_per_second ...
 *   sn_fit_free(fit);
 *
 * A knob makes a network for every value from `low` to `high`, or for every `step`th. Whether one fits is known from
 * its plan, or ahead of it where the plan could say nothing else (sim/ask/need.h); answers, and what stops the next,
 * are of plans that are checked. What does not depend on the strategy is made once for all of them. Memory grows nearly
 * evenly with a knob, so secant steps find the boundary in a handful of values.
 *
 * Nearly is not always. The pool's luck with holes makes some values fail although larger ones fit. So every value is
 * tried from the boundary up to the first one whose tensors alone do not fit (sn_need.slack_bytes): in what was tried
 * the answer is the largest that fits, and `proved` says that no larger one can. That proof needs tensors that do not
 * shrink as the value grows, which is so for the batch as long as bytes do not decide what is re-run; for depth and
 * image it is what networks do. Where it is not sure, some beyond are tried, too.
 */
#ifndef SN_SIM_CAPACITY_FIT_H
#define SN_SIM_CAPACITY_FIT_H

#include "base/err.h"
#include "models/net/net.h"
#include "sim/ask/run.h"
#include "sim/ask/simulate.h"
#include "sim/device/external.h"
#include "sim/policy/strategy.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- knobs ---- */

typedef enum sn_knob_kind {
  SN_KNOB_BATCH,
  SN_KNOB_DEPTH,
  SN_KNOB_IMAGE,    /* height and width */
  SN_KNOB_SEQUENCE, /* tokens */
  SN_KNOB_COUNT
} sn_knob_kind;

/* "batch", "depth", "image", "sequence"; parsing an unknown name is SN_BAD_USAGE. `what` names the option. */
const char *sn_knob_name(sn_knob_kind kind);
sn_status sn_knob_parse(const char *what, const char *text, sn_knob_kind *kind, sn_err *err);

typedef struct sn_knob {
  uint32_t low, high; /* 1 <= low <= high < 2^32 - 1 */
  uint32_t step;      /* there are networks of low, low + step, low + 2 step ..; 0 is 1 */
  sn_net *(*make)(const void *user, uint32_t value, sn_err *err); /* SN_BAD_USAGE, SN_BAD_INPUT: there is no such net */
  /* The value of a network that `make` has made, from that one, which outlives it; NULL: there is no such short way */
  sn_net *(*turn)(const sn_net *known, uint32_t value, sn_err *err);
  const void *user;
  bool grows;  /* networks of larger values have more layers */
  bool scales; /* they have the same layers, and no tensor is smaller */
} sn_knob;

/* Which knob of which network, and what the others stand at. */
typedef struct sn_knob_spec {
  sn_knob_kind kind;
  const char *net;       /* as for sn_net_load() */
  uint32_t batch, image; /* the one that is turned is not looked at; image (or tokens) 0: the network's own */
  /* One of its networks, which outlives all that are made. Of a recording all others are made of it, and its file is not
   * read again. NULL: there is none */
  const sn_net *like;
} sn_knob_spec;

/* `spec` is looked at as long as the knob is used. The least image or sequence is the smallest for which the network
 * can be built; the step is more than 1 where it is cut into patches, windows or halves that have to fill it.
 * SN_BAD_USAGE for a network without that knob; errors of sn_net_load(). */
sn_status sn_knob_open(const sn_knob_spec *spec, sn_knob *knob, sn_err *err);

/* Of sequences only those whose positions tensor parallel divides; without it, or with sequence=whole, all. */
void sn_knob_keep_divided(sn_knob *knob, const sn_mesh *mesh);

/* Only values from which on there is a block for every part of a pipeline; of other meshes all. Errors are those of
 * sn_mesh_check_parts() where there is none. */
sn_status sn_knob_keep_staged(sn_knob *knob, const sn_mesh *mesh, sn_err *err);

/* The value behind this one; `low` behind 0, which is none. */
uint32_t sn_knob_next(const sn_knob *knob, uint32_t value);

/* ---- the largest value that fits ---- */

/* What the search found about one strategy. */
typedef struct sn_fit_search {
  uint32_t value;                /* 0: none in the knob's range */
  uint32_t tried_from, tried_to; /* every value in this range was tried; `value` is the last of them that fits */
  bool proved;                   /* at tried_to the tensors alone do not fit, or the knob ends */
  uint32_t misfits;              /* values below `value` that were tried and do not fit; 0: nothing spoke against
                                    "whatever is smaller fits too" */
  uint32_t misfit;               /* the largest of them */
  uint32_t plans;
} sn_fit_search;

/* What is searched. */
typedef struct sn_fit_range {
  uint32_t low, high;  /* as in a knob whose step is 1 */
  uint32_t most_tried; /* one by one; the boundary itself is found in any case */
  bool falls;          /* the slack never rises: behind one value without any nothing is looked at */
} sn_fit_range;

/* The search alone, over any function that says what a value needs: need->fits decides, need->slack_bytes leads and
 * bounds it. */
typedef sn_status sn_fit_measure(void *user, uint32_t value, sn_need *need, sn_err *err);
sn_status sn_fit_find(const sn_fit_range *range, sn_fit_measure *measure, void *user, sn_fit_search *found,
                      sn_err *err);

typedef struct sn_fit_answer {
  sn_strategy strategy;
  sn_fit_search search;
  const sn_result *result; /* simulated at the value; NULL where nothing fits */
  bool verified;           /* planned and checked: the value, if any, fits; the next does not, or does not exist */
  /* What stands in the way of the next value (value + 1, or the knob's low where nothing fits). */
  bool has_next;
  uint64_t next_device_bytes, next_host_bytes;
  sn_binding binding;
  const char *end; /* why there is no next; NULL where there is one */
} sn_fit_answer;

typedef struct sn_fit {
  uint32_t n_answers;
  const sn_fit_answer *answers; /* as the strategies */
  struct sn_arena *arena;
} sn_fit;

/* Networks beyond this are not tried: planning one takes seconds. */
#define SN_FIT_MOST_LAYERS 250000u

/* options->want_.. are not looked at. A strategy with which nothing fits is an answer (value 0), not an error. */
sn_fit *sn_fit_largest(const sn_knob *knob, const sn_device *device, const sn_strategy *strategies,
                       uint32_t n_strategies, const sn_options *options, sn_err *err);
void sn_fit_free(sn_fit *fit);

/* The answer with the largest value, the fastest of equals; NULL where nothing fits. */
const sn_fit_answer *sn_fit_best(const sn_fit *fit);

/* ---- the least memory ---- */

typedef struct sn_memory_answer {
  sn_strategy strategy;
  uint64_t memory_bytes;   /* the least usable memory of a device with which the strategy runs; 0: no memory is enough,
                              as the host has too little */
  const sn_result *result; /* simulated with so much, or with all it can use */
  sn_binding binding;      /* why one block of the pool (SN_POOL_BLOCK) less is too little */
  bool verified;           /* planned and checked: it fits, and a block less does not */
} sn_memory_answer;

typedef struct sn_memory {
  uint32_t n_answers;
  const sn_memory_answer *answers; /* as the strategies */
  struct sn_arena *arena;
} sn_memory;

/* device->memory_bytes, options->pool_bytes and options->want_.. are not looked at. */
sn_memory *sn_fit_memory(const sn_net *net, const sn_device *device, const sn_strategy *strategies,
                         uint32_t n_strategies, const sn_options *options, sn_err *err);
void sn_memory_free(sn_memory *memory);

/* The answer that needs the least, the fastest of equals; one without memory only where all are. */
const sn_memory_answer *sn_memory_best(const sn_memory *memory);

#endif
