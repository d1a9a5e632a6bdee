/* Trace events: a timeline in the form that https://ui.perfetto.dev and chrome://tracing open (docs/trace.md).
 *
 * One track per lane; one slice per computing, copy, stall and call of the device's allocator; counters of memory and
 * live tensors; arrows from a tensor's producer to its copy out and from its copy in to its first use. Timestamps are
 * microseconds with three decimals: exact nanoseconds.
 */
#ifndef SN_PLOTS_PAGE_TRACE_EVENTS_H
#define SN_PLOTS_PAGE_TRACE_EVENTS_H

#include "base/err.h"
#include "sim/play/timeline.h"

#include <stdio.h>

/* What the timeline is of; all texts as the user knows them. */
typedef struct sn_trace_head {
  const char *net, *device, *strategy, *version;
  uint32_t batch;
} sn_trace_head;

/* SN_BAD_FILE where writing fails. */
sn_status sn_trace_events_write(const sn_timeline *timeline, const sn_trace_head *head, FILE *out, sn_err *err);

#endif
