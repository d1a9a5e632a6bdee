/* Plan sets: the plans of several GPUs of one mesh, a file each (docs/plan-format.md, version 2), which have to be right
 * together: each is proved alone, and their transfers meet (sim/stages/match.h).
 *
 *   sn_plan_set set = {.files = files, .names = names, .count = 4};         each read, sn_plan_file_read()
 *   sn_plan_set_check(&set, &err);
 *
 * The match comes first: of two plans of which one has its collectives in another order it says which two differ where.
 */
#ifndef SN_SIM_STAGES_PLAN_SET_H
#define SN_SIM_STAGES_PLAN_SET_H

#include "sim/ask/plan_file.h"

typedef struct sn_plan_set {
  sn_plan_file *const *files;
  const char *const *names; /* of the files */
  uint32_t count;
  /* after an error */
  uint32_t faulty; /* the file that it is about; `count`: none alone */
} sn_plan_set;

/* SN_BAD_INPUT with the line, and the rule in the report of the faulty file: there is one of each stage, or as many of
 * each, of the same question. */
sn_status sn_plan_set_check(sn_plan_set *set, sn_err *err);

#endif
