/* How the value of each option is read (internal to the table of options, cli/options/option_table.c).
 *
 * Each takes the option as users write it ("--batch"), the text of its value, and the place in sn_args that its row
 * names; one that sets several members has the sn_args itself. SN_BAD_USAGE where the text is no such value. */
#ifndef SN_CLI_OPTIONS_OPTION_VALUES_H
#define SN_CLI_OPTIONS_OPTION_VALUES_H

#include "cli/options/options.h"

typedef sn_status sn__parse(const char *what, const char *text, void *place, sn_err *err);

sn__parse sn__parse_switch;
sn__parse sn__parse_text;
sn__parse sn__parse_gpu;                             /* place: sn_args */
sn_status sn__take_gpus(sn_args *args, sn_err *err); /* reads --gpus, where the command is known */
sn__parse sn__parse_size;
sn__parse sn__parse_thread_counts; /* place: sn_args */
sn__parse sn__parse_jobs;
sn__parse sn__parse_moves;
sn__parse sn__parse_nodes;
sn__parse sn__parse_scheme;
sn__parse sn__parse_samples;
sn__parse sn__parse_match_range;
sn__parse sn__parse_colours;
sn__parse sn__parse_warmup;
sn__parse sn__parse_seed;
sn__parse sn__parse_rate;
sn__parse sn__parse_share;
sn__parse sn__parse_bytes;
sn__parse sn__parse_capacity;
sn__parse sn__parse_bytes_or_0;
sn__parse sn__parse_strategy;
sn__parse sn__parse_list;
sn__parse sn__parse_modules;
sn__parse sn__parse_placement;
sn__parse sn__parse_freeze;
sn__parse sn__parse_lora;
sn__parse sn__parse_cluster;
sn__parse sn__parse_quantize;
sn__parse sn__parse_init;
sn__parse sn__parse_dialect;
sn__parse sn__parse_order;
sn__parse sn__parse_for;
sn__parse sn__parse_kind;
sn__parse sn__parse_x;
sn__parse sn__parse_backend;
sn__parse sn__parse_costs;
sn__parse sn__parse_color;
sn__parse sn__parse_max;
sn__parse sn__parse_min;
sn__parse sn__parse_which;
sn__parse sn__parse_margin;
sn__parse sn__parse_image;
sn__parse sn__parse_accumulate;
sn__parse sn__parse_sharing;
sn__parse sn__parse_pool;
sn__parse sn__parse_condition; /* the one of the option's name, a word */
sn__parse sn__parse_interval;

/* The budget of +corun=..: "serial", "any" or a size. */
sn_status sn__parse_corun_budget(const char *text, uint64_t *bytes, sn_err *err);

#endif
