/* What a dialect can be asked for; see route_internal.h. */
#include "sim/graph/route_internal.h"

typedef struct wish {
  const sn_net *net;
  sn_dialect_id dialect;
  sn_order order;
  sn_iteration iteration;
} wish;

bool sn_dialect_has_order(sn_dialect_id dialect, sn_order order) {
  const sn_dialect *d = sn_dialect_of(dialect);
  switch (order) {
  case SN_ORDER_ROUTE:
    return true;
  case SN_ORDER_POST:
    return dialect == SN_DIALECT_EXPLICIT;
  case SN_ORDER_SERIAL:
  case SN_ORDER_BFS:
    return d->by_kernel;
  case SN_ORDERS:
    break;
  }
  return false;
}

static sn_status check_order(wish w, sn_err *err) {
  const char *name = sn_dialect_of(w.dialect)->name;
  if (sn_dialect_has_order(w.dialect, w.order)) return SN_OK;
  if (w.order != SN_ORDER_POST)
    return sn_fail(err, SN_BAD_USAGE, "the dialect %s has no order %s, which is singa's", name, sn_order_name(w.order));
  if (sn_dialect_of(w.dialect)->declared)
    return sn_fail(err, SN_BAD_USAGE,
                   "the dialect %s runs in the order in which a model is written; explicit has others", name);
  return sn_fail(err, SN_BAD_USAGE,
                 "the dialect %s writes gradients in place and has one order only; explicit has others", name);
}

static sn_status check_precision(wish w, sn_err *err) {
  sn_precision precision = w.iteration.precision;
  const sn_dialect *d = sn_dialect_of(w.dialect);
  bool amp = sn_precision_is_amp(precision), autocasts = !amp || d->eager;
  if (sn_precision_is_wide(precision) || (autocasts && !d->by_kernel)) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "the dialect %s has no precision %s: %s", d->name, sn_precision_name(precision),
                 amp ? "autocast is pytorch's" : "superneurons, explicit and pytorch have it");
}

static sn_status check_freeze(wish w, sn_err *err) {
  bool some = *sn_iteration_freeze(w.iteration) || w.net->adapted;
  if (!some || sn_dialect_of(w.dialect)->eager) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE, "the dialect %s trains all layers: pytorch can %s", sn_dialect_of(w.dialect)->name,
                 w.net->adapted ? "train adapters alone" : "freeze some");
}

/* Its loop is as it was recorded. The optimizer is not looked at: what is asked for by default is momentum. */
static sn_status check_recording(wish w, sn_err *err) {
  const sn_iteration i = w.iteration;
  const char *what = i.inference                          ? "inference"
                     : sn_iteration_accumulates(i)        ? "accumulate"
                     : *sn_iteration_freeze(i)            ? "freeze"
                     : !sn_precision_is_wide(i.precision) ? "precision"
                                                          : NULL;
  if (!w.net->recorded || !what) return SN_OK;
  return sn_fail(err, SN_BAD_USAGE,
                 "%s: a recording has the loop it was recorded with; leave --%s out, or record it so", w.net->name,
                 what);
}

sn_status sn__route_check(const sn_net *net, sn_dialect_id dialect, sn_order order, sn_iteration iteration,
                          sn_err *err) {
  const wish w = {net, dialect, order, iteration};
  if (check_recording(w, err) != SN_OK || check_order(w, err) != SN_OK || check_precision(w, err) != SN_OK)
    return err->code;
  return check_freeze(w, err);
}
