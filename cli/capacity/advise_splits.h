/* The part of `snsim advise` that is about a batch in several parts, gradients accumulated (sim/capacity/split.h). */
#ifndef SN_CLI_CAPACITY_ADVISE_SPLITS_H
#define SN_CLI_CAPACITY_ADVISE_SPLITS_H

#include "base/err.h"
#include "cli/frame/question.h"
#include "cli/options/out.h"
#include "sim/capacity/split.h"

#include <stdbool.h>
#include <stdio.h>

/* Of the question's strategies those that are named, else those that keep all on the device: sending tensors out is
 * what parts are the other way to. */
sn_splits *sn_advise_splits(const sn_question *question, sn_err *err);

/* The table, with the price against the fastest way to run the whole batch, and below it what the fastest would be
 * asked for with; nothing where there are none. */
sn_status sn_advise_print_splits(const sn_splits *splits, const sn_question *question, int64_t whole_ns,
                                 const sn_out *out, sn_err *err);

/* ,"splits":[ .. ] */
sn_status sn_advise_write_splits(const sn_splits *splits, const sn_question *question, int64_t whole_ns, FILE *out,
                                 sn_err *err);

#endif
