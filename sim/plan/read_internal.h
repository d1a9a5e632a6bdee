/* Reading plans, one file at a time (internal to sim/plan): what its parts share, read.c, read_lists.c. */
#ifndef SN_SIM_PLAN_READ_INTERNAL_H
#define SN_SIM_PLAN_READ_INTERNAL_H

#include "sim/graph/route.h"
#include "sim/plan/read.h"

#define MOST_BYTES (UINT64_C(1) << 53) /* up to here numbers of JSON are whole */

typedef struct sn__reader {
  sn_json_lists *file;
  const sn_json *doc; /* the head, or the element of a list that is being read */
  const sn_route *route;
  sn_plan *plan;
  sn_err *err;
  uint32_t room; /* for instructions */
  bool corun;    /* operations have cores of their own */
} sn__reader;

/* An element of a list, read by `read`, which is given it with the reader's document. */
typedef sn_status sn__element_reader(sn__reader *r, const cJSON *item, uint32_t index);

/* Reads the elements one after another. False: there is no such list, or an error. */
bool sn__read_elements(sn__reader *r, const char *key, sn__element_reader *read, uint32_t *count);

/* That the lists of tensors and steps, where there are any, are those of the route. */
sn_status sn__read_lists(sn__reader *r);

#endif
