/* Plans of several GPUs as JSON, version 2 (internal to sim/plan): what version 1 has not, written and read.
 *
 *   "mesh": {"tp": 2, "fsdp": 1, "dp": 1, "pp": 4}, "stage": 0, "groups": [{"id": 0, "axis": "tp", "ranks": 2}]
 *   {"do": "collective", .. "step": 7, "recompute": false, "kind": "all_gather", "group": 0, "bytes": 131072}
 *   {"do": "send", .. "step": 31, "recompute": false, "peer": 1, "tensor": 40, "micro": 0, "bytes": 65536}
 *
 * A group is a communicator of this rank, one an axis along which there are others; stages send each other without one.
 * In memory such an instruction is the compute of a step that is a transfer, on the lane of its communicator: lists of
 * version 2 alone say what crosses the links, so that plans of different GPUs can be compared without the network
 * (sim/stages/match.h). A plan is of version 2 if and only if it is of several GPUs.
 */
#ifndef SN_SIM_PLAN_TRANSFERS_H
#define SN_SIM_PLAN_TRANSFERS_H

#include "sim/plan/read_internal.h"

#include <stdio.h>

enum { SN__PLAN_FORMAT = 1, SN__PLAN_FORMAT_GPUS = 2 };

/* What an instruction that runs a step does: "collective", "send", "receive"; "compute" where it is no transfer. */
typedef enum sn__do { SN__DO_COMPUTE, SN__DO_COLLECTIVE, SN__DO_SEND, SN__DO_RECEIVE, SN__DOS } sn__do;
sn__do sn__do_of(const sn_route *route, uint32_t step);
const char *sn__do_name(sn__do what);

/* Nothing of one GPU. False where writing fails. */
bool sn__transfers_write_head(const sn_route *route, FILE *out);
/* The keys of a transfer behind "step" and "recompute". */
bool sn__transfers_write(const sn_route *route, uint32_t step, FILE *out);

/* Of which GPU, behind all else of the head. */
sn_status sn__transfers_read_head(const sn_json *doc, uint64_t format, sn_plan_head *head, sn_err *err);
/* That the keys of a transfer, whose step is read, are the step's. */
sn_status sn__transfers_read(const sn__reader *r, const cJSON *item, sn__do what, uint32_t step);

#endif
