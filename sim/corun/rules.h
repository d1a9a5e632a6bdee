/* Rules: what each co-run policy does. A rule looks at the floor and says what starts now, or that nothing does until
 * something ends; where nothing runs it must name an operation. n_k: the threads of the operation's kind, fixed for all
 * its instances; best: those of the instance itself. Times are predicted ones.
 *
 * serial: one after another in serial order, at the best count (s1) or n_k (s12).
 *
 * mixed: one after another in serial order, with numbers of threads that are given (sim/policy/mix.h).
 *
 * workers: up to K at once, P threads each, the oldest first. Where KP cores are there, worker w has cores wP on; else
 * threads float over all cores.
 *
 * idle: s123. The oldest with a fit starts, with the fewest threads: of its three fastest counts one (n_k in place of
 * such as are far from it) that needs no more cores than are idle and ends no later than the last of those that run.
 * Where none fits, the largest starts, if n_k cores are idle. s1234: and while no core is idle, the smallest starts on
 * second slots, one at a time, with n_k threads.
 *
 * path: the one with the longest path behind it, with its best count or what is idle; while others are ready, with
 * fewer as long as it takes no longer than `stretch` percent of its best time. It waits where it would end later than
 * if it had its best count when those that run have ended.
 */
#ifndef SN_SIM_CORUN_RULES_H
#define SN_SIM_CORUN_RULES_H

#include "sim/corun/moment.h"
#include "sim/policy/mix.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct sn__pick {
  uint32_t op;
  sn_team team;
} sn__pick;

typedef struct sn__rule sn__rule;
struct sn__rule {
  bool (*next)(sn__moment *floor, const sn__rule *rule, sn__pick *pick);
  uint32_t orders;           /* bits by sn__order: those it looks at */
  uint32_t workers, threads; /* of sn__rule_workers() */
  uint32_t stretch;          /* of sn__rule_path() */
  const sn_mix *mix;         /* of sn__rule_mixed() */
  bool bounded;              /* of workers: known not to be fast enough before it is through (sim/corun/workers.h) */
};

sn__rule sn__rule_serial_best(void);
sn__rule sn__rule_serial_kind(void);
sn__rule sn__rule_mixed(const sn_mix *mix);
sn__rule sn__rule_workers(uint32_t workers, uint32_t threads);
sn__rule sn__rule_idle(void);
sn__rule sn__rule_idle_and_second(void);
sn__rule sn__rule_path(uint32_t stretch);

#endif
