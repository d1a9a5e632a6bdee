/* Several GPUs in the heading of an answer: how many there are and how they share it, and what crosses their links. */
#ifndef SN_CLI_FRAME_GPUS_H
#define SN_CLI_FRAME_GPUS_H

#include "sim/ask/run.h"
#include "sim/cluster/cluster.h"

#include <stdio.h>

/* Tokens/s of a GPU: of a rank of dp and fsdp, which tp and pp share. */
double sn_gpus_tokens(const sn_run *run, const sn_result *result);
/* Some lines; nothing of one GPU. `cluster`: what was asked for; NULL: it is looked up by the run's name of it. */
void sn_gpus_print(const sn_run *run, const sn_cluster *cluster, FILE *out);

#endif
