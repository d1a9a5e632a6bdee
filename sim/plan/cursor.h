/* Cursor: what has memory at each moment of a plan, for everyone who reads one. The player's meter (sim/play/meter.h) and
 * the checker count for themselves: they prove what this only repeats.
 *
 *   sn_cursor c = {.plan = plan};
 *   for (const sn_instr *i; (i = sn_cursor_next(&c));) ...      here c says what there is once `i` is done
 *
 *   sn_cursor c = {.plan = plan};
 *   while (!sn_cursor_is_fullest(&c, step) && (i = sn_cursor_next(&c))) ...      up to the fullest moment of a step
 *
 * O(1) an instruction. */
#ifndef SN_SIM_PLAN_CURSOR_H
#define SN_SIM_PLAN_CURSOR_H

#include "sim/graph/route.h"
#include "sim/plan/plan.h"

typedef struct sn_cursor {
  const sn_plan *plan;
  uint32_t at;              /* the next instruction */
  uint64_t tensor_bytes;    /* of tensors that have memory, */
  uint64_t held_bytes;      /* the same in whole blocks, */
  uint64_t workspace_bytes; /* and of the workspace of the instruction that was last, 0 of none */
  uint64_t top_bytes;       /* highest end of any tensor so far */
} sn_cursor;

/* Whether an instruction changes which tensors have memory. */
static inline bool sn_instr_moves(const sn_instr *i) {
  return i->kind == SN_ALLOC || i->kind == SN_RELEASE;
}

/* The next instruction, which is done then; NULL at the end. */
static inline const sn_instr *sn_cursor_next(sn_cursor *c) {
  if (c->at == c->plan->n_instrs) return NULL;
  const sn_instr *i = &c->plan->instrs[c->at++];
  c->workspace_bytes = i->kind == SN_COMPUTE ? i->bytes : 0;
  if (i->kind == SN_ALLOC) {
    c->tensor_bytes += c->plan->route->tensors[i->id].bytes;
    c->held_bytes += i->bytes;
    if (i->offset + i->bytes > c->top_bytes) c->top_bytes = i->offset + i->bytes;
  } else if (i->kind == SN_RELEASE) {
    c->tensor_bytes -= c->plan->route->tensors[i->id].bytes;
    c->held_bytes -= i->bytes;
  }
  return i;
}

/* Whether this is the moment of the step, ahead of one of its instructions, at which its tensors take most. */
static inline bool sn_cursor_is_fullest(const sn_cursor *c, uint32_t step) {
  return c->at < c->plan->n_instrs && c->plan->instrs[c->at].step == step &&
         c->tensor_bytes == c->plan->use[step].tensor_bytes;
}

/* How many instructions there are of a kind. */
static inline uint32_t sn_plan_count(const sn_plan *plan, sn_instr_kind kind) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < plan->n_instrs; i++) count += plan->instrs[i].kind == kind;
  return count;
}

#endif
