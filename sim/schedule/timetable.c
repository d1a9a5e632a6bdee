/* Timetables; see the header. */
#include "sim/schedule/timetable.h"

#include <stdlib.h>

sn_timetable *sn_timetable_new(const sn_ops *ops, sn_err *err) {
  sn_timetable *t = calloc(1, sizeof *t);
  if (t) {
    t->ops = ops;
    t->starts = calloc((size_t)ops->n_ops + 1, sizeof *t->starts);
    t->events = calloc(2 * (size_t)ops->n_ops + 1, sizeof *t->events);
    if (t->starts && t->events) return t;
  }
  sn_timetable_free(t);
  sn_fail_memory(err);
  return NULL;
}

void sn_timetable_free(sn_timetable *timetable) {
  if (!timetable) return;
  free(timetable->starts);
  free(timetable->events);
  free(timetable);
}
