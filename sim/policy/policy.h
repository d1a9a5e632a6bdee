/* Co-run policy: who decides which operations run side by side, and on how many threads each, by the name people give
 * it. What each does stands in sim/corun/rules.h.
 *
 *   KxP       K workers of P threads each take operations as they become ready: "4x16"
 *   manual    the fastest KxP
 *   s1, s12, s123, s1234    the first strategies of "Runtime Concurrency Control and Operation Scheduling for High
 *                           Performance Neural Network Training", so many of them
 *   path      the operation with the longest path behind it first
 *   best      the fastest of all these
 */
#ifndef SN_SIM_POLICY_POLICY_H
#define SN_SIM_POLICY_POLICY_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum sn_policy_kind {
  SN_POLICY_NONE, /* operations run one after another on the whole device, as without co-running */
  SN_POLICY_WORKERS,
  SN_POLICY_MANUAL,
  SN_POLICY_S1,
  SN_POLICY_S12,
  SN_POLICY_S123,
  SN_POLICY_S1234,
  SN_POLICY_PATH,
  SN_POLICY_BEST,
  SN_POLICY_KINDS
} sn_policy_kind;

enum { SN_POLICY_WORKERS_MOST = 6, SN_POLICY_THREADS_MOST = 512, SN_POLICY_NAME = 16 };

typedef struct sn_policy {
  sn_policy_kind kind;
  uint32_t workers, threads; /* of SN_POLICY_WORKERS; else 0 */
} sn_policy;

/* SN_BAD_USAGE for anything that is no name above. How many threads the device has is asked when it is scheduled. */
sn_status sn_policy_parse(const char *text, sn_policy *policy, sn_err *err);

/* The name, into `text` of SN_POLICY_NAME bytes; returns it. "none" for SN_POLICY_NONE, which cannot be parsed. */
char *sn_policy_name(sn_policy policy, char *text);

bool sn_policy_same(sn_policy a, sn_policy b);

#endif
