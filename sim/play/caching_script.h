/* Caching script (internal to sim/play): what a plan asks of PyTorch's allocator in an iteration, written down once for
 * every replay of it (sim/play/caching_replay.h). */
#ifndef SN_SIM_PLAY_CACHING_SCRIPT_H
#define SN_SIM_PLAY_CACHING_SCRIPT_H

#include "sim/graph/route.h"
#include "sim/play/caching_replay.h"

typedef enum sn__caching_kind { SN__TAKE, SN__GIVE, SN__PASS, SN__MAKE } sn__caching_kind;

/* What an instruction asks for. */
typedef struct sn__caching_request {
  uint32_t kind : 2;   /* sn__caching_kind */
  bool gradient : 1;   /* SN__GIVE: of a parameter, which stays where others are added to it */
  uint32_t instr : 29; /* that asks, or ahead of which it is */
  uint32_t id;         /* tensor; SN__PASS: instruction; SN__MAKE: of load->made */
  sn_caching_size size;
} sn__caching_request;

/* A round of requests that stands for more of the same (sn_rounds_of()): `again` times, when it is over and what it has
 * taken for the next round counts as what it found, it comes again. */
typedef struct sn__caching_rounds {
  uint32_t first, end, again; /* requests; again 0: there is none */
  uint32_t n_moves, n_kept, n_held;
  uint32_t *to, *from; /* n_moves tensors: found by the round, and what lies in their place behind it */
  uint32_t *kept;      /* n_kept tensors that it takes and nobody gives back before all are over .. */
  uint32_t given;      /* .. but this request and those behind it */
  uint32_t *held; /* n_held tensors whose blocks rounds change: where these lie, and how many are kept, is all that one
                        * finds otherwise than another */
} sn__caching_rounds;

typedef struct sn__caching_script {
  const sn_caching_load *load;
  const sn_plan *plan;
  const sn_route *route;
  uint32_t micro_batches;             /* how many of an iteration ask; from 2 on, gradients of parameters are kept */
  uint32_t n_requests, n_until_taken; /* behind the latter nothing is taken but what is made once */
  sn__caching_request *requests;      /* of one iteration; the first one's makings in between */
  bool gives_all;                     /* whatever is taken is given back by a request */
  sn__caching_rounds rounds;
} sn__caching_script;

/* To be cleared in any case. */
sn_status sn__caching_script_init(sn__caching_script *script, const sn_plan *plan, const sn_caching_load *load,
                                  sn_err *err);
void sn__caching_script_clear(sn__caching_script *script);

/* No more than is allocated at the peak, whatever the limit. */
uint64_t sn__caching_least_allocated(const sn__caching_script *script);

/* Of a script whose requests are written. None where the round behind asks for something else. */
sn_status sn__caching_rounds_find(sn__caching_script *script, sn_err *err);

static inline bool sn__caching_accumulates(const sn__caching_script *script) {
  return script->micro_batches > 1;
}

/* Of a parameter, and one that others are added to. */
static inline bool sn__caching_is_gradient(const sn__caching_script *script, uint32_t tensor) {
  return sn__caching_accumulates(script) && script->route->tensors[tensor].role == SN_PARAMETER_GRADIENT;
}

#endif
