/* Side by side: tasks that have nothing to do with each other, by several threads.
 *
 *   sn_side_by_side(n, 8, task, user);       task(user, 0) .. task(user, n - 1), all over when it returns
 *
 * Tasks are begun in their order. Where no thread can be started the caller does them all.
 */
#ifndef SN_SIM_SCALE_SIDE_BY_SIDE_H
#define SN_SIM_SCALE_SIDE_BY_SIDE_H

#include <stdint.h>

enum { SN_SIDE_BY_SIDE_MOST = 64 }; /* threads, with the caller's */

void sn_side_by_side(uint32_t n, uint32_t threads, void (*task)(void *user, uint32_t number), void *user);

#endif
